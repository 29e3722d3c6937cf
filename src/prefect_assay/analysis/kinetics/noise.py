"""Estimates noise from residuals, and widens intervals by it.

Noise of a sample is white or correlated over a few seconds; each sensor also drifts apart from the others in
proportion to time; and the noise and drift of a subtracted blank are in every curve. Knows no kinetics.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import erfc, sqrt
from typing import Final

import numpy as np
from scipy.stats import f as f_distribution

from prefect_assay.analysis.kinetics.curves import FloatArray

_OWN_DRIFT: Final = {"nm": 0.015, "RU": 0.3}
_WITHOUT_BLANK: Final = 10.0
_BLOCK: Final = 5
_NORMAL_QUARTILE: Final = 0.6745


@dataclass(frozen=True, slots=True)
class Noise:
    """The noise behind weighted residuals: a row of `drift` per bin, for one unit of drift over the run."""

    variance: float
    inflation: float
    freedom: int
    drift: FloatArray
    own_drift: float
    has_blank: bool

    @property
    def quantile(self) -> float:
        """Of the F distribution, for one parameter and 95 %."""
        return float(f_distribution.ppf(0.95, 1, self.freedom))

    def growth(self, jacobian: FloatArray, direction: FloatArray) -> float:
        """How much the sum of squares may grow within the 95 % interval of one function of the parameters.

        The F quantile times what the noise adds to the estimate, relative to independent noise of variance 1.

        Args:
            jacobian: of the weighted residuals, linear parameters projected out, shape (c, n, p).
            direction: gradient of the function, shape (p,).
        """
        effect = influence(jacobian, direction)
        white = float(np.sum(effect**2))
        if white <= 0:
            return float("inf")
        return self.quantile * self.total(self.random(effect), effect @ self.drift) / white

    def random(self, effect: FloatArray) -> float:
        """Variance that random noise gives an estimate with this `influence`."""
        common = float(np.sum(effect.sum(axis=0) ** 2)) if self.has_blank else 0.0
        # Half of the residual variance is the blank's, the same in all curves.
        shared = 2.0 if self.has_blank else 1.0
        return self.variance * self.inflation * (float(np.sum(effect**2)) + common) / shared

    def total(self, random: float, drifts: FloatArray) -> float:
        """The variance with that of the drift; `drifts` is what one unit of each curve's drift adds, shape (c,)."""
        blank = float(np.sum(drifts) ** 2) if self.has_blank else 0.0
        return random + self.own_drift**2 * (float(np.sum(drifts**2)) + blank)


def drift_deviation(unit: str, *, has_blank: bool) -> float:
    """Standard deviation of what a sensor drifts over a run, in the unit of the signal.

    With a blank it is the drift apart from the others; without one, that which all sensors share is still in the curves.
    """
    return _OWN_DRIFT[unit] * (1.0 if has_blank else _WITHOUT_BLANK)


def influence(jacobian: FloatArray, direction: FloatArray) -> FloatArray:
    """How much each weighted residual moves the estimate of one function of the parameters, shape (c, n).

    Args:
        jacobian: of the weighted residuals, linear parameters projected out, shape (c, n, p).
        direction: gradient of the function, shape (p,).
    """
    flat = jacobian.reshape(-1, jacobian.shape[-1])
    return np.asarray(jacobian @ (np.linalg.pinv(flat.T @ flat, rcond=1e-12, hermitian=True) @ direction))


def noise_of(
    residuals: FloatArray, drift: FloatArray, parameters: int, unit: str, *, has_blank: bool
) -> Noise:
    """Measure the noise of weighted residuals.

    Args:
        residuals: weighted, shape (c, n).
        drift: weighted response to one unit of drift over the run, shape (n,).
        parameters: how many were fitted to all curves.
        unit: of the signal.
        has_blank: a blank was subtracted.
    """
    left = less_drift(residuals, drift)
    blocks = left.size // _BLOCK
    return Noise(
        variance=float(np.sum(left**2)) / max(left.size - parameters - len(left), 1),
        inflation=inflation(left),
        freedom=max(blocks - parameters - len(left), 1),
        drift=drift,
        own_drift=drift_deviation(unit, has_blank=has_blank),
        has_blank=has_blank,
    )


def less_drift(residuals: FloatArray, drift: FloatArray) -> FloatArray:
    """The residuals without the drift of each sensor, shape (c, n)."""
    return np.asarray(residuals - (residuals @ drift)[:, None] * drift / float(drift @ drift))


def inflation(residuals: FloatArray) -> float:
    """Variance of sums over neighbouring bins, relative to independent bins; at least 1."""
    usable = residuals.shape[1] // _BLOCK * _BLOCK
    sums = residuals[:, :usable].reshape(residuals.shape[0], -1, _BLOCK).sum(axis=2)
    mean_square = float(np.mean(residuals**2))
    return max(1.0, float(np.mean(sums**2)) / (_BLOCK * mean_square)) if mean_square else 1.0


def white_noise(residuals: FloatArray) -> float:
    """Standard deviation of weighted residuals, from differences of neighbours, which a misfit hardly reaches."""
    return float(np.median(np.abs(np.diff(residuals, axis=1)))) / _NORMAL_QUARTILE / sqrt(2.0)


def runs_p(residuals: Iterable[FloatArray]) -> float:
    """One-sided p value of the Wald-Wolfowitz test over all curves: small where residuals keep their sign too long."""
    runs = expected = variance = 0.0
    for values in residuals:
        row = values > 0
        up, n = int(row.sum()), len(row)
        if 0 < up < n:
            mean = 2.0 * up * (n - up) / n + 1
            runs += 1 + int(np.count_nonzero(row[1:] != row[:-1]))
            expected += mean
            variance += (mean - 1) * (mean - 2) / (n - 1)
    return 0.5 * erfc((expected - runs) / sqrt(2 * variance)) if variance > 0 else 0.0
