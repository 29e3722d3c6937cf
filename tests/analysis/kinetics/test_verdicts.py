"""Verdicts on simulated curves. The thresholds of `verdict` were chosen with the seeds 1, 11 and 101."""

from dataclasses import replace

import numpy as np
import pytest

from prefect_assay.analysis.kinetics.analysis import ServiceValues, Verdict
from prefect_assay.analysis.kinetics.replicate import analyze_replicate
from prefect_assay.analysis.kinetics.response import curve
from prefect_assay.analysis.kinetics.schedule import Schedule as Start
from support.kinetics.packages import flat
from support.kinetics.simulate import (
    CONCENTRATIONS_M,
    Schedule,
    measured,
    one_to_one,
)

SEED = 202
CURVES = 60
SCHEDULE = Schedule(step_s=1.0)


def judged(curves, service=None, unit="nm"):
    service = service or ServiceValues(binding="unknown")
    return analyze_replicate("design", 1, unit, curves, service, Start(180.0)).kinetics


def closed_form(kon, koff, rmax):
    return {c: rmax * curve(SCHEDULE.times, kon, koff, c, 180.0) for c in CONCENTRATIONS_M}


@pytest.mark.parametrize("own_drift", [0.015, 0.03])
def test_curves_without_binding_get_no_number(own_drift):
    chance = np.random.default_rng(SEED + 2)
    for _ in range(CURVES):
        found = judged(measured(flat(SCHEDULE), chance, SCHEDULE, own_drift=own_drift))
        assert (found.verdict, found.fits) == (Verdict.NO_BINDING, ())


def test_unspecific_binding_and_bulk_shift_are_no_binding():
    """Like the bundled non-binder: a step at the start, a slow rise with concentration, hardly any return."""
    chance = np.random.default_rng(SEED + 3)
    times = SCHEDULE.times
    for _ in range(CURVES):
        rise, step, power = chance.uniform(0.1, 0.5), chance.uniform(0.0, 0.3), chance.uniform(0.7, 1.5)
        walk = np.cumsum(0.001 * chance.standard_normal((4, len(times))), axis=1)
        clean = {
            c: (c / 1e-6) ** power * (np.where(times <= 180, step, 0) + rise * np.minimum(times, 180) / 180)
            + w
            for c, w in zip(CONCENTRATIONS_M, walk, strict=True)
        }
        found = judged(measured(clean, chance, SCHEDULE))
        assert (found.verdict, found.fits) == (Verdict.NO_BINDING, ())


def simulated(kon=1e5, koff=1e-2, rmax=3.0, seed=SEED):
    return measured(closed_form(kon, koff, rmax), np.random.default_rng(seed), SCHEDULE)


TRUE = ServiceValues(binding="true", kon_per_M_s=1e5, koff_per_s=1e-2, kd_M=1e-7)


def test_curves_that_give_the_services_values_agree():
    found = judged(simulated(), TRUE)
    assert found.verdict is Verdict.AGREES
    assert "global_1to1: within 25%" in found.reasons[0]


@pytest.mark.parametrize(
    ("service", "reason"),
    [
        (TRUE.model_copy(update={"kd_M": 3e-7}), "K_D -6"),
        (TRUE.model_copy(update={"kd_M": None}), "the service reports no K_D"),
    ],
)
def test_curves_that_do_not_are_for_review(service, reason):
    found = judged(simulated(), service)
    assert found.verdict is Verdict.REVIEW
    assert any(reason in line for line in found.reasons)


def test_a_binder_that_the_service_calls_none_gets_no_number():
    found = judged(simulated(), ServiceValues(binding="false"))
    assert (found.verdict, found.fits) == (Verdict.REVIEW, ())
    assert "reports no binding" in found.reasons[0]


@pytest.mark.parametrize(
    "disturbed",
    [
        lambda c, t: 1.5 * (t > 90) * (c == CONCENTRATIONS_M[1]),
        lambda c, t: 2.5e6 * c * np.minimum(t, 180.0) / 180.0,
    ],
    ids=["a jump of one sensor", "strong drift that grows with the concentration"],
)
def test_what_is_no_kinetics_does_not_contradict_a_report_of_no_binding(disturbed):
    clean = {c: disturbed(c, SCHEDULE.times) for c in CONCENTRATIONS_M}
    curves = measured(clean, np.random.default_rng(SEED), SCHEDULE)
    found = judged(curves, ServiceValues(binding="false"))
    assert (found.verdict, found.fits) == (Verdict.NO_BINDING, ())


@pytest.mark.parametrize(("service", "numbers"), [(ServiceValues(binding="unknown"), False), (TRUE, True)])
def test_waves_that_no_one_calls_binding_get_no_number(service, numbers):
    clean = {
        c: 1.5 * curve(SCHEDULE.times, 1e5, 1e-2, c, 180.0) + 6e5 * c * np.sin(SCHEDULE.times / 25)
        for c in CONCENTRATIONS_M
    }
    found = judged(measured(clean, np.random.default_rng(SEED), SCHEDULE), service)
    assert found.verdict in {Verdict.NOT_1_TO_1, Verdict.REVIEW}
    assert bool(found.fits) is numbers


def test_curves_that_hardly_bend_give_a_limit_that_holds_the_truth():
    clean = {c: 3.0 * curve(SCHEDULE.times, 1e3, 1e-4, c, 180.0) for c in CONCENTRATIONS_M}
    curves = measured(clean, np.random.default_rng(SEED), SCHEDULE, noise=0.0, own_drift=0.0)
    found = judged(curves, TRUE)
    (fit,) = found.fits
    assert (found.verdict, fit.kd_M.value, fit.kd_M.low) == (Verdict.REVIEW, None, None)
    assert 1e-7 < fit.kd_M.high < 1e-6
    assert found.reasons[0] == "the curves do not bound k_on"


def test_a_non_binder_that_the_service_calls_a_binder_is_for_review():
    found = judged(measured(flat(SCHEDULE), np.random.default_rng(SEED), SCHEDULE), TRUE)
    assert (found.verdict, found.fits) == (Verdict.REVIEW, ())


@pytest.mark.parametrize("seed", range(5))
def test_a_complex_that_does_not_dissociate_has_a_limit_and_no_number(seed):
    service = ServiceValues(binding="true", kon_per_M_s=1e5, koff_per_s=1e-7, kd_M=1e-12)
    found = judged(simulated(koff=1e-7, seed=seed), service)
    (fit,) = found.fits
    for limit in (fit.koff_per_s, fit.kd_M, fit.kd_uncertainty_M):
        assert (limit.value, limit.low) == (None, None)
    assert fit.kd_M.high <= fit.kd_uncertainty_M.high < 1e-8
    assert found.verdict is Verdict.REVIEW
    assert any("do not bound k_off from below" in reason for reason in found.reasons)


def test_one_concentration_gives_no_affinity():
    found = judged([curve for curve in simulated() if curve.concentration_M in {0.0, 1000e-9}], TRUE)
    assert (found.verdict, found.fits) == (Verdict.REVIEW, ())
    assert "one concentration" in found.reasons[0]


def test_a_curve_that_ends_early_is_left_out_and_named():
    curves = simulated()
    cut = replace(curves[2], time_s=curves[2].time_s[:200], signal=curves[2].signal[:200])
    found = judged([*curves[:2], cut, *curves[3:]], TRUE)
    assert found.verdict is Verdict.AGREES
    assert found.concentrations_nM == (31.6, 316.2, 1000.0)
    assert "left out: the curve at 100 nM" in found.reasons[-1]


def test_drift_without_a_blank_is_not_another_mechanism():
    curves = [curve for curve in simulated() if curve.concentration_M > 0]
    found = judged(curves, TRUE)
    assert found.verdict is Verdict.AGREES
    assert "there is no blank" in found.reasons[-1]


def test_noise_alone_is_no_response():
    chance = np.random.default_rng(SEED)
    curves = measured(flat(SCHEDULE), chance, SCHEDULE, noise=2.0)
    assert (judged(curves).verdict, judged(curves).fits) == (Verdict.NO_BINDING, ())
    assert (judged(curves, TRUE).verdict, judged(curves, TRUE).fits) == (Verdict.REVIEW, ())


def test_spr_is_judged_by_its_own_unit():
    curves = [replace(c, signal=20 * c.signal) for c in simulated()]
    assert judged(curves, TRUE, unit="RU").verdict is Verdict.AGREES
    silent = measured(flat(SCHEDULE), np.random.default_rng(SEED), SCHEDULE)
    assert judged([replace(c, signal=20 * c.signal) for c in silent], unit="RU").verdict is Verdict.NO_BINDING


def test_the_simulations_by_equations_and_by_formula_are_the_same():
    solved, formula = one_to_one(1e5, 1e-2, 3.0, SCHEDULE), closed_form(1e5, 1e-2, 3.0)
    for concentration, signal in solved.items():
        np.testing.assert_allclose(signal, formula[concentration], atol=1e-6)
