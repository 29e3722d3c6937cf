"""Minima and 95 % intervals from sums of squares, all evaluated on whole grids at once.

Parameters are natural logarithms. Knows no model.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from prefect_assay.analysis.kinetics.analysis import Estimate
from prefect_assay.analysis.kinetics.curves import FloatArray

Squares = Callable[[FloatArray], FloatArray]

OPEN_FOLD: Final = 10.0
"""An interval that reaches so many times beyond the estimate is open on that side."""
_RAYS: Final = 16
_STEPS: Final = 7
_BEYOND: Final = 1.1
_DIGITS: Final = 6
NORMAL: Final = 1.96
"""95 % of a normal distribution, in standard deviations."""


@dataclass(frozen=True, slots=True)
class LogInterval:
    """An estimate and its ends, as natural logarithms; None is an open end."""

    best: float
    low: float | None
    high: float | None

    @property
    def closed(self) -> bool:
        """Whether the data determine both ends."""
        return self.low is not None and self.high is not None

    def widened(self, deviation: float) -> "LogInterval":
        """The same with a further, independent error of this standard deviation; to a limit it is added."""
        more = NORMAL * deviation
        if self.low is None or self.high is None:
            low = None if self.low is None else self.low - more
            return LogInterval(self.best, low, None if self.high is None else self.high + more)
        sides = (float(np.hypot(end - self.best, more)) for end in (self.low, self.high))
        return LogInterval(self.best, self.best - next(sides), self.best + next(sides))

    def to_estimate(self) -> Estimate:
        """The interval out of logarithms: `exp` of its limits, and no value where the interval is open."""
        return Estimate(
            value=rounded(float(np.exp(self.best))) if self.closed else None,
            low=None if self.low is None else rounded(float(np.exp(self.low))),
            high=None if self.high is None else rounded(float(np.exp(self.high))),
        )


def rounded(value: float) -> float:
    """Six significant digits, so that results do not depend on the last bits of a machine."""
    return float(f"{value:.{_DIGITS - 1}e}")


def profile(
    squares: Squares, best: FloatArray, hessian: FloatArray, functions: FloatArray, growth: FloatArray
) -> tuple[LogInterval, ...]:
    """Profile likelihood intervals of linear functions of two parameters.

    They are the extremes of each function over the points where the sum of squares has grown by its `growth`. These
    are looked for along rays from the minimum; a ray without such a point within `OPEN_FOLD` opens its side.

    Args:
        squares: of parameters of shape (k, 2).
        best: where they are least, shape (2,).
        hessian: half the second derivative there, shape (2, 2).
        functions: one row per function, shape (f, 2).
        growth: shape (f,).
    """
    values, vectors = np.linalg.eigh(hessian)
    reach = float(np.log(OPEN_FOLD))
    root = vectors / np.sqrt(np.maximum(values, 1e-12 * values.max()))
    intervals = []
    rays, limits = [], []
    for function, limit in zip(functions, growth, strict=True):
        towards = root.T @ function
        angles = np.arctan2(towards[1], towards[0]) + np.arange(_RAYS) * 2 * np.pi / _RAYS
        rays.append(np.stack([np.cos(angles), np.sin(angles)], axis=1) @ root.T * np.sqrt(limit))
        limits.append(np.full(_RAYS, limit))
    length, ended = _lengths(squares, best, np.concatenate(rays), np.concatenate(limits), reach)
    for number, function in enumerate(functions):
        mine = slice(number * _RAYS, (number + 1) * _RAYS)
        shift = (rays[number] * length[mine, None]) @ function
        ends = [_extreme(side * shift, ended[mine], reach) for side in (-1.0, 1.0)]
        centre = float(best @ function)
        intervals.append(
            LogInterval(
                centre,
                None if ends[0] is None else centre - ends[0],
                None if ends[1] is None else centre + ends[1],
            )
        )
    return tuple(intervals)


def _extreme(shift: FloatArray, ended: np.ndarray, reach: float) -> float | None:
    furthest = float(shift.max())
    return None if furthest >= reach or bool((~ended & (shift > reach / 10)).any()) else furthest


def _lengths(
    squares: Squares, best: FloatArray, rays: FloatArray, limits: FloatArray, reach: float
) -> tuple[FloatArray, np.ndarray]:
    """How far to go along each ray, and whether an end was found: secants on a sum that grows with the square."""
    longest = reach / np.abs(rays).max(axis=1) * np.sqrt(2.0)
    low, high = np.zeros(len(rays)), longest.copy()
    length = np.minimum(1.0, longest)
    ended = np.zeros(len(rays), dtype=bool)
    least = float(squares(best[None])[0])
    for _ in range(_STEPS):
        grown = (squares(best + length[:, None] * rays) - least) / limits
        over = grown >= 1
        ended |= over
        low, high = np.where(over, low, length), np.where(over, length, high)
        # A sum that grows more slowly is approached from below, so a step goes too far until an end is found.
        step = np.where(ended, 1.0, _BEYOND) * length / np.sqrt(np.clip(grown, 0.02, 50.0))
        length = np.where((step > low) & (step < high), step, np.where(ended, 0.5 * (low + high), high))
    return length, ended
