"""The published curves in data/egfr_round1, through the whole path from zip to verdict."""

import pytest

from prefect_assay.analysis.kinetics.analysis import Verdict
from prefect_assay.analysis.kinetics.prepare import complete_curves, less_blank, matrix
from prefect_assay.analysis.kinetics.two_step import fit_two_step

BINDER = "P01133-971-1023"


def replicate_of(published, name, number):
    return next(r for r in published.replicates if (r.kinetics.name, r.kinetics.replicate) == (name, number))


@pytest.mark.parametrize("number", [1, 2])
def test_two_step_is_within_15_percent_of_the_published_values(published, number):
    found = replicate_of(published, BINDER, number).kinetics
    fit, service = found.fit("two_step"), found.service
    assert fit.kon_per_M_s.value == pytest.approx(service.kon_per_M_s, rel=0.15)
    assert fit.koff_per_s.value == pytest.approx(service.koff_per_s, rel=0.15)
    assert fit.kd_M.value == pytest.approx(service.kd_M, rel=0.15)


@pytest.mark.parametrize("number", [1, 2])
def test_the_published_binder_is_reported_by_the_fit_that_describes_it(published, number):
    """Its dissociation has a fast phase and a plateau: 1:1 comes second, and the reason says so."""
    found = replicate_of(published, BINDER, number).kinetics
    assert [fit.model for fit in found.fits] == ["two_step", "global_1to1"]
    assert "1:1" in found.reasons[0]
    assert found.verdict is not Verdict.NO_BINDING


@pytest.mark.parametrize("number", [1, 2])
def test_a_non_binder_gets_no_number(published, number):
    found = replicate_of(published, "gitter-yolo10", number)
    assert (found.kinetics.verdict, found.kinetics.fits) == (Verdict.NO_BINDING, ())
    assert all(curve.fitted == {} for curve in found.curves)


@pytest.mark.parametrize(("number", "expected"), [(1, 14.1), (2, 11.6)])
def test_the_crop_is_the_time_constant_of_the_fast_phase(published, number, expected):
    data = fitted_matrix(published, number)
    assert fit_two_step(data).crop_s == pytest.approx(expected, abs=0.2)


@pytest.mark.parametrize("number", [1, 2])
def test_the_dissociation_depends_on_the_crop(published, number):
    """Why the crop is a rule and not a number: within 0 to 20 s, k_off falls by a third."""
    rates = [
        fit_two_step(fitted_matrix(published, number), crop).rates.koff.best for crop in (0.0, 8.0, 20.0)
    ]
    assert rates[0] - rates[1] > 0.1
    assert rates[1] - rates[2] > 0.1


def test_fitted_curves_are_near_the_measured_ones(published):
    found = replicate_of(published, BINDER, 1)
    for curve in found.curves:
        assert curve.fitted.keys() == {"global_1to1", "two_step"}
        for fitted in curve.fitted.values():
            assert fitted.shape == curve.curve.signal.shape
            assert abs(fitted - curve.curve.signal).mean() < 0.1 * curve.curve.signal.max()


def fitted_matrix(published, number):
    """The curves of the analysis have their blank subtracted already."""
    curves = [curve.curve for curve in replicate_of(published, BINDER, number).curves]
    complete, left_out = complete_curves(curves)
    assert left_out == ()
    return matrix(less_blank(complete), 180.0, blanks=1, unit="nm")
