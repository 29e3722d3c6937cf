"""Fits of simulated 1:1 curves without noise are exact; test_stress.py has those with noise and disturbances."""

import numpy as np
import pytest

from prefect_assay.analysis.kinetics.fit import fit_one_to_one
from prefect_assay.analysis.kinetics.intervals import profile
from prefect_assay.analysis.kinetics.response import curve
from prefect_assay.analysis.kinetics.schedule import Schedule as FoundSchedule
from prefect_assay.analysis.kinetics.schedule import find_schedule
from support.kinetics.simulate import CONCENTRATIONS_M, Schedule, measured, one_to_one

CONSTANTS = ((1e5, 1e-2), (7e4, 6e-3), (1e6, 1e-3), (1e5, 1e-4), (2e4, 5e-2), (1e5, 0.5))


@pytest.mark.parametrize(("kon", "koff"), CONSTANTS)
@pytest.mark.parametrize("step_s", [0.2, 1.0])
def test_constants_are_within_one_percent_without_noise(exact, kon, koff, step_s):
    schedule = Schedule(step_s=step_s)
    data = exact(one_to_one(kon, koff, 3.0, schedule), schedule)
    rates = fit_one_to_one(data).rates
    constants = [np.exp(value.best) for value in (rates.kon, rates.koff, rates.kd)]
    assert constants == pytest.approx([kon, koff, koff / kon], rel=0.01)


@pytest.mark.parametrize("association_s", [120.0, 300.0])
def test_the_start_of_the_dissociation_is_found(exact, association_s):
    schedule = Schedule(association_s=association_s, end_s=2 * association_s)
    clean = one_to_one(1e5, 5e-3, 3.0, schedule)
    curves = measured(clean, np.random.default_rng(1), schedule)
    assert find_schedule([curves]).association_s == pytest.approx(association_s, abs=2.0)
    rates = fit_one_to_one(exact(clean, schedule)).rates
    assert np.exp(rates.kd.best) == pytest.approx(5e-8, rel=0.01)


@pytest.mark.parametrize("association_s", [60.0, 180.0, 600.0])
@pytest.mark.parametrize(("kon", "koff"), [(1e6, 1e-3), (1e7, 1e-2), (2e5, 1e-4), (1e4, 1e-4)])
def test_a_fast_association_or_a_slow_curve_does_not_hide_the_dissociation(kon, koff, association_s):
    schedule = Schedule(association_s=association_s, end_s=2 * association_s + 180)
    clean = {c: 3.0 * curve(schedule.times, kon, koff, c, association_s) for c in CONCENTRATIONS_M}
    chance = np.random.default_rng(2)
    exact = measured(clean, chance, schedule, noise=0.0, own_drift=0.0)
    assert find_schedule([exact]).association_s == pytest.approx(association_s, abs=1.0)
    if koff >= 1e-2:  # else nothing falls by more than the noise within ten seconds
        noisy = measured(clean, chance, schedule)
        assert find_schedule([noisy]).association_s == pytest.approx(association_s, abs=5.0)


@pytest.mark.parametrize(("kon", "koff"), [(1e7, 1e-3), (1e7, 1e-1)])
def test_a_rate_that_only_low_concentrations_show_is_within_the_bounds(exact, kon, koff):
    schedule = Schedule(step_s=1.0)
    data = exact(one_to_one(kon, koff, 3.0, schedule), schedule)
    rates = fit_one_to_one(data).rates
    assert np.exp([rates.kon.best, rates.koff.best]) == pytest.approx([kon, koff], rel=0.01)


def test_the_end_of_an_interval_is_found_where_squares_grow_slower_than_a_parabola():
    def squares(theta):
        return 10 * np.log1p(np.sum((theta / 0.2) ** 2, axis=-1) / 10)

    (interval,) = profile(squares, np.zeros(2), np.eye(2) / 0.2**2, np.array([[1.0, 0.0]]), np.array([3.84]))
    end = 0.2 * np.sqrt(10 * np.expm1(0.384))
    assert (interval.low, interval.high) == pytest.approx((-end, end), rel=1e-3)


def test_a_start_in_doubt_says_which_command_takes_the_right_one():
    doubt = FoundSchedule(180.0, 170.0).doubt
    assert "180 s and 170 s both fit" in doubt
    assert "`prefect-assay kinetics` with --association-s" in doubt
