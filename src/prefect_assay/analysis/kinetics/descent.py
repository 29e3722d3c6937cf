"""Least squares by Levenberg and Marquardt, with all trial points of a step evaluated at once. Knows no model."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from prefect_assay.analysis.kinetics.curves import FloatArray

_STEP: Final = 1e-4
_STEPS: Final = 40
_DAMPING: Final = (1e-8, 1e-3, 1e-1, 1e1)
_LONGEST: Final = 1.0
_ENOUGH: Final = 1e-3


@dataclass(frozen=True, slots=True)
class Minimum:
    """Where the squares are least: parameters (p,), their sum, and the derivative of the residuals (n, p)."""

    theta: FloatArray
    square: float
    jacobian: FloatArray


def descend(
    residuals: Callable[[FloatArray], FloatArray],
    start: FloatArray,
    bounds: FloatArray,
    enough: float = _ENOUGH,
) -> Minimum:
    """Go down from `start` (p,) within `bounds` (p, 2). `residuals` takes points (k, p) and gives (k, n).

    A step that gains less than `enough` is the last one.
    """
    theta = np.clip(start, bounds[:, 0], bounds[:, 1])
    damping = np.array(_DAMPING)
    square, jacobian = np.inf, np.empty((0, theta.size))
    for _ in range(_STEPS):
        # A difference that would leave the bounds is taken inwards.
        inward = np.where(theta + _STEP > bounds[:, 1], -_STEP, _STEP)
        found = residuals(np.concatenate([theta[None], theta + np.diag(inward)]))
        jacobian = (found[1:] - found[0]).T / inward
        square = float(found[0] @ found[0])
        gram, slope = jacobian.T @ jacobian, jacobian.T @ found[0]
        scale = np.diag(np.maximum(np.diag(gram), 1e-12 * np.trace(gram) + 1e-300))
        steps = np.array([-np.linalg.solve(gram + factor * scale, slope) for factor in damping])
        steps /= np.maximum(np.abs(steps).max(axis=1, keepdims=True) / _LONGEST, 1.0)
        trials = np.clip(theta + steps, bounds[:, 0], bounds[:, 1])
        sums = np.sum(residuals(trials) ** 2, axis=1)
        best = int(np.argmin(sums))
        if not sums[best] < square - enough:
            break
        theta = trials[best]
    return Minimum(theta, square, jacobian)
