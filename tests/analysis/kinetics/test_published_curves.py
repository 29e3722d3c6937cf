"""The published curves in data/egfr_round1, through the whole path from zip to verdict."""

import pytest

from prefect_assay.analysis.kinetics.analysis import Verdict

BINDER = "P01133-971-1023"


def replicate_of(published, name, number):
    return next(r for r in published.replicates if (r.kinetics.name, r.kinetics.replicate) == (name, number))


@pytest.mark.parametrize("number", [1, 2])
def test_the_published_binder_is_within_threefold_and_its_interval_holds_the_published_value(
    published, number
):
    """Its dissociation has a fast phase and a plateau: far from 1:1, so the interval is wide, and the verdict says so."""
    kinetics = replicate_of(published, BINDER, number).kinetics
    kd, reported = kinetics.fit.kd_uncertainty_M, kinetics.service.kd_M
    assert reported / 3 < kd.value < 3 * reported
    assert kd.low < reported < kd.high
    assert kinetics.verdict is Verdict.NOT_1_TO_1
    assert "with one R_max" in kinetics.reasons[0]
    assert kinetics.brackets_kd is True


@pytest.mark.parametrize("number", [1, 2])
def test_a_non_binder_gets_no_number(published, number):
    replicate = replicate_of(published, "gitter-yolo10", number)
    assert (replicate.kinetics.verdict, replicate.kinetics.fit) == (Verdict.NO_BINDING, None)
    assert all(curve.fitted is None for curve in replicate.curves)


def test_fitted_curves_are_near_the_measured_ones(published):
    replicate = replicate_of(published, BINDER, 1)
    for curve in replicate.curves:
        assert curve.fitted.shape == curve.curve.signal.shape
        assert abs(curve.fitted - curve.curve.signal).mean() < 0.1 * curve.curve.signal.max()
