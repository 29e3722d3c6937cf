"""Melting curves: two states by Gibbs and Helmholtz, with their own heat capacity."""

import numpy as np
import pytest

from prefect_assay.analysis.kinetics.analysis import Estimate, ServiceValues, Verdict
from prefect_assay.analysis.kinetics.melting import analyze_melt, find_steepest
from support.kinetics.melts import CELSIUS, NOISE, between_baselines, ratio, unfolded_for_good
from support.kinetics.tables import melting


def melt(signal, tm=None, **limit):
    limits = {"tm_C": Estimate(value=None, **limit)} if limit else {}
    return analyze_melt("design", 1, CELSIUS, signal, ServiceValues(tm_C=tm, limits=limits)).melting


@pytest.mark.parametrize("tm", [42.0, 55.5, 62.0, 85.0])
@pytest.mark.parametrize("residues", [50, 120, 180])
def test_the_melting_temperature_is_exact_without_noise(tm, residues):
    fit = melt(ratio(tm, residues=residues), tm)
    assert fit.tm_C.value == pytest.approx(tm, abs=0.02)
    # A broad transition between sloped baselines is steepest above its midpoint.
    assert fit.derivative_tm_C == pytest.approx(tm, abs=1.0 if residues > 50 else 4.0)
    assert fit.verdict is Verdict.AGREES


def test_intervals_hold_the_truth_whatever_the_heat_capacity():
    chance, held, half = np.random.default_rng(7), [], []
    for seed in range(120):
        tm, capacity = chance.uniform(45, 80), chance.choice([0.6, 1.0, 1.4])
        signal = ratio(tm, residues=chance.uniform(60, 160), noise=NOISE, seed=seed, capacity=capacity)
        interval = melt(signal, tm).tm_C
        held.append(interval.low <= tm <= interval.high)
        half.append((interval.high - interval.low) / 2)
    assert np.mean(held) >= 0.9
    assert np.median(half) <= 0.5


def test_a_bent_baseline_is_no_reason_for_a_review():
    bend = 0.01 * ((CELSIUS - 57.5) / 37.5) ** 2
    assert melt(ratio(62.0, noise=NOISE) + bend, 62.5).verdict is Verdict.AGREES


def test_two_transitions_are_reported_as_such():
    fit = melt(ratio(45.0, noise=NOISE, second=72.0), 45.0)
    assert sorted(t.value for t in fit.transitions_C) == pytest.approx([45.0, 72.0], abs=1.5)
    assert any("2 transitions" in line for line in fit.reasons)


def test_a_curve_that_gives_the_services_value_agrees():
    assert melt(ratio(62.0, noise=NOISE), 62.2).verdict is Verdict.AGREES


@pytest.mark.parametrize(
    ("signal", "service", "reason"),
    [
        (ratio(62.0, noise=NOISE), 65.0, "-3.0 °C against the service"),
        (ratio(62.0, noise=NOISE), None, "reports no melting temperature"),
        (ratio(50.0, noise=NOISE, second=68.0), 60.0, "2 transitions, at"),
    ],
)
def test_a_curve_that_does_not_is_for_review(signal, service, reason):
    fit = melt(signal, service)
    assert fit.verdict is Verdict.REVIEW
    assert any(reason in line for line in fit.reasons)


@pytest.mark.parametrize(
    ("limit", "verdict"),
    [
        ({"low": 95.0}, Verdict.REVIEW),
        ({"high": 40.0}, Verdict.REVIEW),
        ({"low": 62.5}, Verdict.AGREES),
        ({"high": 80.0}, Verdict.AGREES),
    ],
)
def test_a_melting_temperature_is_compared_with_a_limit(limit, verdict):
    fit = melt(ratio(62.0, noise=NOISE), **limit)
    assert fit.verdict is verdict
    assert (
        f"the service reports a limit, {Estimate(value=None, **limit).text('{:.1f}'.format)} °C"
        in fit.reasons[0]
    )


@pytest.mark.parametrize("limit", [{"low": 95.0}, {"high": 25.0}])
def test_a_curve_without_a_transition_agrees_with_a_limit_and_names_it(limit):
    fit = melt(0.72 + 0.0006 * CELSIUS + 1e-4 * np.sin(7 * CELSIUS), **limit)
    assert fit.verdict is Verdict.AGREES
    assert "the service reports a limit" in fit.reasons[1]


@pytest.mark.parametrize(("activation", "scan_rate"), [(2e5, 0.3), (2e5, 3.0), (5e5, 1.0)])
def test_unfolding_that_cannot_turn_back_is_for_review_with_its_midpoint(activation, scan_rate):
    share = unfolded_for_good(58.0, activation, scan_rate)
    noise = NOISE * np.random.default_rng(3).standard_normal(len(CELSIUS))
    fit = melt(between_baselines(share, CELSIUS, (0.0006, 0.0009)) + noise, 58.0)
    assert fit.verdict is Verdict.REVIEW
    assert any("°C higher at twice the scan rate" in line for line in fit.reasons)
    assert fit.tm_C.low <= 58.0 <= fit.tm_C.high


@pytest.mark.parametrize("kind", ["irreversible", "two domains 10 to 15 °C apart"])
def test_what_does_not_melt_in_two_states_never_agrees(kind):
    flagged, _, _ = melting(12, kind, seed=7)
    assert np.mean(flagged) >= 0.9


@pytest.mark.parametrize("kind", ["two states", "two states, steep baselines"])
def test_two_states_are_seldom_flagged_and_their_interval_holds_the_truth(kind):
    flagged, near, held = melting(20, kind, seed=7)
    assert np.sum(flagged) <= 2
    assert np.mean(near) >= 0.9
    assert np.mean(held) >= 0.9


def test_what_falls_after_unfolding_is_no_two_states():
    fall = np.where(CELSIUS > 70, -0.02 * (CELSIUS - 70), 0.0)
    assert melt(ratio(62.0, noise=NOISE) + fall, 62.0).verdict is Verdict.REVIEW


@pytest.mark.parametrize("seed", range(20))
def test_a_curve_without_a_transition_has_no_melting_temperature(seed):
    signal = 0.72 + 0.0006 * CELSIUS + NOISE * np.random.default_rng(seed).standard_normal(len(CELSIUS))
    fit = melt(signal)
    assert (fit.tm_C, fit.verdict) == (None, Verdict.AGREES)
    assert melt(signal, 60.0).verdict is Verdict.REVIEW


def test_a_curve_too_short_for_a_derivative_has_none():
    celsius = 56 + 0.4 * np.arange(20)
    assert find_steepest(celsius, 1 / (1 + np.exp((60 - celsius) / 1.5))) is None


def test_the_fitted_curve_is_near_the_signal():
    fitted_melt = analyze_melt("design", 1, CELSIUS, ratio(62.0, noise=NOISE), ServiceValues(tm_C=62.0))
    assert np.abs(fitted_melt.fitted - fitted_melt.signal).max() < 5 * NOISE
