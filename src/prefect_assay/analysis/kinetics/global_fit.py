"""`global_1to1`: association and dissociation of all concentrations with one k_on and one k_off.

What differs from sensor to sensor is the instrument's (`instrument.py`).
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from prefect_assay.analysis.kinetics.curves import FloatArray
from prefect_assay.analysis.kinetics.descent import descend
from prefect_assay.analysis.kinetics.instrument import Instrument, Shape, Solution
from prefect_assay.analysis.kinetics.intervals import Bounds, LogInterval, profile
from prefect_assay.analysis.kinetics.prepare import Matrix
from prefect_assay.analysis.kinetics.response import unit_response

_FUNCTIONS = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 1.0]])
_GRID = 12
WORST_MISFIT: Final = 3.0
"""Residuals so many times their expected variance are no 1:1 binding: the verdict says so, and not the interval."""
CHI_SQUARE: Final = 3.8415
"""95 % of one degree of freedom."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Rate constants and K_D with 95 % intervals."""

    kon: LogInterval
    koff: LogInterval
    kd: LogInterval

    def opened_like(self, other: "Rates") -> "Rates":
        """The same without the ends that `other` leaves open."""
        return Rates(
            self.kon.opened_like(other.kon),
            self.koff.opened_like(other.koff),
            self.kd.opened_like(other.kd),
        )


@dataclass(frozen=True, slots=True)
class GlobalFit:
    """The rates by the noise alone (`precision`) and with all that an instrument does (`rates`).

    `misfit` is the sum of squares over the number of residuals: about 1 where the model describes the curves.
    """

    precision: Rates
    rates: Rates
    theta: FloatArray
    solution: Solution
    misfit: float


def rate_bounds(data: Matrix) -> tuple[Bounds, Bounds]:
    """Natural logarithms of the slowest and fastest k_on and k_off that the times of the curves can show.

    The highest concentration shows the slowest k_on, the lowest one the fastest.
    """
    slow, fast = 1e-3, 3.0
    step = data.phases[0].step_s
    highest, lowest = float(data.concentration_M.max()), float(data.concentration_M.min())
    end = float(data.phases[1].centre_s[-1])
    on = (float(np.log(slow / data.association_s / highest)), float(np.log(fast / step / lowest)))
    return on, (float(np.log(slow / end)), float(np.log(fast / step)))


def one_site(data: Matrix) -> Shape:
    """The response of one site; parameters are the logarithms of k_on and k_off."""

    def shape(theta: FloatArray, concentration: FloatArray) -> FloatArray:
        kon, koff = np.exp(theta[:, 0]), np.exp(theta[:, 1])
        return unit_response(kon, koff, concentration, data.phases, data.association_s)

    return shape


def fit_global(instrument: Instrument) -> GlobalFit:
    """Penalised least squares over both phases."""
    data = instrument.data
    shape = one_site(data)
    on, off = rate_bounds(data)

    def squares(theta: FloatArray) -> FloatArray:
        return instrument.squares(shape, theta)

    axes = [np.linspace(low, high, max(_GRID, int(high - low)) + 2)[1:-1] for low, high in (on, off)]
    grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    start = grid[int(np.argmin(instrument.squares(shape, grid, rounds=0)))]
    found = descend(lambda theta: instrument.residuals(shape, theta), start, np.array([on, off]))
    solution = instrument.solution(shape, found.theta)
    misfit = found.square / instrument.size
    hessian = found.jacobian.T @ found.jacobian
    full = np.full(len(_FUNCTIONS), CHI_SQUARE * float(np.clip(misfit, 1.0, WORST_MISFIT)))
    covariance = instrument.whitened(solution.seen)
    share = [_noise_share(instrument, found.jacobian, function, covariance) for function in _FUNCTIONS]
    rates = profile(squares, found.theta, hessian, _FUNCTIONS, full)
    precision = [interval.scaled(np.sqrt(part)) for interval, part in zip(rates, share, strict=True)]
    return GlobalFit(Rates(*precision), Rates(*rates), found.theta, solution, misfit)


def _noise_share(
    instrument: Instrument, jacobian: FloatArray, direction: FloatArray, covariance: FloatArray
) -> float:
    """Variance that the noise alone gives an estimate, as a share of that with the instrument's deviations."""
    gram = jacobian.T @ jacobian
    effect = jacobian @ (np.linalg.pinv(gram, rcond=1e-12, hermitian=True) @ direction)
    own = effect[: instrument.size].reshape(-1, len(covariance))
    total = float(effect @ effect)
    return float(np.sum((own @ covariance) * own)) / total if total > 0 else 1.0
