"""Fits 1:1 binding to all curves of one replicate: one k_on and one k_off, and an error of the model itself.

Real curves are never exactly 1:1. Three things keep the fit and its intervals honest. What an instrument adds has priors per
method (`Method`). R_max and concentration of a curve may deviate from their common values, by as much as sensors and pipettes
do. And the curves deviate from 1:1 by a share of the signal, which is estimated from their residuals: it takes weight from the
fit as least squares would, and it widens the intervals as an error that is correlated over a minute and over the curves.
docs/kinetics.md has the reasons. Knows no verdict.
"""

# The stubs of SciPy and scikit-learn that pyright brings are narrower than these libraries; mypy reads neither.
# pyright: reportArgumentType=false, reportOptionalSubscript=false, reportOptionalOperand=false
# pyright: reportOperatorIssue=false, reportReturnType=false, reportIndexIssue=false, reportAttributeAccessIssue=false

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import least_squares

from prefect_assay.analysis.kinetics.curves import Curve, FloatArray
from prefect_assay.analysis.kinetics.intervals import LogInterval, profile
from prefect_assay.analysis.kinetics.prepare import Matrix
from prefect_assay.analysis.kinetics.response import curve as unit_curve
from prefect_assay.analysis.kinetics.response import unit_response


@dataclass(frozen=True, slots=True)
class Method:
    """What one measurement adds to a curve: standard deviations in the unit of the signal, one per sensor or injection.

    `drift` and `bend` are over a run, `wander` forgets itself in a minute, `bulk` is that of the highest concentration.
    `shared_drift` is what all curves have in common where no blank was subtracted. `edge_s` is how long an injection
    takes to arrive.
    """

    offset: float
    jump: float
    drift: float
    bend: float
    wander: float
    bulk: float
    shared_drift: float
    edge_s: float


METHODS: Final = {
    "nm": Method(0.02, 0.012, 0.015, 0.012, 0.004, 0.05, 0.15, 0.4),  # BLI: a sensor per curve, dipped
    "RU": Method(
        0.5, 0.5, 0.7, 0.5, 0.15, 5.0, 3.0, 1.0
    ),  # SPR: one surface, regenerated; buffers differ in index
}
RMAX_SHARE: Final = 0.1
CONCENTRATION_SHARE: Final = 0.1
LEAST_MISFIT: Final = 0.002
"""No curve is known to be 1:1 within less of its signal."""

_FUNCTIONS: Final = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 1.0]])
_CHI_SQUARE: Final = 3.8415
_WEIGHT_S: Final = (
    40.0  # the time that one independent piece of the model error takes in the weights of the fit
)
_ERROR_S: Final = 60.0  # its correlation in the intervals,
_ERROR_SHARED: Final = 0.8  # and how much of it all curves have in common
_FIRST_MISFIT: Final = 0.03
_FREE_RMAX: Final = 0.5
_SAME_RMAX: Final = 0.01
_FURTHEST: Final = 0.7
_ROUNDS: Final = 8
_STEPS: Final = 4  # within a round: the next one moves the reference anyway
_ROUNDS_AGAIN: Final = 3
_SETTLED: Final = 2e-3
_SETTLED_MISFIT: Final = 0.05
_GRID: Final = 12
_STEP: Final = 1e-3
_EDGES: Final = 5.0
_WIDE: Final = 10.0
_BLIND_S: Final = 8.0
_OTHER_RATE: Final = 1.6  # logarithm of the factor between the dissociations of two processes


@dataclass(frozen=True, slots=True)
class Rates:
    """Logarithms of the rate constants and of K_D, with 95 % intervals at the nominal concentrations."""

    kon: LogInterval
    koff: LogInterval
    kd: LogInterval


@dataclass(frozen=True, slots=True)
class GlobalFit:
    """The best 1:1 description of the curves, and what it had to assume.

    `misfit` is the deviation from 1:1 as a share of the signal. Per curve (c,): `rmax`, the logarithmic errors of the
    `concentration`s, and the `bulk` shifts. `kd_one_rmax` and `kd_free_rmax` (M) are what the fit gives if all curves have
    one R_max, or each its own; None where the curves are 1:1. `baseline` (c, n) is what the instrument adds at `times_s`.
    `evidence` is by how many variances binding describes the curves better than steps and straight lines. `second_process` is
    by how many standard deviations a second process would improve the fit: sites that are slower or faster, or a dissociation
    that slows down where few sites are taken, as that of an analyte with two arms.
    """

    rates: Rates
    misfit: float
    rmax: FloatArray
    concentration: FloatArray
    bulk: FloatArray
    kd_one_rmax: float | None
    kd_free_rmax: float | None
    evidence: float
    second_process: float
    times_s: FloatArray
    baseline: FloatArray
    association_s: float

    def curve(self, number: int, measured: Curve) -> FloatArray:
        """The fitted curve at the times of a measured one, shape (n,)."""
        kon, koff = np.exp(self.rates.kon.best), np.exp(self.rates.koff.best)
        concentration = measured.concentration_M * float(np.exp(self.concentration[number]))
        response = unit_curve(measured.time_s, kon, koff, concentration, self.association_s)
        is_before = self.times_s <= self.association_s
        added = [
            np.interp(measured.time_s, self.times_s[part], self.baseline[number, part])
            for part in (is_before, ~is_before)
        ]
        return np.asarray(
            self.rmax[number] * response + np.where(measured.time_s <= self.association_s, *added)
        )


def fit_one_to_one(data: Matrix) -> GlobalFit:
    """Fit k_on, k_off and R_max to the curves of one replicate."""
    return _Fitter(data).fit()


def rate_bounds(data: Matrix) -> FloatArray:
    """Natural logarithms of the slowest and fastest k_on and k_off that the times of the curves can show, shape (2, 2)."""
    slow, fast = 3e-3, 3.0
    step, end = data.phases[0].step_s, float(data.phases[1].centre_s[-1])
    highest, lowest = float(data.concentration_M.max()), float(data.concentration_M.min())
    return np.log(
        [[slow / data.association_s / highest, fast / step / lowest], [slow / end, fast / step]],
    )


def correlated(first_s: FloatArray, count: FloatArray, step_s: float, tau_s: float) -> FloatArray:
    """Covariance of the means over bins of noise with the correlation exp(-|t - t'| / tau), shape (n, n)."""
    last = first_s + (count - 1) * step_s
    x = np.exp(-step_s / tau_s)
    towards = (1 - x**count) / (1 - x) / count
    gap = np.maximum(first_s[None, :] - last[:, None], 0.0)
    later = np.triu(towards[:, None] * np.exp(-gap / tau_s) * towards[None, :], 1)
    within = (count * (1 + x) / (1 - x) - 2 * x * (1 - x**count) / (1 - x) ** 2) / count**2
    return np.asarray(later + later.T + np.diag(within))


class _Fitter:
    """Least squares around a reference, which moves to its answer: R_max, concentrations and misfit bend the problem.

    All that is linear around the reference is a covariance; what is left are two logarithms of rates and one R_max.
    """

    def __init__(self, data: Matrix) -> None:
        self._data, method = data, METHODS[data.unit]
        self._count = np.concatenate([phase.count for phase in data.phases])
        self._first = np.concatenate([data.phases[0].first_s, data.phases[1].first_s + data.association_s])
        self._step = data.phases[0].step_s
        self._curves, self._bins = data.signal.shape
        self._signal = data.signal.reshape(-1)
        self._bounds = rate_bounds(data)
        self._edge_s = method.edge_s
        times, is_after = data.times_s, self._first > data.association_s
        self._since_edge = np.where(is_after, times - data.association_s, times)
        self._before = (~is_after).astype(float)
        self._bulk = method.bulk * np.sqrt(data.concentration_M / data.concentration_M.max())
        x = times / times[-1]
        modes = np.stack(
            [
                method.offset * np.ones_like(x),
                method.jump * is_after,
                method.drift * x,
                method.bend * 4 * x * (1 - x),
            ]
        )
        noise = np.diag(data.noise.white / self._count)
        if data.noise.correlated:
            noise += data.noise.correlated * self._correlated(data.noise.tau_s)
        slow = modes.T @ modes + method.wander**2 * self._correlated(60.0)
        apart = np.eye(self._curves) + (1 / data.blanks if data.blanks else 0.0)
        self._noise = np.kron(apart, noise)
        self._baseline = np.kron(apart, slow)
        if not data.blanks:
            self._baseline += np.kron(np.ones_like(apart), method.shared_drift**2 * np.multiply.outer(x, x))
        self._add_blocks(self._baseline, self._bulk[:, None] * self._before)
        edge = np.exp(-np.abs(times[:, None] - times) / (_EDGES * method.edge_s))
        self._edge = np.kron(0.5 + 0.5 * np.eye(self._curves), edge)
        self._ratio = np.ones(self._curves)  # of R_max to the common one
        self._error = np.zeros(self._curves)  # of the concentrations
        self._misfit = _FIRST_MISFIT
        self._unit, self._slope = np.zeros_like(data.signal), np.zeros_like(data.signal)
        self._theta, self._rmax = self._start(), 1.0
        self._jacobian = np.empty((0, 2))

    def fit(self) -> GlobalFit:
        self._descend()
        for number in range(_ROUNDS):
            before, misfit = self._theta, self._misfit
            self._move_reference()
            self._whiten(self._build_covariance(RMAX_SHARE))
            self._descend(_STEPS)
            self._solve_amounts()
            has_settled = np.abs(self._theta - before).max() < _SETTLED
            if number and has_settled and abs(np.log(self._misfit / misfit)) < _SETTLED_MISFIT:
                break
        self._move_reference()
        covariance = self._build_covariance(RMAX_SHARE)
        self._whiten(covariance)
        self._descend()
        alpha = self._alpha()
        baseline = (self._baseline @ alpha.reshape(-1)).reshape(self._curves, self._bins)
        bulk = self._bulk**2 * (alpha @ self._before)
        theta, rmax = self._theta, self._rmax * self._ratio
        second_process = self._test_second_process()
        intervals = profile(
            self._squares, theta, self._jacobian.T @ self._jacobian, _FUNCTIONS, self._growth(covariance)
        )
        kd_one = kd_free = None
        if self._misfit > LEAST_MISFIT:
            one, free = self._with_rmax(_SAME_RMAX), self._with_rmax(_FREE_RMAX)
            spread = np.abs(_FUNCTIONS @ (free - one)) / np.sqrt(12.0)
            intervals = tuple(
                interval.widened(float(more)) for interval, more in zip(intervals, spread, strict=True)
            )
            kd_one, kd_free = (float(np.exp(logs[1] - logs[0])) for logs in (one, free))
        return GlobalFit(
            Rates(*intervals),
            self._misfit,
            rmax,
            self._error,
            bulk,
            kd_one,
            kd_free,
            self._evidence(),
            second_process,
            self._data.times_s,
            baseline,
            self._data.association_s,
        )

    def _correlated(self, tau_s: float) -> FloatArray:
        return correlated(self._first, self._count, self._step, tau_s)

    def _add_blocks(self, covariance: FloatArray, columns: FloatArray) -> None:
        """Add a column of each curve (c, n) with deviation 1, independent of the other curves'."""
        blocks = covariance.reshape(self._curves, self._bins, self._curves, self._bins)
        for number, column in enumerate(columns):
            blocks[number, :, number, :] += column[:, None] * column

    def _start(self) -> FloatArray:
        """The best of a grid of rates, with weights by the measured signal."""
        size = np.abs(self._data.signal)
        size = np.maximum(size, 0.3 * size.max(axis=1, keepdims=True))
        covariance = np.asarray(self._noise + self._baseline + np.diag(self._white(size)))
        self._add_blocks(covariance, 2 * RMAX_SHARE * self._data.signal)
        self._whiten(covariance)
        axes = [np.linspace(low, high, max(_GRID, int(high - low)) + 2)[1:-1] for low, high in self._bounds]
        grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
        return np.asarray(grid[int(np.argmin(self._squares(grid)))])

    def _white(self, size: FloatArray) -> FloatArray:
        """The model error as independent noise: least squares over time, whatever the bins."""
        return (self._misfit**2 * size**2 * _WEIGHT_S / (self._count * self._step)).reshape(-1)

    def _whiten(self, covariance: FloatArray) -> None:
        factor = np.linalg.cholesky(covariance)
        self._root = solve_triangular(factor, np.eye(len(factor)), lower=True, check_finite=False)
        self._target = self._root @ self._signal

    def _shapes(self, theta: FloatArray, error: FloatArray) -> FloatArray:
        concentration = self._data.concentration_M * np.exp(error)
        kon, koff = np.exp(theta[:, 0]), np.exp(theta[:, 1])
        return unit_response(kon, koff, concentration, self._data.phases, self._data.association_s)

    def _columns(self, theta: FloatArray) -> FloatArray:
        """Whitened curves for a common R_max of 1, around the reference, shape (k, N)."""
        rest = (1 - self._ratio)[:, None] * self._unit - self._error[:, None] * self._slope
        shapes = self._ratio[:, None] * self._shapes(theta, self._error) + rest
        return np.asarray(shapes.reshape(len(theta), -1) @ self._root.T)

    def _squares(self, theta: FloatArray) -> FloatArray:
        columns = self._columns(theta)
        along = np.maximum(columns @ self._target, 0.0)
        return np.asarray(self._target @ self._target - along**2 / np.sum(columns**2, axis=1))

    def _residuals(self, theta: FloatArray) -> FloatArray:
        columns = self._columns(np.atleast_2d(theta))
        along = np.maximum(columns @ self._target, 0.0) / np.sum(columns**2, axis=1)
        self._rmax = max(float(along[0]), 1e-9)
        return np.asarray(self._target - along[:, None] * columns)

    def _derivative(self, theta: FloatArray) -> FloatArray:
        inward = np.where(theta + _STEP > self._bounds[:, 1], -_STEP, _STEP)
        points = self._residuals(np.concatenate([theta[None], theta + np.diag(inward)]))
        return np.asarray((points[1:] - points[0]).T / inward)

    def _descend(self, steps: int = 40) -> None:
        low, high = self._bounds.T
        start = np.clip(self._theta, low + _STEP, high - _STEP)
        answer = least_squares(
            lambda theta: self._residuals(theta)[0],
            start,
            self._derivative,
            bounds=(low, high),
            xtol=1e-5,
            ftol=1e-7,
            max_nfev=steps,
        )
        self._theta, self._jacobian = answer.x, answer.jac
        self._residuals(answer.x)

    def _move_reference(self) -> None:
        theta = self._theta[None]
        self._unit = self._shapes(theta, self._error)[0]
        above, below = (self._shapes(theta, self._error + side)[0] for side in (_STEP, -_STEP))
        self._slope = self._ratio[:, None] * (above - below) / (2 * _STEP)

    @property
    def _size(self) -> FloatArray:
        """What a deviation from 1:1 is a share of: between a curve's own height and that of the highest, (c, 1)."""
        peak = (self._rmax * self._ratio[:, None] * self._unit).max(axis=1, keepdims=True)
        return np.asarray(np.sqrt(peak * peak.max()))

    def _build_covariance(self, rmax_share: float) -> FloatArray:
        """Covariance of all bins: noise and baseline, shared deviations of R_max and concentration, late changes of phase."""
        covariance = np.asarray(self._noise + self._baseline)
        self._add_blocks(covariance, rmax_share * self._rmax * self._unit)
        self._add_blocks(covariance, CONCENTRATION_SHARE * self._rmax * self._slope)
        current = self._rmax * self._ratio[:, None] * self._unit
        late = np.abs(np.gradient(current, self._data.times_s, axis=1)) * self._edge_s
        late = np.minimum(late, 0.5 * current.max(axis=1, keepdims=True))
        late = (late * np.exp(-self._since_edge / (_EDGES * self._edge_s))).reshape(-1)
        covariance += late[:, None] * late * self._edge
        covariance[np.diag_indices_from(covariance)] += self._white(self._size * np.ones(self._bins))
        return covariance

    def _alpha(self) -> FloatArray:
        """The residuals, weighted by the inverse covariance, shape (c, n)."""
        left = self._residuals(self._theta)[0]
        return np.asarray((self._root.T @ left).reshape(self._curves, self._bins))

    def _solve_amounts(self) -> None:
        """R_max and concentration of each curve, and the misfit, from the residuals."""
        alpha = self._alpha()
        self._ratio, self._error = self._deviations(alpha, RMAX_SHARE)
        size = self._size
        noise = np.diag(self._noise).reshape(self._curves, self._bins)
        left = (noise + self._white(size * np.ones(self._bins)).reshape(noise.shape)) * alpha
        excess = np.sum(self._count * (left**2 - noise)) / np.sum(self._count * size**2)
        self._misfit = max(LEAST_MISFIT, 1.2 * float(np.sqrt(max(excess, 0.0))))

    def _growth(self, covariance: FloatArray) -> FloatArray:
        """By how much the squares grow within 95 % of each function of the rates, if the model error is correlated."""
        size = np.broadcast_to(self._size, (self._curves, self._bins)).reshape(-1)
        error = covariance.copy()
        error[np.diag_indices_from(error)] -= self._white(size.reshape(self._curves, -1))
        apart = _ERROR_SHARED + (1 - _ERROR_SHARED) * np.eye(self._curves)
        error += self._misfit**2 * size[:, None] * size * np.kron(apart, self._correlated(_ERROR_S))
        gram = np.linalg.pinv(self._jacobian.T @ self._jacobian, rcond=1e-12, hermitian=True)
        effects = self._jacobian @ gram @ _FUNCTIONS.T
        spread = self._root.T @ effects
        variance = np.sum(spread * (error @ spread), axis=0)
        return np.asarray(_CHI_SQUARE * np.maximum(variance / np.sum(effects**2, axis=0), 0.5))

    def _evidence(self) -> float:
        """What the fitted curves gain if every curve has, free, a step and a line in time per phase."""
        covariance = np.asarray(self._noise + self._baseline)
        highest = float(np.abs(self._signal).max())
        for phase in (self._before, 1 - self._before):
            for column in (phase, phase * self._since_edge / max(self._since_edge.max(), 1.0)):
                self._add_blocks(covariance, np.tile(_WIDE * highest * column, (self._curves, 1)))
        # A bulk shift also arrives over seconds: the start of a phase is not evidence.
        blind = _WIDE * highest * (self._since_edge < _BLIND_S)
        covariance[np.diag_indices_from(covariance)] += np.tile(blind**2, self._curves)
        self._whiten(covariance)
        shape = self._root @ (self._ratio[:, None] * self._unit).reshape(-1)
        along = max(float(shape @ self._target), 0.0)
        return along**2 / float(shape @ shape)

    def _test_second_process(self) -> float:
        """The largest score, in standard deviations, of curves that are added in a direction which 1:1 cannot take."""

        def shift(logarithm: float) -> FloatArray:
            shapes = self._shapes(self._theta[None] + np.array([0.0, logarithm]), self._error)[0]
            return np.asarray(self._ratio[:, None] * shapes)

        now, doses = shift(0.0), self._data.concentration_M
        taken = doses / (doses + np.exp(self._theta[1] - self._theta[0]))
        arms = (taken - taken.mean())[:, None] * (shift(_STEP) - shift(-_STEP))
        directions = [shift(-_OTHER_RATE) - now, shift(_OTHER_RATE) - now, arms]
        added = self._root @ np.stack([direction.reshape(-1) for direction in directions], axis=1)
        known, _ = np.linalg.qr(np.column_stack([self._root @ now.reshape(-1), self._jacobian]))
        added -= known @ (known.T @ added)
        scores = self._residuals(self._theta)[0] @ added / np.maximum(np.linalg.norm(added, axis=0), 1e-12)
        return float(np.max(scores))

    def _with_rmax(self, share: float) -> FloatArray:
        """The rates if R_max of a curve deviates by this share."""
        before = self._theta, self._rmax, self._ratio, self._error, self._unit, self._slope
        self._ratio = np.ones(self._curves)
        for _ in range(_ROUNDS_AGAIN):
            self._move_reference()
            self._whiten(self._build_covariance(share))
            self._descend(_STEPS)
            self._ratio, self._error = self._deviations(self._alpha(), share)
        other = self._theta
        self._theta, self._rmax, self._ratio, self._error, self._unit, self._slope = before
        return other

    def _deviations(self, alpha: FloatArray, share: float) -> tuple[FloatArray, FloatArray]:
        """Each curve's R_max over the common one, and the logarithmic error of its concentration."""
        ratio = 1 + share**2 * self._rmax * np.sum(self._unit * alpha, axis=1)
        error = CONCENTRATION_SHARE**2 * self._rmax * np.sum(self._slope * alpha, axis=1)
        return np.clip(ratio, 0.05, 20.0), np.clip(error, -_FURTHEST, _FURTHEST)
