"""Sensorgrams with known constants: 1:1 here, other mechanisms in `stress`; and the noise of real sensors.

Independent of the product: the curves are solutions of the differential equations by SciPy. Times in s, signals in nm.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp

from prefect_assay.analysis.kinetics.curves import Curve

CONCENTRATIONS_M = (31.6e-9, 100e-9, 316.2e-9, 1000e-9)
NOISE_NM = 0.004
SHARED_DRIFT_NM = 0.15
OWN_DRIFT_NM = 0.015


@dataclass(frozen=True)
class Schedule:
    """When samples are taken: every `step_s` until `end_s`; the dissociation starts at `association_s`."""

    association_s: float = 180.0
    end_s: float = 479.0
    step_s: float = 1.0

    @property
    def times(self):
        return np.round(np.arange(int(self.end_s / self.step_s + 1e-9) + 1) * self.step_s, 6)


def solved(
    rates: Callable[[float, np.ndarray], np.ndarray],
    states: int,
    schedule: Schedule,
    concentrations=CONCENTRATIONS_M,
) -> dict[float, np.ndarray]:
    """Integrate d(state)/dt = rates(c, state) with c = 0 in the dissociation; the signal is the sum of the states."""
    signals = {}
    for concentration in concentrations:
        start, signal = np.zeros(states), []
        for amount, first, last in (
            (concentration, 0.0, schedule.association_s),
            (0.0, schedule.association_s, schedule.end_s),
        ):
            inside = schedule.times[(schedule.times >= first) & (schedule.times <= last)]
            solution = solve_ivp(
                lambda _, state, c=amount: rates(c, state),
                (first, last),
                start,
                t_eval=np.unique(np.append(inside, last)),
                method="LSODA",
                rtol=1e-9,
                atol=1e-11,
            )
            start = solution.y[:, -1]
            signal.append(np.interp(inside, solution.t, solution.y.sum(axis=0))[1 if signal else 0 :])
        signals[concentration] = np.concatenate(signal)
    return signals


def one_to_one(kon, koff, rmax, schedule=Schedule(), concentrations=CONCENTRATIONS_M):
    return solved(lambda c, r: kon * c * (rmax - r) - koff * r, 1, schedule, concentrations)


def measured(clean, rng, schedule=Schedule(), *, noise=NOISE_NM, own_drift=OWN_DRIFT_NM, correlation=0.0):
    """Curves with a blank as sensors give them: shared and own linear drift, and noise (first-order, correlated)."""
    times = schedule.times
    shared = -SHARED_DRIFT_NM * rng.random()
    curves = []
    for concentration, signal in {0.0: np.zeros(len(times)), **clean}.items():
        drift = (shared + own_drift * rng.standard_normal()) * times / schedule.end_s
        curves.append(
            Curve(concentration, times, signal + drift + noise * _noise(rng, len(times), correlation))
        )
    return curves


def _noise(rng, count, correlation):
    white = rng.standard_normal(count)
    if not correlation:
        return white
    noise = np.empty(count)
    noise[0] = white[0]
    for i in range(1, count):
        noise[i] = correlation * noise[i - 1] + np.sqrt(1 - correlation**2) * white[i]
    return noise
