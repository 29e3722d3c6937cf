"""The physics against closed forms and against each other."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay_lab.measure import model
from assay_lab.measure.assays import thermostability
from assay_lab.measure.model import compute_interval, compute_mean, compute_spread, log_spread

KON, KOFF, RMAX = 7.0e4, 6.5e-3, 6.0
CONSTANTS = {"kon": KON, "koff": KOFF, "rmax": RMAX}


def test_the_timeline_is_that_of_the_published_data():
    times = model.make_timeline(0.2)
    assert times[:3] == [0.0, 0.2, 0.4]
    assert times[-1] == 479.0
    assert len(times) == 2396


def test_the_signal_obeys_the_rate_equation():
    """Integrated step by step from dR/dt = kon c (Rmax - R) - koff R, which the module never does."""
    concentration, step = 1e-7, 0.01
    response, checks = 0.0, {}
    for index in range(int(479 / step)):
        t = index * step
        if index % 4000 == 0:
            checks[t] = response
        free = concentration if t < model.ASSOCIATION_S else 0.0
        response += step * (KON * free * (RMAX - response) - KOFF * response)
    signal = model.binding_signal(list(checks), concentration_m=concentration, **CONSTANTS)
    assert len(checks) > 10
    assert signal == pytest.approx(list(checks.values()), abs=2e-3)


def test_long_association_reaches_the_equilibrium_of_kd():
    fast = {"kon": 1e7, "koff": 0.5, "rmax": RMAX}
    [plateau] = model.binding_signal([180.0], concentration_m=5e-8, **fast)
    assert plateau == pytest.approx(RMAX * 5e-8 / (5e-8 + 0.5 / 1e7))
    assert plateau == pytest.approx(RMAX / 2)


def test_dissociation_halves_in_ln2_over_koff():
    half = math.log(2) / KOFF
    start, later = model.binding_signal([180.0, 180.0 + half], concentration_m=1e-7, **CONSTANTS)
    assert later == pytest.approx(start / 2)


def test_no_antigen_no_signal():
    assert set(model.binding_signal([0.0, 90.0, 180.0, 400.0], concentration_m=0.0, **CONSTANTS)) == {0.0}


@given(
    kon=st.floats(1e3, 1e7),
    koff=st.floats(1e-5, 1.0),
    low=st.floats(1e-10, 1e-6),
    factor=st.floats(1.0, 100.0),
)
def test_the_response_stays_below_rmax_and_grows_with_the_antigen(kon, koff, low, factor):
    times = [10.0, 100.0, 180.0, 300.0, 479.0]
    less = model.binding_signal(times, concentration_m=low, kon=kon, koff=koff, rmax=1.0)
    more = model.binding_signal(times, concentration_m=low * factor, kon=kon, koff=koff, rmax=1.0)
    assert all(0.0 <= a <= b * (1 + 1e-9) <= 1.0 + 1e-9 for a, b in zip(less, more, strict=True))


def test_half_is_unfolded_at_the_melting_temperature():
    enthalpy, heat_capacity = thermostability.estimate_thermodynamics("A" * 100, 55.0)
    fraction = {
        t: model.unfolded_fraction(t, tm=55.0, enthalpy=enthalpy, heat_capacity=heat_capacity)
        for t in (35.0, 55.0, 75.0)
    }
    assert fraction[55.0] == pytest.approx(0.5)
    assert fraction[35.0] < 0.01
    assert fraction[75.0] > 0.99


def test_the_slope_at_the_melting_temperature_is_that_of_vant_hoff():
    """d ln K / dT = dH / (R T^2); with K = 1 the fraction's slope is a quarter of it."""
    tm, enthalpy = 60.0, 250_000.0
    ends = [
        model.unfolded_fraction(tm + d, tm=tm, enthalpy=enthalpy, heat_capacity=5_000.0)
        for d in (-0.001, 0.001)
    ]
    kelvin = tm + 273.15
    assert (ends[1] - ends[0]) / 0.002 == pytest.approx(enthalpy / (4 * 8.314462618 * kelvin**2), rel=1e-4)


def test_the_enthalpy_at_60_degrees_is_the_published_one_per_residue():
    enthalpy, heat_capacity = thermostability.estimate_thermodynamics("A" * 100, 60.0)
    assert (enthalpy, heat_capacity) == (292_000.0, 5_800.0)


def test_half_the_rate_at_km():
    assert model.michaelis_menten(3e-5, vmax=8.0, km=3e-5) == pytest.approx(4.0)


def test_statistics_of_few_values():
    assert (compute_mean([]), compute_spread([1.0]), log_spread([1e-9]), compute_interval([])) == (
        None,
        None,
        None,
        None,
    )
    assert log_spread([1e-9, 1e-8]) == pytest.approx(math.sqrt(0.5))
    assert compute_interval([1e-9]) == {"value": pytest.approx(1e-9), "ci_low": None, "ci_high": None}
    ends = compute_interval([1e-9, 1e-8, 1e-7])
    assert ends["value"] == pytest.approx(1e-8)
    assert ends["ci_low"] < 1e-8 < ends["ci_high"]
    assert ends["ci_low"] * ends["ci_high"] == pytest.approx(1e-16)
