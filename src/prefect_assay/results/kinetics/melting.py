"""Melting curves: two-state unfolding between sloped baselines, and the maximum of the first derivative.

Temperatures in degrees Celsius outside and kelvin inside, enthalpy in J/mol.
"""

from typing import Final

import numpy as np
from scipy.optimize import least_squares

from prefect_assay.results.kinetics.analysis import Estimate, ReplicateMelting, ServiceValues, Verdict
from prefect_assay.results.kinetics.curves import FittedMelt, FloatArray
from prefect_assay.results.kinetics.intervals import profile, rounded
from prefect_assay.results.kinetics.noise import influence, noise_of, runs_p, white_noise

AGREEMENT_C: Final = 1.0
"""How far a fitted melting temperature may lie from the service's."""
DERIVATIVE_C: Final = 2.0
"""How far the curve may be steepest from where its fit is; noise moves this by up to 1.7 °C in curves of the local lab."""
_GAS: Final = 8.314462618
_ZERO_C: Final = 273.15
# Heat capacity over enthalpy, both per residue (Robertson and Murphy, Chem. Rev. 97, 1251, 1997): 58 J/(mol K) and
# 2920 J/mol at 60 °C. It bends the transition hardly; fitting it would cost precision for nothing.
_HEAT_CAPACITY: Final = 58.0
_ENTHALPY_60C: Final = 2_920.0
_ENTHALPIES: Final = (5e4, 2e6)
_MARGIN_C: Final = 2.0
_GAIN: Final = 1.5
_AMPLITUDE: Final = 5.0
_SMOOTH_C: Final = 4.0
_UNSTRUCTURED: Final = 1e-6
_MISFIT: Final = 0.005
_POINTS_MIN: Final = 20
_GRID: Final = 12


def unfolded(celsius: FloatArray, tm: FloatArray, enthalpy: FloatArray) -> FloatArray:
    """The unfolded share, shape (..., n), for `tm` in °C and the enthalpy at Tm in J/mol, shape (...,)."""
    tm, enthalpy = np.asarray(tm)[..., None], np.asarray(enthalpy)[..., None]
    kelvin, melting = celsius + _ZERO_C, tm + _ZERO_C
    capacity = enthalpy * _HEAT_CAPACITY / (_ENTHALPY_60C + _HEAT_CAPACITY * (tm - 60.0))
    gibbs = enthalpy * (1 - kelvin / melting) + capacity * (
        kelvin - melting - kelvin * np.log(kelvin / melting)
    )
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


def analyze_melt(
    name: str, replicate: int | None, celsius: FloatArray, signal: FloatArray, service: ServiceValues
) -> FittedMelt:
    """Fit one melting curve; without a transition there is no melting temperature."""
    fit = _fit(celsius, signal) if len(celsius) >= _POINTS_MIN else None
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
    tm, fitted = fit
    steepest = derivative_tm(celsius, signal)
    expected = derivative_tm(celsius, fitted)
    shift = None if steepest is None or expected is None else steepest - expected
    reasons = _reasons(tm, shift, signal - fitted, float(np.ptp(signal)), service)
    melting = ReplicateMelting(
        name=name,
        replicate=replicate,
        verdict=Verdict.REVIEW if reasons else Verdict.AGREES,
        reasons=reasons
        or (f"within {AGREEMENT_C:g} °C of the service's value, and steepest where the fit is",),
        tm_C=tm,
        derivative_tm_C=None if steepest is None else rounded(steepest),
        service=service,
    )
    return FittedMelt(melting, celsius, signal, fitted)


def _fit(celsius: FloatArray, signal: FloatArray) -> tuple[Estimate, FloatArray] | None:
    """T_m and the fitted curve, or None if baselines alone describe the signal."""
    scaled = (celsius - celsius.mean()) / np.ptp(celsius)
    low, high = float(celsius[0]) + _MARGIN_C, float(celsius[-1]) - _MARGIN_C
    if low >= high:
        return None

    def design(theta: FloatArray) -> FloatArray:
        share = unfolded(celsius, theta[..., 0], np.exp(theta[..., 1]))
        flat = np.ones_like(share)
        return np.stack([flat, flat * scaled, share, share * scaled], axis=-1)

    def residuals(theta: FloatArray) -> FloatArray:
        basis, _ = np.linalg.qr(design(theta))
        return np.asarray(signal - basis @ (basis.T @ signal))

    def squares(theta: FloatArray) -> FloatArray:
        basis, _ = np.linalg.qr(design(theta))
        return np.asarray(np.sum(signal**2) - np.sum(np.einsum("...np,n->...p", basis, signal) ** 2, axis=-1))

    bounds = np.array([[low, high], np.log(_ENTHALPIES)])
    axes = [np.linspace(side[0], side[1], _GRID + 2)[1:-1] for side in bounds]
    grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    start = grid[int(np.argmin(squares(grid)))]
    found = least_squares(
        residuals, start, bounds=bounds.T, x_scale=np.array([1.0, 0.1]), xtol=1e-10, ftol=1e-12
    )
    best, left = np.asarray(found.x), np.asarray(found.fun)
    columns = design(best)
    linear, *_ = np.linalg.lstsq(columns, signal, rcond=None)
    baseline, _ = np.linalg.qr(np.stack([scaled**power for power in range(3)], axis=1))
    bent = float(np.sum((signal - baseline @ (baseline.T @ signal)) ** 2))
    at_tm = (best[0] - celsius.mean()) / np.ptp(celsius)
    amplitude = abs(float(linear[2] + linear[3] * at_tm))
    noise = white_noise(left[None])
    inside = low + 1e-3 < best[0] < high - 1e-3
    if not inside or bent < _GAIN * float(np.sum(left**2)) or amplitude < _AMPLITUDE * noise:
        return None
    of_noise = noise_of(left[None], np.full(len(left), 1e-9), 6, "nm", has_blank=False)
    jacobian = np.asarray(found.jac)
    direction = np.array([1.0, 0.0])
    effect = influence(jacobian[None], direction)
    growth = of_noise.random(effect) / float(np.sum(effect**2)) * of_noise.quantile
    (ends,) = profile(squares, best, jacobian.T @ jacobian, direction[None], np.array([growth]))
    sides = [None if end is None else rounded(end) for end in (ends.low, ends.high)]
    return Estimate(value=rounded(float(best[0])), low=sides[0], high=sides[1]), np.asarray(columns @ linear)


def _reasons(
    tm: Estimate, shift: float | None, residuals: FloatArray, span: float, service: ServiceValues
) -> tuple[str, ...]:
    found = []
    if service.tm_C is None:
        found.append("the service reports no melting temperature")
    elif abs(tm.value - service.tm_C) > AGREEMENT_C:
        found.append(f"{tm.value - service.tm_C:+.1f} °C against the service")
    if shift is None:
        found.append("the derivative has no maximum")
    elif abs(shift) > DERIVATIVE_C:
        found.append(f"the curve is steepest {shift:+.1f} °C from where its fit is")
    if runs_p(residuals[None]) < _UNSTRUCTURED and float(np.std(residuals)) > _MISFIT * span:
        found.append("the residuals are not noise: two states do not describe the curve")
    if tm.low is None or tm.high is None:
        found.append("the curve does not bound the melting temperature")
    return tuple(found)
