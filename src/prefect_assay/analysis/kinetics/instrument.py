"""Models what an instrument adds to the curves of one replicate: a covariance, and columns with priors.

Each sensor has its offset, a jump where the dissociation starts, drift that is straight or bent, wander, and noise that
is white or correlated over seconds. The subtracted blank has them, too, and brings them into all curves. These are the
covariance. Bulk shift, Rmax and the error of one curve's concentration depend on the curve or the model: they are
columns of a linear problem with Gaussian priors, solved inside. docs/kinetics.md has the reasons. Knows no mechanism.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from prefect_assay.analysis.kinetics.curves import FloatArray
from prefect_assay.analysis.kinetics.prepare import Matrix

Shape = Callable[[FloatArray, FloatArray], FloatArray]
"""The response for Rmax = 1: parameters (k, p) and concentrations (c,) to curves (k, c, n)."""


@dataclass(frozen=True, slots=True)
class Priors:
    """Standard deviations per sensor: in nm (times `unit` for RU), or as shares. A column each of docs/kinetics.md."""

    offset: float = 0.02
    jump: float = 0.012
    drift: float = 0.015  # over a run
    bend: float = 0.012
    wander: float = 0.004
    wander_s: float = 60.0
    bulk: float = 0.05
    rmax: float = 0.1
    concentration: float = 0.12
    drift_without_blank: float = 0.15


PRIORS: Final = Priors()
UNIT: Final = {"nm": 1.0, "RU": 20.0}
_BUMP: Final = 0.02
_LEAST_SHARE: Final = 1e-9
_FURTHEST: Final = 0.7
_ROUNDS: Final = 2
_KINDS: Final = 3
_WANDERS: Final = (0.0, 0.03, 0.1, 0.3, 1.0, 3.0)
_EXPECTATIONS: Final = 12


def correlated(first_s: FloatArray, count: FloatArray, step_s: float, tau_s: float) -> FloatArray:
    """Covariance of the means over bins of noise with the correlation exp(-|t - t'| / tau), shape (n, n)."""
    last = first_s + (count - 1) * step_s
    x = np.exp(-step_s / tau_s)
    towards = (1 - x**count) / (1 - x) / count
    gap = np.maximum(first_s[None, :] - last[:, None], 0.0)
    later = np.triu(towards[:, None] * np.exp(-gap / tau_s) * towards[None, :], 1)
    own = (count * (1 + x) / (1 - x) - 2 * x * (1 - x**count) / (1 - x) ** 2) / count**2
    return np.asarray(later + later.T + np.diag(own))


@dataclass(frozen=True, slots=True)
class Solution:
    """The best linear parameters for one set of nonlinear ones.

    `square` is the sum of squares with the penalties of the priors, `rmax` that of each curve (c,), `left` the whitened
    residuals (c, n), `amounts` those of the columns in standard deviations (c, m), `fitted` the curves (c, n) with all
    that the instrument adds but the noise, `seen` the covariance of a curve's bins as the residuals show it (n, n).
    """

    square: float
    rmax: FloatArray
    left: FloatArray
    amounts: FloatArray
    fitted: FloatArray
    seen: FloatArray
    distance: float


@dataclass(frozen=True, slots=True)
class _System:
    """The linear problem at k sets of parameters, and its solution."""

    one: FloatArray
    columns: FloatArray
    rmax: FloatArray
    amounts: FloatArray
    square: FloatArray
    errors: FloatArray

    @property
    def modelled(self) -> FloatArray:
        """Whitened curves, shape (k, c, n)."""
        amounts = self.amounts.reshape(self.columns.shape[:-1])
        mine = np.sum(amounts[..., None] * self.columns, axis=-2)
        return np.asarray(self.rmax[..., None, None] * self.one + mine)


class Instrument:
    """The curves of one replicate, whitened."""

    def __init__(self, data: Matrix, priors: Priors = PRIORS) -> None:
        self.data, self._priors = data, priors
        unit = UNIT[data.unit]
        first = np.concatenate([data.phases[0].first_s, data.phases[1].first_s + data.association_s])
        count = np.concatenate([phase.count for phase in data.phases])
        step = data.phases[0].step_s
        after = first > data.association_s
        noise = np.diag(data.noise.white / count)
        if data.noise.correlated:
            noise = noise + data.noise.correlated * correlated(first, count, step, data.noise.tau_s)
        x = data.times_s / data.times_s[-1]
        drift = priors.drift if data.blanks else priors.drift_without_blank
        modes = unit * np.stack(
            [
                priors.offset * np.ones_like(x),
                priors.jump * after,
                drift * x,
                priors.bend * 4 * x * (1 - x),
            ],
            axis=1,
        )
        self._modes = modes
        self._wander = (unit * priors.wander) ** 2 * correlated(first, count, step, priors.wander_s)
        self._slow = modes @ modes.T + self._wander
        self._noise = noise
        self._whiten = np.linalg.inv(np.linalg.cholesky(self._slow + noise))
        curves = len(data.concentration_M)
        shared = np.eye(curves) + (1 / data.blanks if data.blanks else 0.0)
        self._inverse = np.linalg.inv(shared)
        self._pairs = np.kron(self._inverse, np.ones((_KINDS, _KINDS)))
        self._apart = np.linalg.inv(np.linalg.cholesky(shared))
        self._signal = data.signal @ self._whiten.T
        share = data.concentration_M / data.concentration_M.max()
        self._bulk = (unit * priors.bulk * np.sqrt(share))[:, None] * ((1.0 - after) @ self._whiten.T)
        self._total = float(np.sum(self._signal * (self._inverse @ self._signal)))

    @property
    def size(self) -> int:
        """Whitened residuals of all curves."""
        return int(self._signal.size)

    def _system(self, shape: Shape, theta: FloatArray, shift: FloatArray, rmax: FloatArray | None) -> _System:
        """The linear problem at (k, p) parameters, around logarithmic errors of the concentrations (k, c)."""
        concentration = self.data.concentration_M * np.exp(shift)
        one = shape(theta, concentration)
        more = (shape(theta, concentration * (1 + _BUMP)) - one) / np.log1p(_BUMP)
        one = (one - shift[..., None] * more) @ self._whiten.T
        more = more @ self._whiten.T
        along = self._inverse @ self._signal
        mixed = self._inverse @ one
        own = np.sum(mixed * one, axis=(-2, -1))
        seen = np.sum(one * along, axis=(-2, -1))
        found = seen / np.maximum(own, 1e-300) if rmax is None else rmax
        rmax = np.maximum(found, _LEAST_SHARE)
        scale = rmax[..., None, None]
        columns = np.stack(
            [
                np.broadcast_to(self._bulk, one.shape),
                self._priors.rmax * scale * one,
                self._priors.concentration * scale * more,
            ],
            axis=-2,
        )
        curves, kinds, bins = columns.shape[-3:]
        flat = columns.reshape(*columns.shape[:-3], curves * kinds, bins)
        gram = flat @ np.swapaxes(flat, -1, -2) * self._pairs + np.eye(curves * kinds)
        with_one = np.sum(columns * mixed[..., None, :], axis=-1).reshape(*flat.shape[:-1])
        with_signal = np.sum(columns * along[:, None, :], axis=-1).reshape(*flat.shape[:-1])
        both = np.linalg.solve(gram, np.stack([with_one, with_signal], axis=-1))
        left = own - np.sum(with_one * both[..., 0], axis=-1)
        rest = seen - np.sum(with_one * both[..., 1], axis=-1)
        found = rest / np.maximum(left, 1e-300)
        square = self._total - np.sum(with_signal * both[..., 1], axis=-1) - rest * found
        amounts = both[..., 1] - both[..., 0] * found[..., None]
        share = rmax / np.maximum(found, _LEAST_SHARE)
        errors = self._priors.concentration * share[..., None] * amounts[..., 2::kinds]
        return _System(one, columns, found, amounts, square, np.clip(errors, -_FURTHEST, _FURTHEST))

    def _solved(self, shape: Shape, theta: FloatArray, rounds: int = _ROUNDS) -> _System:
        """The error of a concentration bends the curve: the linear problem is solved again around the last answer."""
        shift = np.zeros((len(theta), len(self.data.concentration_M)))
        found = self._system(shape, theta, shift, None)
        for _ in range(rounds):
            found = self._system(shape, theta, found.errors, found.rmax)
        return found

    def squares(self, shape: Shape, theta: FloatArray, *, rounds: int = _ROUNDS) -> FloatArray:
        """The penalised sum of squares for each set of parameters (k, p), shape (k,)."""
        return self._solved(shape, theta, rounds).square

    def residuals(self, shape: Shape, theta: FloatArray) -> FloatArray:
        """Whitened residuals of all curves and then the penalties, shape (k, c * n + c * m)."""
        found = self._solved(shape, theta)
        left = self._apart @ (self._signal - found.modelled)
        return np.concatenate([left.reshape(*left.shape[:-2], -1), found.amounts], axis=-1)

    def solution(self, shape: Shape, theta: FloatArray) -> Solution:
        """Everything for one set of parameters (p,)."""
        found = self._solved(shape, theta[None])
        left = (self._signal - found.modelled)[0]
        slow = left @ self._whiten @ self._slow
        raw = np.linalg.solve(self._whiten, left.T).T
        amounts = found.amounts[0].reshape(len(left), -1)
        rmax = found.rmax[0] * (1 + self._priors.rmax * amounts[:, 1])
        return Solution(
            float(found.square[0]),
            rmax,
            self._apart @ left,
            amounts,
            self.data.signal - raw + slow,
            self._seen(self._apart @ raw),
            float(np.sqrt(np.mean(raw**2))),
        )

    def _seen(self, residuals: FloatArray) -> FloatArray:
        """Covariance of noise and of the baselines as the residuals (c, n) show them, by maximum likelihood, (n, n).

        A component of the baselines counts as seen on one more sensor, with its prior: four sensors alone could hide it.
        """
        root = np.linalg.inv(np.linalg.cholesky(self._noise))
        sizes, vectors = np.linalg.eigh(root @ self._wander @ root.T)
        seen, modes = residuals @ root.T @ vectors, (root @ self._modes).T @ vectors
        curves, best, cost = len(residuals), (0.0, np.ones(len(modes))), np.inf
        for wander in _WANDERS:
            weight = 1 / (1 + wander * np.maximum(sizes, 0.0))
            gram, along = modes * weight @ modes.T, seen * weight @ modes.T
            variances = np.ones(len(modes))
            for _ in range(_EXPECTATIONS):
                spread = np.linalg.inv(gram + np.diag(1 / variances))
                mean = along @ spread
                variances = (np.sum(mean**2, axis=0) + curves * np.diag(spread) + 1) / (curves + 1)
            spread = np.linalg.inv(gram + np.diag(1 / variances))
            size = np.linalg.slogdet(spread)[1] - np.sum(np.log(variances))
            square = np.sum(seen**2 * weight) - np.sum((along @ spread) * along)
            mine = square - curves * (np.sum(np.log(weight)) + size)
            mine += float(np.sum(np.log(variances) + 1 / variances))
            if mine < cost:
                best, cost = (wander, variances), mine
        wander, variances = best
        return np.asarray(self._noise + wander * self._wander + self._modes * variances @ self._modes.T)

    def whitened(self, covariance: FloatArray) -> FloatArray:
        """What a covariance of one curve's bins (n, n) is among whitened residuals."""
        return np.asarray(self._whiten @ covariance @ self._whiten.T)
