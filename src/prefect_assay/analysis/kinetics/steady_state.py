"""K_D from the plateaus of the associations alone, without any rate: a second opinion on the kinetic fit.

Each plateau is the last response plus what an exponential through three times still rises. Curves that are far from it are left
out. Knows no kinetics.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from prefect_assay.analysis.kinetics.curves import Curve, FloatArray
from prefect_assay.analysis.kinetics.intervals import OPEN_FOLD, LogInterval

CURVES_MIN: Final = 4
_MISSING: Final = 0.15  # of a plateau, at most: what a curve may still rise
_SHARE: Final = 0.07  # error of a plateau, with that of its concentration
_WINDOW: Final = 0.05  # of the association
_CHI_SQUARE: Final = 3.8415
_POINTS: Final = 801
_BEYOND: Final = 30.0
_FLAT: Final = 10.0


@dataclass(frozen=True, slots=True)
class SteadyState:
    """ln K_D with its 95 % interval and R_max. `has_saturation`: the plateaus bend, as those of bulk shift never do."""

    kd: LogInterval
    rmax: float
    has_saturation: bool


def find_plateaus(
    curves: Sequence[Curve], association_s: float, noise: float
) -> tuple[FloatArray, FloatArray]:
    """Concentrations (M) and plateaus of the curves that approach one, shape (c,) each. `noise` is that of a response."""
    points = []
    for curve in curves:
        first, middle, last = (
            _mean(curve, share * association_s, association_s) for share in (1 / 3, 2 / 3, 1.0)
        )
        early, late = middle - first, last - middle
        # Where the rise is within the noise, the last response is the plateau.
        missing = late**2 / (early - late) if early > late > 0 else 0.0 if late <= 3 * noise else np.inf
        if np.isfinite(last + missing) and missing <= max(_MISSING * (last + missing), noise):
            points.append((curve.concentration_M, last + missing))
    doses, plateaus = np.array(points).reshape(-1, 2).T
    return doses, plateaus


def fit_steady_state(curves: Sequence[Curve], association_s: float, noise: float) -> SteadyState | None:
    """The isotherm R_max c / (c + K_D) through the plateaus; None with fewer than four of them above the noise."""
    doses, plateaus = find_plateaus(curves, association_s, noise)
    if np.count_nonzero(plateaus > 3 * noise) < CURVES_MIN:
        return None
    weights = 1 / np.hypot(noise, _SHARE * plateaus)
    grid = np.linspace(np.log(doses.min() / _BEYOND), np.log(doses.max() * _BEYOND), _POINTS)
    shapes = np.append(doses / (doses + np.exp(grid)[:, None]), [doses], axis=0) * weights
    target = plateaus * weights
    rmax = shapes @ target / np.sum(shapes**2, axis=1)
    squares = np.sum((target - rmax[:, None] * shapes) ** 2, axis=1)
    best = int(np.argmin(squares[:-1]))
    scale = max(1.0, float(squares[best]) / (len(doses) - 2))
    inside = np.flatnonzero(squares[:-1] <= squares[best] + _CHI_SQUARE * scale)
    value, reach = float(grid[best]), float(np.log(OPEN_FOLD))
    low, high = (float(grid[inside[end]]) for end in (0, -1))
    is_open = value - low > reach or inside[0] == 0, high - value > reach or inside[-1] == _POINTS - 1
    kd = LogInterval(value, None if is_open[0] else low, None if is_open[1] else high)
    return SteadyState(kd, float(rmax[best]), bool(squares[-1] > squares[best] + _FLAT * scale))


def _mean(curve: Curve, end_s: float, association_s: float) -> float:
    width = max(_WINDOW * association_s, 3 * float(np.median(np.diff(curve.time_s))))
    kept = (curve.time_s <= end_s) & (curve.time_s > end_s - width)
    return float(np.mean(curve.signal[kept])) if kept.any() else float("nan")
