"""A Gaussian process with evidence of several kinds: values, limits, and single wrong ones that must not count.

Limits are values that are expected beyond them, given all else (expectation of a truncated normal); a value that is far from what
all others say of it gets more noise, and so less weight. Both follow from predictions that leave the value itself out.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.special import log_ndtr, ndtr

from prefect_assay.analysis.selection.candidates import Floats

_PASSES: Final = 6
_FAR: Final = 2.5  # standard deviations from what others say: more is damped
_DAMPING: Final = 6
_JITTERS: Final = (0.0, 1e-8, 1e-6, 1e-4, 1e-2)
_SMALL: Final = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What was measured, minus what was expected. `bounds` is 1 where the true value is at most this one, -1 at least, else 0."""

    values: Floats
    noises: Floats  # variances
    bounds: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.values)


class Process:
    """The posterior of a kernel matrix and evidence.

    Args:
        covariance: of the true values of what was measured.
        evidence: a value for each row; not empty.
        robust: damp values that are far from what all others say of them.
    """

    def __init__(self, covariance: Floats, evidence: Evidence, *, robust: bool) -> None:
        targets, noises = evidence.values.copy(), evidence.noises.copy()
        exact, bounded = evidence.bounds == 0, evidence.bounds != 0
        self._factor(covariance, noises, targets)
        for _ in range(_PASSES if bounded.any() or robust else 0):
            inverse = self.whiten.T @ self.whiten
            spread = np.sqrt(1 / np.maximum(np.diag(inverse), _SMALL))
            without = targets - self.alpha * spread**2
            if robust:
                far = np.abs(evidence.values - without) / np.maximum(
                    np.sqrt(np.maximum(spread**2 - noises + evidence.noises, _SMALL)), _SMALL
                )
                noises[exact] = (evidence.noises * np.maximum(far / _FAR, 1) ** _DAMPING)[exact]
            targets[bounded] = _beyond(without, spread, evidence)[bounded]
            self._factor(covariance, noises, targets)
        self.noises, self.targets = noises, targets

    def _factor(self, covariance: Floats, noises: Floats, targets: Floats) -> None:
        lower = factor_of(covariance, noises)
        self.whiten = solve_triangular(lower, np.eye(len(lower)), lower=True, check_finite=False)
        whitened = self.whiten @ targets
        self.alpha = self.whiten.T @ whitened
        self.half_log_determinant = float(np.log(np.diag(lower)).sum())
        self.misfit = float(whitened @ whitened) / len(targets)


def factor_of(covariance: Floats, noises: Floats) -> Floats:
    """A lower Cholesky factor of the covariance with noise; a little more is added where rounding asks for it."""
    size = float(np.mean(np.diag(covariance))) or 1.0
    for jitter in _JITTERS:
        try:
            return np.asarray(
                cholesky(covariance + np.diag(noises + jitter * size), lower=True, check_finite=False)
            )
        except LinAlgError:
            continue
    return np.diag(np.sqrt(np.diag(covariance) + noises + size))


def _beyond(mean: Floats, spread: Floats, evidence: Evidence) -> Floats:
    """The expected value of a normal distribution beyond a limit."""
    sign = evidence.bounds.astype(np.float64)
    steps = sign * (evidence.values - mean) / spread
    hazard = np.exp(-np.square(steps) / 2 - 0.5 * math.log(2 * math.pi) - log_ndtr(steps))
    beyond: Floats = mean - sign * spread * hazard
    return beyond


def expected_improvement(mean: Floats, deviation: Floats, best: float) -> Floats:
    """How much more than `best` a value is on average, counting less as nothing."""
    gain = mean - best
    steps = gain / deviation
    density = np.exp(-np.square(steps) / 2) / math.sqrt(2 * math.pi)
    promised: Floats = np.maximum(gain * ndtr(steps) + deviation * density, 0)
    return promised
