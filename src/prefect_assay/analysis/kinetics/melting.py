"""Melting curves: unfolding in one or two steps between baselines, and the maximum of the first derivative.

The heat capacity and the bend of the baselines are what a curve hardly determines: they have priors, and their
uncertainty is in the interval. Temperatures in degrees Celsius outside and kelvin inside, enthalpy in J/mol.
"""

# The stubs of SciPy and scikit-learn that pyright brings are narrower than these libraries; mypy reads neither.
# pyright: reportArgumentType=false, reportOptionalSubscript=false, reportOptionalOperand=false
# pyright: reportOperatorIssue=false, reportReturnType=false, reportIndexIssue=false, reportAttributeAccessIssue=false

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.optimize import OptimizeResult, least_squares

from prefect_assay.analysis.kinetics.analysis import (
    Estimate,
    ReplicateMelting,
    ServiceValues,
    Verdict,
)
from prefect_assay.analysis.kinetics.curves import FittedMelt, FloatArray
from prefect_assay.analysis.kinetics.intervals import NORMAL, rounded
from prefect_assay.analysis.threads import use_one_thread

AGREEMENT_C: Final = 1.0
"""How far the service's melting temperature may lie outside of the interval: what its own is uncertain by."""
WIDEST_C: Final = 2.5
"""An interval that reaches further to a side does not tell agreement."""
_GAS: Final = 8.314462618
_ZERO_C: Final = 273.15
# Heat capacity over enthalpy, both per residue (Robertson and Murphy, Chem. Rev. 97, 1251, 1997): 58 J/(mol K) and
# 2920 J/mol at 60 °C. Proteins scatter around these means by a third.
_HEAT_CAPACITY: Final = 58.0
_ENTHALPY_60C: Final = 2_920.0
_CAPACITY_SCATTER: Final = 0.3
_BEND: Final = 0.03  # of a baseline, as a share of the signal's range
_ENTHALPIES: Final = (5e4, 2e6)
_MARGIN_C: Final = 2.0
_GAIN: Final = 1.5
_AMPLITUDE: Final = 5.0
_SMOOTH_C: Final = 4.0
_POINTS_MIN: Final = 20
_GRID: Final = 12
_SEVERAL_GAIN: Final = 3.0
_SEVERAL_MISFIT: Final = 2.0
_SEVERAL_APART_C: Final = 6.0
_SEVERAL_STEP: Final = 0.1
_ENOUGH: Final = 1e-6
_STEP: Final = 1e-4
_BLOCK: Final = 5
_NORMAL_QUARTILE: Final = 0.6745


def unfolded(
    celsius: FloatArray, tm: FloatArray, enthalpy: FloatArray, capacity: FloatArray | float = 1.0
) -> FloatArray:
    """The unfolded share, shape (..., n).

    Args:
        celsius: shape (n,).
        tm: in °C, shape (...,).
        enthalpy: at Tm in J/mol, shape (...,).
        capacity: the heat capacity over the one expected for this enthalpy, shape (...,).
    """
    tm, enthalpy = np.asarray(tm)[..., None], np.asarray(enthalpy)[..., None]
    kelvin, melting = celsius + _ZERO_C, tm + _ZERO_C
    heat = enthalpy * _HEAT_CAPACITY / (_ENTHALPY_60C + _HEAT_CAPACITY * (np.maximum(tm, 20.0) - 60.0))
    heat = heat * np.asarray(capacity)[..., None]
    gibbs = enthalpy * (1 - kelvin / melting) + heat * (kelvin - melting - kelvin * np.log(kelvin / melting))
    return np.asarray(1 / (1 + np.exp(np.clip(gibbs / (_GAS * kelvin), -500, 500))))


def derivative_tm(celsius: FloatArray, signal: FloatArray) -> float | None:
    """Where the smoothed curve is steepest: the vertex of a parabola through the highest derivatives."""
    step = float(np.median(np.diff(celsius)))
    half = max(2, round(_SMOOTH_C / step / 2))
    if len(celsius) < 4 * half:
        return None
    offsets = np.arange(-half, half + 1)
    slopes = np.convolve(signal, -offsets / np.sum(offsets**2), mode="valid") / step
    centred = np.abs(slopes - np.median(slopes))
    top = int(np.argmax(centred[half:-half])) + half
    near = slice(top - half, top + half + 1)
    bend, slope, _ = np.polyfit(offsets, centred[near], 2)
    if bend >= 0:
        return None
    shift = float(np.clip(-slope / (2 * bend), -half, half))
    return float(celsius[top + half] + shift * step)


@use_one_thread()
def analyze_melt(
    name: str, replicate: int | None, celsius: FloatArray, signal: FloatArray, service: ServiceValues
) -> FittedMelt:
    """Fit one melting curve; without a transition there is no melting temperature."""
    fit = _transition(celsius, signal) if len(celsius) >= _POINTS_MIN else None
    if fit is None:
        verdict = Verdict.AGREES if service.tm_C is None else Verdict.REVIEW
        said = "the service reports none, either" if service.tm_C is None else "the service reports one"
        nothing = ReplicateMelting(
            name=name,
            replicate=replicate,
            verdict=verdict,
            reasons=("the curve shows no transition between its first and last temperature", said),
            service=service,
        )
        return FittedMelt(nothing, celsius, signal, None)
    steepest = derivative_tm(celsius, signal)
    verdict, reasons = _judge(fit, service)
    melting = ReplicateMelting(
        name=name,
        replicate=replicate,
        verdict=verdict,
        reasons=reasons,
        tm_C=fit.estimates[0],
        transitions_C=tuple(fit.estimates) if len(fit.estimates) > 1 else (),
        derivative_tm_C=None if steepest is None else rounded(steepest),
        service=service,
    )
    return FittedMelt(melting, celsius, signal, fit.fitted)


def _judge(fit: "_Melt", service: ServiceValues) -> tuple[Verdict, tuple[str, ...]]:
    several: tuple[str, ...] = ()
    if len(fit.estimates) > 1:
        words = " and ".join(estimate.text(lambda side: f"{side:.1f}", "{}") for estimate in fit.estimates)
        several = (f"{len(fit.estimates)} transitions, at {words} °C",)
    if service.tm_C is None:
        return Verdict.REVIEW, ("the service reports no melting temperature", *several)
    known = [(e.value, e.low, e.high) for e in fit.estimates]
    closed = [(v, lo, hi) for v, lo, hi in known if v is not None and lo is not None and hi is not None]
    if not closed or closed[0][2] - closed[0][1] > 2 * WIDEST_C:
        return Verdict.REVIEW, ("the curve does not bound the melting temperature", *several)
    for value, low, high in closed:
        if low - AGREEMENT_C <= service.tm_C <= high + AGREEMENT_C:
            agreed = f"{value - service.tm_C:+.1f} °C against the service, within both uncertainties"
            return Verdict.AGREES, (agreed, *several)
    return Verdict.REVIEW, (f"{closed[0][0] - service.tm_C:+.1f} °C against the service", *several)


@dataclass(frozen=True, slots=True)
class _Melt:
    """Melting temperatures with intervals, that of the larger step first, the fitted curve, and the residuals."""

    estimates: list[Estimate]
    fitted: FloatArray
    square: float
    misfit: float


class _Model:
    """Unfolding in `steps`: per step T_m, logarithms of enthalpy and of the share of the expected heat capacity."""

    def __init__(self, celsius: FloatArray, signal: FloatArray, steps: int) -> None:
        self._celsius, self._signal, self._steps = celsius, signal, steps
        self.scaled = (celsius - celsius.mean()) / np.ptp(celsius)
        self.noise = 1.0
        low, high = float(celsius[0]) + _MARGIN_C, float(celsius[-1]) - _MARGIN_C
        one = [(low, high), tuple(np.log(_ENTHALPIES)), (-1.0, 1.0)]
        self.bounds = np.array(one * steps)

    def states(self, theta: FloatArray) -> FloatArray:
        """Shares of folded, half unfolded and unfolded molecules, shape (k, states, n)."""
        parts = [
            unfolded(self._celsius, theta[:, 3 * i], np.exp(theta[:, 3 * i + 1]), np.exp(theta[:, 3 * i + 2]))
            for i in range(self._steps)
        ]
        if self._steps == 1:
            return np.stack([1 - parts[0], parts[0]], axis=1)
        one, two = parts
        return np.stack([1 - one, one * (1 - two), one * two], axis=1)

    def _solve(self, theta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        states = self.states(theta)
        ends = states[:, [0, -1]]
        bend = _BEND * float(np.ptp(self._signal)) * (4 * self.scaled**2 - 1 / 3)
        columns = np.concatenate([states, ends * self.scaled, ends * bend], axis=1) / self.noise
        prior = np.diag([0.0] * (states.shape[1] + 2) + [1.0, 1.0]) + 1e-9 * np.eye(states.shape[1] + 4)
        gram = columns @ np.swapaxes(columns, -1, -2)
        amounts = np.linalg.solve(gram + prior, (columns @ self._signal / self.noise)[..., None])[..., 0]
        fitted = np.asarray(np.sum(amounts[..., None] * columns, axis=1) * self.noise, dtype=np.float64)
        return fitted, np.asarray(amounts, dtype=np.float64), states

    def residuals(self, theta: FloatArray) -> FloatArray:
        """In deviations of the noise, with the penalties of bends and heat capacities, shape (k, n + penalties)."""
        fitted, amounts, _ = self._solve(theta)
        capacities = theta[:, 2::3] / _CAPACITY_SCATTER
        return np.concatenate([(self._signal - fitted) / self.noise, amounts[:, -2:], capacities], axis=1)

    def _descend(self, start: FloatArray) -> OptimizeResult:
        low, high = self.bounds.T

        def slopes(theta: FloatArray) -> FloatArray:
            inward = np.where(theta + _STEP > high, -_STEP, _STEP)
            points = self.residuals(np.concatenate([theta[None], theta + np.diag(inward)]))
            return np.asarray((points[1:] - points[0]).T / inward)

        return least_squares(
            lambda theta: self.residuals(theta[None])[0],
            np.clip(start, low + _STEP, high - _STEP),
            slopes,
            bounds=(low, high),
            ftol=_ENOUGH,
            xtol=_ENOUGH,
            max_nfev=60,
        )

    def fit(self, starts: FloatArray) -> _Melt | None:
        """From the best of the starts (k, p); None where a melting temperature runs out of the curve."""
        # The noise is not known before there is a fit: twice.
        for _ in range(2):
            start = starts[int(np.argmin(np.sum(self.residuals(starts) ** 2, axis=1)))]
            found = self._descend(start)
            fitted = self._solve(found.x[None])[0][0]
            left = self._signal - fitted
            self.noise = max(_white_noise(left), 1e-6 * float(np.ptp(self._signal)), 1e-12)
            starts = found.x[None]
        found = self._descend(starts[0])
        fitted, amounts, _ = (part[0] for part in self._solve(found.x[None]))
        left = self._signal - fitted
        square = float(np.sum((left / self.noise) ** 2))
        misfit = square / max(len(left) - found.x.size - 6, 1)
        spread = np.linalg.pinv(found.jac.T @ found.jac, rcond=1e-12, hermitian=True)
        variance = np.diag(spread) * max(1.0, misfit) * _inflation(left)
        temperatures = found.x[::3]
        inside = (temperatures > self.bounds[::3, 0] + 1e-3) & (temperatures < self.bounds[::3, 1] - 1e-3)
        if not inside.all():
            return None
        estimates = []
        for tm, deviation in zip(temperatures, np.sqrt(variance[::3]), strict=True):
            side = NORMAL * float(deviation)
            ends = (rounded(float(tm) - side), rounded(float(tm) + side))
            estimates.append(Estimate(value=rounded(float(tm)), low=ends[0], high=ends[1]))
        levels = amounts[: self._steps + 1]
        steps = np.abs(np.diff(levels))
        order = np.argsort(-steps, kind="stable")
        if steps.min() < _SEVERAL_STEP * steps.sum() and self._steps > 1:
            return None
        return _Melt([estimates[i] for i in order], fitted, square * self.noise**2, misfit)

    def step(self, fit: _Melt) -> float:
        """The height of the largest step at its melting temperature."""
        tm = fit.estimates[0].value or 0.0
        baselines = np.polyfit(self._celsius - tm, fit.fitted, 1)
        return float(np.max(np.abs(fit.fitted - np.polyval(baselines, self._celsius - tm))))


def _white_noise(residuals: FloatArray) -> float:
    """Standard deviation from differences of neighbours, which a misfit hardly reaches."""
    return float(np.median(np.abs(np.diff(residuals)))) / _NORMAL_QUARTILE / float(np.sqrt(2.0))


def _inflation(residuals: FloatArray) -> float:
    """Variance of sums over neighbours, relative to independent points; at least 1."""
    usable = len(residuals) // _BLOCK * _BLOCK
    sums = residuals[:usable].reshape(-1, _BLOCK).sum(axis=1)
    mean_square = float(np.mean(residuals**2))
    return max(1.0, float(np.mean(sums**2)) / (_BLOCK * mean_square)) if mean_square else 1.0


def _transition(celsius: FloatArray, signal: FloatArray) -> _Melt | None:
    """One transition, or several where one does not describe the curve; None if baselines alone do."""
    model = _Model(celsius, signal, 1)
    if model.bounds[0, 0] >= model.bounds[0, 1]:
        return None
    axes = [np.linspace(side[0], side[1], _GRID + 2)[1:-1] for side in model.bounds[:2]]
    grid = np.stack([*np.meshgrid(*axes), np.zeros((_GRID, _GRID))], axis=-1).reshape(-1, 3)
    one = model.fit(grid)
    two = None
    if one is None or one.misfit > _SEVERAL_MISFIT:
        axis = np.linspace(model.bounds[0, 0], model.bounds[0, 1], _GRID + 2)[1:-1]
        pairs = [(a, b) for a in axis for b in axis if b - a > _SEVERAL_APART_C]
        enthalpy = np.log(3e5)
        starts = np.array([[a, enthalpy, 0.0, b, enthalpy, 0.0] for a, b in pairs])
        two = _Model(celsius, signal, 2).fit(starts) if pairs else None
    best = two if two is not None and (one is None or one.square > _SEVERAL_GAIN * two.square) else one
    if best is None:
        return None
    baseline, _ = np.linalg.qr(np.stack([model.scaled**power for power in range(3)], axis=1))
    bent = float(np.sum((signal - baseline @ (baseline.T @ signal)) ** 2))
    if bent < _GAIN * best.square or model.step(best) < _AMPLITUDE * model.noise:
        return None
    return best
