"""Melting curves: one or two equilibria between baselines, or unfolding that cannot turn back.

The simplest model counts unless another one describes the curve clearly better; that is then a reason for a review. What a
curve hardly determines, the heat capacity and the bend of the baselines, has a prior, so its uncertainty is in the interval.
Temperatures in degrees Celsius outside and kelvin inside, energies in J/mol.
"""

# The stubs of SciPy and scikit-learn that pyright brings are narrower than these libraries; mypy reads neither.
# pyright: reportArgumentType=false, reportOptionalSubscript=false, reportOptionalOperand=false
# pyright: reportOperatorIssue=false, reportReturnType=false, reportIndexIssue=false, reportAttributeAccessIssue=false

from dataclasses import dataclass
from enum import Enum, auto
from itertools import combinations
from typing import Final

import numpy as np
from scipy.optimize import OptimizeResult, least_squares
from scipy.signal import savgol_filter

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
TEMPERATURE_ERROR_C: Final = 0.2
"""Standard deviation of the temperature of an instrument; it is in every interval."""
CLEARLY: Final = 20.0
"""By so much in -2 log likelihood another model has to be better than two states."""
WORST_RESIDUAL: Final = 0.03
"""Residuals beyond this share of the transition are those of another process."""
_GAS: Final = 8.314462618
_ZERO_C: Final = 273.15
# Heat capacity over enthalpy, both per residue (Robertson and Murphy, Chem. Rev. 97, 1251, 1997): 58 J/(mol K) and
# 2920 J/mol at 60 °C. Proteins scatter around these means by a third.
_HEAT_CAPACITY: Final = 58.0
_ENTHALPY_60C: Final = 2_920.0
_CAPACITY_SCATTER: Final = 0.3
_BEND: Final = 0.03  # of a baseline, as a share of the signal's range
_ENTHALPIES: Final = (5e4, 2e6)
_ACTIVATIONS: Final = (8e4, 1.5e6)
_FIRST_ENTHALPY: Final = 3e5  # where the search for two transitions begins
_MARGIN_C: Final = 2.0
_GAIN: Final = 1.5
_AMPLITUDE: Final = 5.0
_SMOOTH_C: Final = 4.0
_POINTS_MIN: Final = 20
_GRID: Final = 12
_APART_C: Final = 3.0
_SMALLEST_STEP: Final = 0.1
_ENOUGH: Final = 1e-6
_STEP: Final = 1e-4
_BLOCK: Final = 10
_NORMAL_QUARTILE: Final = 0.6745


class _Kind(Enum):
    TWO_STATES = auto()
    IRREVERSIBLE = auto()
    TWO_STEPS = auto()


@dataclass(frozen=True, slots=True)
class _Melt:
    """Melting temperatures with intervals, that of the larger step first, the fitted curve, and its sum of squares.

    `energy` is the enthalpy at T_m, or the energy of activation. `step` is the height of the transition above baselines.
    """

    kind: _Kind
    estimates: list[Estimate]
    energy: float
    fitted: FloatArray
    square: float
    noise: float
    step: float


@use_one_thread()
def analyze_melt(
    name: str, replicate: int | None, celsius: FloatArray, signal: FloatArray, service: ServiceValues
) -> FittedMelt:
    """Fit one melting curve; without a transition there is no melting temperature."""
    fit = _fit_transition(celsius, signal) if len(celsius) >= _POINTS_MIN else None
    if fit is None:
        verdict = Verdict.AGREES if service.tm_C is None else Verdict.REVIEW
        reasons: tuple[str, ...] = (
            "the curve shows no transition between its first and last temperature",
            _describe_reported(service),
        )
        melting = ReplicateMelting(
            name=name, replicate=replicate, verdict=verdict, reasons=reasons, service=service
        )
        return FittedMelt(melting, celsius, signal, None)
    steepest = find_steepest(celsius, signal)
    verdict, reasons = _judge(fit, signal, service)
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


def find_steepest(celsius: FloatArray, signal: FloatArray) -> float | None:
    """Where the smoothed curve is steepest: the vertex of a parabola through the highest derivatives."""
    step = float(np.median(np.diff(celsius)))
    half = max(2, round(_SMOOTH_C / step / 2))
    if len(celsius) <= 4 * half:
        return None
    slopes = np.asarray(savgol_filter(signal, 2 * half + 1, 1, deriv=1, delta=step))[half:-half]
    centred = np.abs(slopes - np.median(slopes))
    top = int(np.argmax(centred[half:-half])) + half
    bend, slope, _ = np.polyfit(np.arange(-half, half + 1), centred[top - half : top + half + 1], 2)
    if bend >= 0:
        return None
    shift = float(np.clip(-slope / (2 * bend), -half, half))
    return float(celsius[top + half] + shift * step)


def _describe_reported(service: ServiceValues) -> str:
    """What the service reports where a curve has no transition, or where it reports a limit."""
    if limit := service.limits.get("tm_C"):
        return f"the service reports a limit, {limit.text('{:.1f}'.format)} °C"
    return "the service reports none, either" if service.tm_C is None else "the service reports one"


def _judge(fit: _Melt, signal: FloatArray, service: ServiceValues) -> tuple[Verdict, tuple[str, ...]]:
    tm = fit.estimates[0]
    value, low, high = (side or 0.0 for side in (tm.value, tm.low, tm.high))
    doubts = []
    match fit.kind:
        case _Kind.TWO_STEPS:
            words = " and ".join(estimate.text("{:.1f}".format, "{}") for estimate in fit.estimates)
            doubts.append(f"2 transitions, at {words} °C")
        case _Kind.IRREVERSIBLE:
            shift = np.log(2) * _GAS * (value + _ZERO_C) ** 2 / fit.energy
            doubts.append(
                "the curve is asymmetric, as of irreversible unfolding or a second transition: if it is irreversible, T_m"
                f" would be {shift:.1f} °C higher at twice the scan rate"
            )
        case _Kind.TWO_STATES:
            pass
    left = float(np.sqrt(np.mean((signal - fit.fitted) ** 2)))
    if left > max(WORST_RESIDUAL * fit.step, 2 * fit.noise):
        doubts.append(f"the residuals are {left / fit.step:.0%} of the transition: it is not unfolding alone")
    if high - low > 2 * WIDEST_C:
        doubts.append("the curve does not bound the melting temperature")
    reported = service.find_range("tm_C")
    if reported is None:
        return Verdict.REVIEW, ("the service reports no melting temperature", *doubts)
    if service.tm_C is None:
        difference = f"{value:.1f} °C, and {_describe_reported(service)}"
    else:
        difference = f"{value - service.tm_C:+.1f} °C against the service"
    is_near = low - AGREEMENT_C <= reported[1] and reported[0] <= high + AGREEMENT_C
    if doubts or not is_near:
        return Verdict.REVIEW, (*(() if is_near else (difference,)), *doubts)
    return Verdict.AGREES, (f"{difference}, within both uncertainties",)


def _fit_transition(celsius: FloatArray, signal: FloatArray) -> _Melt | None:
    """The simplest model that describes the curve; None if baselines alone do."""
    fits: list[_Melt] = []
    for kind in _Kind:
        fit = _Model(celsius, signal, kind).fit()
        fits += [fit] if fit else []
        if fit and fit.square <= len(signal) * fit.noise**2:
            break  # noise is all that is left
    if not fits:
        return None
    best = min(fits, key=lambda fit: fit.square)
    scale = min(fit.noise for fit in fits) ** 2 * _inflation(signal - best.fitted)
    kept = next(fit for fit in fits if fit.square - best.square <= CLEARLY * scale)
    parabola = np.polynomial.Polynomial.fit(celsius, signal, 2)(celsius)
    bent = float(np.sum((signal - parabola) ** 2))
    return None if bent < _GAIN * kept.square or kept.step < _AMPLITUDE * kept.noise else kept


class _Model:
    """Theta has T_m and the logarithm of an energy per step, then for equilibria that of the share of the expected ΔC_p."""

    def __init__(self, celsius: FloatArray, signal: FloatArray, kind: _Kind) -> None:
        self._celsius, self._signal, self._kind = celsius, signal, kind
        self._scaled = (celsius - celsius.mean()) / np.ptp(celsius)
        self._noise = 1.0
        inside = float(celsius[0]) + _MARGIN_C, float(celsius[-1]) - _MARGIN_C
        energies = np.log(_ACTIVATIONS if kind is _Kind.IRREVERSIBLE else _ENTHALPIES)
        one = [inside, energies] if kind is _Kind.IRREVERSIBLE else [inside, energies, (-1.0, 1.0)]
        self._width = len(one)
        self._bounds = np.array(one * (2 if kind is _Kind.TWO_STEPS else 1), dtype=np.float64)

    def fit(self) -> _Melt | None:
        """The best fit; None where a melting temperature runs out of the curve, or a step is too small."""
        low, high = self._bounds[::, 0], self._bounds[::, 1]
        if low[0] >= high[0]:
            return None
        starts = self._starts()
        start = starts[int(np.argmin(np.sum(self._residuals(starts) ** 2, axis=1)))]
        # The noise, against which priors count, is not known before there is a fit.
        first = self._descend(start).x
        left = self._signal - self._solve(first[None])[0][0]
        white = float(np.median(np.abs(np.diff(left)))) / _NORMAL_QUARTILE / float(np.sqrt(2.0))
        self._noise = max(white, 1e-6 * float(np.ptp(self._signal)), 1e-12)
        answer = self._descend(first)
        (fitted,), (amounts,) = self._solve(answer.x[None])
        left = self._signal - fitted
        square = float(np.sum(left**2))
        misfit = square / self._noise**2 / max(len(left) - answer.x.size - 6, 1)
        spread = np.linalg.pinv(answer.jac.T @ answer.jac, rcond=1e-12, hermitian=True)
        variance = np.diag(spread) * max(1.0, misfit) * _inflation(left)
        variance = variance[:: self._width] + TEMPERATURE_ERROR_C**2
        tms, sides = answer.x[:: self._width], NORMAL * np.sqrt(variance)
        steps = np.abs(np.diff(amounts[: len(tms) + 1]))
        is_inside = (tms > low[0] + 1e-3) & (tms < high[0] - 1e-3)
        if not is_inside.all() or steps.min() < _SMALLEST_STEP * steps.sum():
            return None
        estimates = [
            Estimate(value=rounded(tm), low=rounded(tm - side), high=rounded(tm + side))
            for _, tm, side in sorted(zip(-steps, tms.tolist(), sides.tolist(), strict=True))
        ]
        line = np.polynomial.Polynomial.fit(self._celsius, fitted, 1)(self._celsius)
        step = float(np.max(np.abs(fitted - line)))
        return _Melt(self._kind, estimates, float(np.exp(answer.x[1])), fitted, square, self._noise, step)

    def _starts(self) -> FloatArray:
        axes = [np.linspace(low, high, _GRID + 2)[1:-1] for low, high in self._bounds]
        if self._kind is _Kind.TWO_STEPS:
            energy = np.log(_FIRST_ENTHALPY)
            return np.array(
                [[a, energy, 0.0, b, energy, 0.0] for a, b in combinations(axes[0], 2) if b - a > _APART_C]
            )
        grid = np.stack(np.meshgrid(*axes[:2]), axis=-1).reshape(-1, 2)
        return np.pad(grid, ((0, 0), (0, self._width - 2)))

    def _states(self, theta: FloatArray) -> FloatArray:
        """Shares of folded, half unfolded and unfolded molecules, shape (k, states, n)."""
        if self._kind is _Kind.IRREVERSIBLE:
            one = lose_fold(self._celsius, theta[:, 0], np.exp(theta[:, 1]))
        else:
            one = unfold(self._celsius, theta[:, 0], np.exp(theta[:, 1]), np.exp(theta[:, 2]))
        if self._kind is not _Kind.TWO_STEPS:
            return np.stack([1 - one, one], axis=1)
        two = unfold(self._celsius, theta[:, 3], np.exp(theta[:, 4]), np.exp(theta[:, 5]))
        return np.stack([1 - one, one * (1 - two), one * two], axis=1)

    def _solve(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The best curves (k, n) and the amounts of their columns: levels, slopes and bends, which are linear."""
        states = self._states(theta)
        ends = states[:, [0, -1]]
        bend = _BEND * float(np.ptp(self._signal)) * (4 * self._scaled**2 - 1 / 3)
        columns = np.concatenate([states, ends * self._scaled, ends * bend], axis=1) / self._noise
        prior = np.diag([0.0] * (states.shape[1] + 2) + [1.0, 1.0]) + 1e-9 * np.eye(states.shape[1] + 4)
        gram = columns @ np.swapaxes(columns, -1, -2)
        amounts = np.linalg.solve(gram + prior, (columns @ self._signal / self._noise)[..., None])[..., 0]
        fitted = np.sum(amounts[..., None] * columns, axis=1) * self._noise
        return np.asarray(fitted), np.asarray(amounts)

    def _residuals(self, theta: FloatArray) -> FloatArray:
        """In deviations of the noise, with the penalties of bends and heat capacities, shape (k, n + penalties)."""
        fitted, amounts = self._solve(theta)
        capacities = theta[:, 2::3] / _CAPACITY_SCATTER
        return np.concatenate([(self._signal - fitted) / self._noise, amounts[:, -2:], capacities], axis=1)

    def _descend(self, start: FloatArray) -> OptimizeResult:
        low, high = self._bounds.T

        def find_slopes(theta: FloatArray) -> FloatArray:
            inward = np.where(theta + _STEP > high, -_STEP, _STEP)
            points = self._residuals(np.concatenate([theta[None], theta + np.diag(inward)]))
            return np.asarray((points[1:] - points[0]).T / inward)

        return least_squares(
            lambda theta: self._residuals(theta[None])[0],
            np.clip(start, low + _STEP, high - _STEP),
            find_slopes,
            bounds=(low, high),
            ftol=_ENOUGH,
            xtol=_ENOUGH,
            max_nfev=25,
        )


def unfold(celsius: FloatArray, tm: FloatArray, enthalpy: FloatArray, capacity: FloatArray) -> FloatArray:
    """The unfolded share in equilibrium, shape (k, n), for T_m in °C, the enthalpy there, and ΔC_p over the expected one, (k,)."""
    tm, enthalpy = tm[:, None], enthalpy[:, None]
    kelvin, melting = celsius + _ZERO_C, tm + _ZERO_C
    heat = enthalpy * _HEAT_CAPACITY / (_ENTHALPY_60C + _HEAT_CAPACITY * (np.maximum(tm, 20.0) - 60.0))
    heat = heat * capacity[:, None]
    gibbs = enthalpy * (1 - kelvin / melting) + heat * (kelvin - melting - kelvin * np.log(kelvin / melting))
    return np.asarray(1 / (1 + np.exp(np.clip(gibbs / (_GAS * kelvin), -500, 500))))


def lose_fold(celsius: FloatArray, tm: FloatArray, activation: FloatArray) -> FloatArray:
    """The share lost by an Arrhenius reaction at a constant scan rate, half at `tm` (°C), shape (k, n); tm, activation: (k,).

    The integral of the rate is its value times R T² / E: exact to 2 R T / E.
    """
    kelvin, half = celsius + _ZERO_C, tm[:, None] + _ZERO_C
    rise = activation[:, None] / _GAS * (1 / half - 1 / kelvin) + 2 * np.log(kelvin / half)
    return np.asarray(-np.expm1(-np.log(2.0) * np.exp(np.clip(rise, -500, 10))))


def _inflation(residuals: FloatArray) -> float:
    """Variance of sums over neighbours, relative to independent points; at least 1."""
    usable = len(residuals) // _BLOCK * _BLOCK
    sums = residuals[:usable].reshape(-1, _BLOCK).sum(axis=1)
    mean_square = float(np.mean(residuals**2))
    return max(1.0, float(np.mean(sums**2)) / (_BLOCK * mean_square)) if mean_square else 1.0
