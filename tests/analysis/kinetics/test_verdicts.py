"""Verdicts on simulated curves. The thresholds of `verdict` were chosen with the seeds 1, 11 and 101."""

from dataclasses import replace

import numpy as np
import pytest

from prefect_assay.analysis.kinetics.analysis import Estimate, ServiceValues, Verdict
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
CURVES = 20
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
        kinetics = judged(measured(flat(SCHEDULE), chance, SCHEDULE, own_drift=own_drift))
        assert (kinetics.verdict, kinetics.fit) == (Verdict.NO_BINDING, None)


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
        kinetics = judged(measured(clean, chance, SCHEDULE))
        assert (kinetics.verdict, kinetics.fit) == (Verdict.NO_BINDING, None)


def simulated(kon=1e5, koff=1e-2, rmax=3.0, seed=SEED):
    return measured(closed_form(kon, koff, rmax), np.random.default_rng(seed), SCHEDULE)


TRUE = ServiceValues(binding="true", kon_per_M_s=1e5, koff_per_s=1e-2, kd_M=1e-7)


def test_curves_that_give_the_services_values_agree():
    kinetics = judged(simulated(), TRUE)
    assert kinetics.verdict is Verdict.AGREES
    assert "global 1:1: within 25%" in kinetics.reasons[0]


@pytest.mark.parametrize(
    ("service", "reason"),
    [
        (TRUE.model_copy(update={"kd_M": 3e-7}), "K_D -6"),
        (TRUE.model_copy(update={"kd_M": None}), "the service reports no K_D"),
    ],
)
def test_curves_that_do_not_are_for_review(service, reason):
    kinetics = judged(simulated(), service)
    assert kinetics.verdict is Verdict.REVIEW
    assert any(reason in line for line in kinetics.reasons)


def limited(name, **side):
    return TRUE.model_copy(update={name: None, "limits": {name: Estimate(value=None, **side)}})


@pytest.mark.parametrize(
    ("service", "label"),
    [
        (limited("kd_M", high=5e-10), "K_D"),
        (limited("kd_M", low=1e-6), "K_D"),
        (limited("koff_per_s", high=1e-4), "k_off"),
        (limited("kon_per_M_s", low=1e7), "k_on"),
    ],
)
def test_a_fitted_value_beyond_the_services_limit_is_for_review(service, label):
    kinetics = judged(simulated(), service)
    assert kinetics.verdict is Verdict.REVIEW
    assert kinetics.reasons == (f"against the service: {label} beyond the reported limit",)


@pytest.mark.parametrize("service", [limited("kd_M", high=1e-6), limited("kd_M", low=1e-8)])
def test_a_fitted_value_within_the_services_limit_agrees_and_the_limit_is_named(service):
    kinetics = judged(simulated(), service)
    assert kinetics.verdict is Verdict.AGREES
    assert kinetics.reasons[1:] == ("the service reports a limit of K_D",)


@pytest.mark.parametrize(
    ("side", "verdict"), [({"low": 1e-5}, Verdict.NO_BINDING), ({"high": 5e-10}, Verdict.REVIEW)]
)
def test_curves_without_a_response_contradict_an_upper_limit_only(side, verdict):
    service = ServiceValues(limits={"kd_M": Estimate(value=None, **side)})
    curves = measured(flat(SCHEDULE), np.random.default_rng(SEED), SCHEDULE)
    assert judged(curves, service).verdict is verdict


@pytest.mark.parametrize(
    ("doses", "verdict"),
    [(CONCENTRATIONS_M, Verdict.NO_BINDING), ((*CONCENTRATIONS_M, 3e-6), Verdict.REVIEW)],
)
def test_curves_below_the_blank_are_a_response_and_no_binding(doses, verdict):
    clean = {dose: -1.5 * curve(SCHEDULE.times, 1e5, 1e-2, dose, 180.0) for dose in doses}
    kinetics = judged(measured(clean, np.random.default_rng(SEED), SCHEDULE))
    assert (kinetics.verdict, kinetics.fit) == (verdict, None)
    assert "the curves fall below the blank" in kinetics.reasons[0]


def test_the_call_of_the_service_is_compared_and_not_obeyed():
    kinetics = judged(simulated(), ServiceValues(binding="false"))
    assert kinetics.verdict is Verdict.REVIEW
    assert kinetics.fit.kd_M.value == pytest.approx(1e-7, rel=0.2)
    assert "the service reports no binding, and the curves bind" in kinetics.reasons


@pytest.mark.parametrize("kon", [1e5, 3e5])
def test_a_weak_signal_at_five_concentrations_is_a_binder(kon):
    """0.12 nm is no more than what single sensors drift, but all five agree on one curve."""
    doses = (4e-9, 12e-9, 37e-9, 111e-9, 333e-9)
    clean = {c: 0.14 * curve(SCHEDULE.times, kon, 52e-9 * kon, c, 180.0) for c in doses}
    chance = np.random.default_rng(SEED)
    kinetics = judged(measured(clean, chance, SCHEDULE, noise=0.002, own_drift=0.003))
    assert kinetics.verdict is Verdict.REVIEW
    assert kinetics.fit is not None
    assert (kinetics.fit.kd_M.low or 0) < 52e-9 < (kinetics.fit.kd_M.high or 1)


@pytest.mark.parametrize("seconds", [0.01, 1.0], ids=["at once", "dispersed"])
@pytest.mark.parametrize("unit", ["nm", "RU"])
def test_bulk_shift_alone_never_gets_a_number(unit, seconds):
    times, chance, size = SCHEDULE.times, np.random.default_rng(SEED + 4), 20.0 if unit == "RU" else 1.0
    edges = np.where(times <= 180, -np.expm1(-times / seconds), np.exp(-np.maximum(times - 180, 0) / seconds))
    for _ in range(4):
        clean = {c: chance.uniform(0.2, 2.0) * c / 1e-6 * edges for c in CONCENTRATIONS_M}
        curves = [replace(c, signal=size * c.signal) for c in measured(clean, chance, SCHEDULE)]
        for service in (ServiceValues(binding="unknown"), TRUE):
            kinetics = judged(curves, service, unit)
            assert (kinetics.fit, kinetics.steady_state_kd_M) == (None, None)


def test_steps_that_saturate_have_the_affinity_of_their_plateaus():
    clean = {c: 3.0 * curve(SCHEDULE.times, 1e8, 10.0, c, 180.0) for c in (1e-8, 3e-8, 1e-7, 3e-7, 1e-6)}
    kinetics = judged(measured(clean, np.random.default_rng(SEED), SCHEDULE))
    assert kinetics.verdict is Verdict.REVIEW
    assert kinetics.steady_state_kd_M.low < 1e-7 < kinetics.steady_state_kd_M.high


def test_an_affinity_beyond_the_highest_concentration_is_called_extrapolated():
    clean = {c: 30.0 * curve(SCHEDULE.times, 5e3, 2e-2, c, 180.0) for c in CONCENTRATIONS_M}
    kinetics = judged(measured(clean, np.random.default_rng(SEED), SCHEDULE))
    assert kinetics.brackets_kd is False
    assert any("extrapolated" in reason for reason in kinetics.reasons) or kinetics.fit.kd_M.value is None


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
    kinetics = judged(curves, ServiceValues(binding="false"))
    assert (kinetics.verdict, kinetics.fit) == (Verdict.NO_BINDING, None)


def test_waves_are_not_called_1_to_1():
    clean = {
        c: 1.5 * curve(SCHEDULE.times, 1e5, 1e-2, c, 180.0) + 6e5 * c * np.sin(SCHEDULE.times / 25)
        for c in CONCENTRATIONS_M
    }
    kinetics = judged(measured(clean, np.random.default_rng(SEED), SCHEDULE), TRUE)
    assert kinetics.verdict is Verdict.NOT_1_TO_1
    assert "deviate from 1:1" in kinetics.reasons[0]


def test_curves_that_hardly_bend_get_no_number():
    clean = {c: 3.0 * curve(SCHEDULE.times, 1e3, 1e-4, c, 180.0) for c in CONCENTRATIONS_M}
    curves = measured(clean, np.random.default_rng(SEED), SCHEDULE, noise=0.0, own_drift=0.0)
    kinetics = judged(curves, TRUE)
    assert (kinetics.verdict, kinetics.fit) == (Verdict.REVIEW, None)
    assert "in steps and straight lines" in kinetics.reasons[0]


def test_a_non_binder_that_the_service_calls_a_binder_is_for_review():
    kinetics = judged(measured(flat(SCHEDULE), np.random.default_rng(SEED), SCHEDULE), TRUE)
    assert (kinetics.verdict, kinetics.fit) == (Verdict.REVIEW, None)


@pytest.mark.parametrize("seed", range(5))
def test_a_complex_that_does_not_dissociate_has_a_limit_and_no_number(seed):
    service = ServiceValues(binding="true", kon_per_M_s=1e5, koff_per_s=1e-7, kd_M=1e-12)
    kinetics = judged(simulated(koff=1e-7, seed=seed), service)
    fit = kinetics.fit
    for limit in (fit.koff_per_s, fit.kd_M, fit.kd_uncertainty_M):
        assert (limit.value, limit.low) == (None, None)
    assert fit.kd_M.high <= fit.kd_uncertainty_M.high < 1e-8
    assert kinetics.verdict is Verdict.REVIEW
    assert any("do not bound k_off from below" in reason for reason in kinetics.reasons)


def test_one_concentration_gives_no_affinity():
    kinetics = judged([curve for curve in simulated() if curve.concentration_M in {0.0, 1000e-9}], TRUE)
    assert (kinetics.verdict, kinetics.fit) == (Verdict.REVIEW, None)
    assert "one concentration" in kinetics.reasons[0]


def test_a_curve_that_ends_early_is_left_out_and_named():
    curves = simulated()
    cut = replace(curves[2], time_s=curves[2].time_s[:200], signal=curves[2].signal[:200])
    kinetics = judged([*curves[:2], cut, *curves[3:]], TRUE)
    assert kinetics.verdict is Verdict.AGREES
    assert kinetics.concentrations_nM == (31.6, 316.2, 1000.0)
    assert "left out: the curve at 100 nM" in kinetics.reasons[-1]


def without_readings(curve, first_s, last_s):
    kept = (curve.time_s <= first_s) | (curve.time_s >= last_s)
    return replace(curve, time_s=curve.time_s[kept], signal=curve.signal[kept])


def test_a_curve_with_a_long_gap_is_left_out_and_named():
    curves = simulated()
    kinetics = judged([*curves[:2], without_readings(curves[2], 40, 150), *curves[3:]], TRUE)
    assert kinetics.concentrations_nM == (31.6, 316.2, 1000.0)
    assert kinetics.reasons[-1] == "left out: the curve at 100 nM has no readings from 40 to 150 s"


def test_a_gap_in_all_curves_leaves_no_number():
    kinetics = judged([without_readings(curve, 200, 400) for curve in simulated()], TRUE)
    assert (kinetics.verdict, kinetics.fit) == (Verdict.REVIEW, None)
    assert "left out: the curve at 1000 nM has no readings from 200 to 400 s" in kinetics.reasons


def with_readings(curves, is_kept):
    return [
        replace(c, time_s=c.time_s[is_kept(c.time_s)], signal=c.signal[is_kept(c.time_s)]) for c in curves
    ]


def test_a_sparse_dissociation_is_no_gap():
    kinetics = judged(with_readings(simulated(), lambda t: (t <= 180) | ((t - 180) % 40 == 0)), TRUE)
    assert (kinetics.verdict, len(kinetics.concentrations_nM)) == (Verdict.AGREES, 4)
    assert not any("left out" in reason for reason in kinetics.reasons)


@pytest.mark.parametrize("end", [400, 479])
def test_a_single_reading_does_not_hide_a_gap(end):
    kinetics = judged(with_readings(simulated(), lambda t: (t <= 200) | (t == 300) | (t >= end)), TRUE)
    assert "left out: the curve at 1000 nM has no readings from 200 to 300 s" in kinetics.reasons


def test_a_few_missing_readings_do_not_matter():
    kinetics = judged([without_readings(curve, 300, 320) for curve in simulated()], TRUE)
    assert (kinetics.verdict, len(kinetics.concentrations_nM)) == (Verdict.AGREES, 4)


def test_drift_without_a_blank_is_not_another_mechanism():
    curves = [curve for curve in simulated() if curve.concentration_M > 0]
    kinetics = judged(curves, TRUE)
    assert kinetics.verdict is Verdict.AGREES
    assert "there is no blank" in kinetics.reasons[-1]


def test_noise_alone_is_no_response():
    chance = np.random.default_rng(SEED)
    curves = measured(flat(SCHEDULE), chance, SCHEDULE, noise=2.0)
    assert (judged(curves).verdict, judged(curves).fit) == (Verdict.NO_BINDING, None)
    assert (judged(curves, TRUE).verdict, judged(curves, TRUE).fit) == (Verdict.REVIEW, None)


def test_spr_is_judged_by_its_own_unit():
    curves = [replace(c, signal=20 * c.signal) for c in simulated()]
    assert judged(curves, TRUE, unit="RU").verdict is Verdict.AGREES
    silent = measured(flat(SCHEDULE), np.random.default_rng(SEED), SCHEDULE)
    assert judged([replace(c, signal=20 * c.signal) for c in silent], unit="RU").verdict is Verdict.NO_BINDING


def test_the_simulations_by_equations_and_by_formula_are_the_same():
    solved, formula = one_to_one(1e5, 1e-2, 3.0, SCHEDULE), closed_form(1e5, 1e-2, 3.0)
    for concentration, signal in solved.items():
        np.testing.assert_allclose(signal, formula[concentration], atol=1e-6)
