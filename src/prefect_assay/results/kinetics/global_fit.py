"""`global_1to1`: association and dissociation of all concentrations with one k_on, one k_off and one Rmax."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from prefect_assay.results.kinetics.curves import FloatArray
from prefect_assay.results.kinetics.intervals import Bounds, LogInterval, profile
from prefect_assay.results.kinetics.noise import noise_of
from prefect_assay.results.kinetics.prepare import Matrix
from prefect_assay.results.kinetics.response import unit_response

_FUNCTIONS = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 1.0]])
_GRID = 12


@dataclass(frozen=True, slots=True)
class Rates:
    """Rate constants and K_D with 95 % intervals."""

    kon: LogInterval
    koff: LogInterval
    kd: LogInterval


@dataclass(frozen=True, slots=True)
class GlobalFit:
    """The rates, the one Rmax in the unit of the signal, and the weighted residuals, shape (c, n)."""

    rates: Rates
    rmax: float
    residuals: FloatArray


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


def fit_global(data: Matrix) -> GlobalFit:
    """Least squares over both phases; Rmax is linear and solved inside."""
    weights = data.weights
    target = data.signal * weights

    def shapes(theta: FloatArray) -> FloatArray:
        rates = np.exp(theta)
        return weights * unit_response(
            rates[..., 0], rates[..., 1], data.concentration_M, data.phases, data.association_s
        )

    def squares(theta: FloatArray) -> FloatArray:
        shape = shapes(theta)
        along = np.einsum("...cn,cn->...", shape, target)
        return np.asarray(np.sum(target**2) - along**2 / np.einsum("...cn,...cn->...", shape, shape))

    def residuals(theta: FloatArray) -> FloatArray:
        shape = shapes(theta)
        return np.asarray((target - shape * (np.sum(shape * target) / np.sum(shape**2))).ravel())

    on, off = rate_bounds(data)
    axes = [np.linspace(low, high, max(_GRID, int(high - low)) + 2)[1:-1] for low, high in (on, off)]
    grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    start = grid[int(np.argmin(squares(grid)))]
    found = least_squares(residuals, start, bounds=np.array([on, off]).T, xtol=1e-10, ftol=1e-12, gtol=1e-14)
    best = np.asarray(found.x)
    left = np.asarray(found.fun).reshape(target.shape)
    jacobian = np.asarray(found.jac)
    noise = noise_of(left, weights * data.drift, 3, data.unit, has_blank=data.has_blank)
    growth = [noise.growth(jacobian.reshape(*target.shape, 2), row) for row in _FUNCTIONS]
    ends = profile(squares, best, jacobian.T @ jacobian, _FUNCTIONS, np.array(growth))
    shape = shapes(best)
    return GlobalFit(Rates(*ends), float(np.sum(shape * target) / np.sum(shape**2)), left)
