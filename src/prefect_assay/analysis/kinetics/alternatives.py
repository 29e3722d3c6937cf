"""Other mechanisms than 1:1, fitted as 1:1 is: two sites (one of which may not dissociate), and transport to the surface.

An alternative counts only if it describes the curves better than its further parameters explain.
"""

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from prefect_assay.analysis.kinetics.curves import FloatArray
from prefect_assay.analysis.kinetics.descent import descend
from prefect_assay.analysis.kinetics.global_fit import GlobalFit, rate_bounds
from prefect_assay.analysis.kinetics.instrument import Instrument, Shape
from prefect_assay.analysis.kinetics.prepare import Matrix
from prefect_assay.analysis.kinetics.response import unit_response

Mechanism = Literal["two sites", "transport-limited"]

GAIN: Final = 20.0
"""By so much the sum of squares, in variances of the noise, has to be less; 1:1 curves reach 11."""
_SHARES: Final = (0.2, 0.5)
_FOLDS: Final = (0.02, 0.2, 5.0, 30.0)
_LIMITS: Final = (-1.0, 1.0, 3.0)
_LIMIT_BOUNDS: Final = (-3.0, 5.0)
_POINTS: Final = 120
_ENOUGH: Final = 0.5
_DESCRIBED: Final = 1.2  # a misfit that leaves nothing to transport


@dataclass(frozen=True, slots=True)
class Alternative:
    """The best fit of another mechanism: ln K_D of its larger site, and by how much the sum of squares is less."""

    mechanism: Mechanism
    log_kd: float
    gain: float

    @property
    def is_better(self) -> bool:
        """Whether it fits better than chance and further parameters explain."""
        return self.gain > GAIN


def two_sites(data: Matrix) -> Shape:
    """Two independent sites; parameters: ln k_on, ln k_off, ln k_off of the second, logit of its share of Rmax."""

    def shape(theta: FloatArray, concentration: FloatArray) -> FloatArray:
        kon, share = np.exp(theta[:, 0]), 1 / (1 + np.exp(-theta[:, 3]))
        one, two = (
            unit_response(kon, np.exp(theta[:, i]), concentration, data.phases, data.association_s)
            for i in (1, 2)
        )
        return np.asarray((1 - share)[:, None, None] * one + share[:, None, None] * two)

    return shape


def transport_limited(data: Matrix) -> Shape:
    """Two compartments at steady state; parameters: ln k_on, ln k_off, ln(k_on Rmax / k_t).

    The occupied share x obeys dx/dt = (k_on c (1 - x) - k_off x) / (1 + L (1 - x)), so that t(x) has a closed form.
    """
    times = data.phases[0].centre_s, data.phases[1].centre_s
    grid = np.linspace(0.0, 1.0, _POINTS)
    levels = 1 - (1 - grid) ** 3  # denser where the signal levels off

    def one(kon: float, koff: float, limit: float, concentration: float) -> FloatArray:
        a, b = kon * concentration, kon * concentration + koff
        x = levels[:-1] * a / b
        rest = -np.log1p(-b * x / a) / b
        rising_s = (1 + limit) * rest - limit * (a * rest - x) / b
        peak = float(np.interp(data.association_s, rising_s, x))
        falling = peak * (1 - levels[:-1])
        falling_s = ((1 + limit) * np.log(peak / falling) - limit * (peak - falling)) / koff
        return np.concatenate([np.interp(times[0], rising_s, x), np.interp(times[1], falling_s, falling)])

    def shape(theta: FloatArray, concentration: FloatArray) -> FloatArray:
        rows = np.broadcast_to(concentration, (len(theta), np.shape(concentration)[-1]))
        rates = np.exp(theta)
        return np.array(
            [[one(rate[0], rate[1], rate[2], c) for c in row] for rate, row in zip(rates, rows, strict=True)]
        )

    return shape


def alternatives(instrument: Instrument, fit: GlobalFit) -> list[Alternative]:
    """Fitted from where 1:1 fits best; transport only where something is left to describe."""
    data = instrument.data
    on, off = rate_bounds(data)
    kon, koff = fit.theta
    found = []
    sites, square = two_sites(data), fit.solution.square
    starts = np.array(
        [[kon, koff, koff + np.log(fold), np.log(s / (1 - s))] for fold in _FOLDS for s in _SHARES]
    )
    start = starts[int(np.argmin(instrument.squares(sites, starts, rounds=0)))]
    bounds = np.array([on, off, (off[0] - 3.0, off[1]), (-3.0, 3.0)])
    best = descend(lambda theta: instrument.residuals(sites, theta), start, bounds, _ENOUGH)
    larger = 1 if best.theta[3] <= 0 else 2
    found.append(Alternative("two sites", best.theta[larger] - best.theta[0], square - best.square))
    if fit.misfit < _DESCRIBED and not found[0].is_better:
        return found
    limited = transport_limited(data)
    starts = np.array([[kon + max(0.0, limit), koff + max(0.0, limit), limit] for limit in _LIMITS])
    start = starts[int(np.argmin(instrument.squares(limited, starts, rounds=0)))]
    bounds = np.array([(on[0], on[1] + 3), (off[0], off[1] + 3), _LIMIT_BOUNDS])
    best = descend(lambda theta: instrument.residuals(limited, theta), start, bounds, _ENOUGH)
    found.append(Alternative("transport-limited", best.theta[1] - best.theta[0], square - best.square))
    return found
