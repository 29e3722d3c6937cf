"""Dose response and melting curve of one replicate. Knows no campaign."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from prefect_assay.analysis.kinetics.analysis import Estimate
from prefect_assay.analysis.plots.curves import (
    BOTTOM,
    LEFT,
    caption,
    every_nth,
    extent,
    mean,
    reasons,
)
from prefect_assay.analysis.plots.sensorgrams import kinetics_caption
from prefect_assay.analysis.plots.style import (
    SMALL,
    WIDTH,
    Sheet,
    Style,
    draw,
    molar_axis,
)
from prefect_assay.analysis.plots.svg import (
    BLUE,
    GRID,
    INK,
    KD,
    MUTED,
    TM,
    VERMILLION,
)
from prefect_assay.analysis.results.formats import celsius_estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from prefect_assay.analysis.kinetics.curves import FittedCurve, FittedMelt, FittedReplicate

_DOT: Final[Style] = {"linestyle": "none", "marker": "o", "markersize": 6, "color": BLUE}
_READING: Final[Style] = _DOT | {"markersize": 3}
_FIT: Final[Style] = {"color": INK, "clip_on": False}
_AT_END: Final[Style] = _FIT | {"linestyle": "--"}
_STEEPEST: Final[Style] = {"color": VERMILLION, "linestyle": "--", "linewidth": 0.9}
_TM: Final[Style] = {"color": MUTED, "linestyle": ":"}
_PANEL: Final = WIDTH - LEFT - 20
_AVERAGED: Final = 5  # readings before the end of association
_RESIDUALS: Final = 50
_GAP: Final = 12


def dose_response(replicate: FittedReplicate) -> str:
    """The response at the end of association over the concentration, with the 1:1 isotherm of the fit.

    The isotherm is what the fit expects at equilibrium, with the median R_max of its curves; the dashed curve is what it
    expects when association ends. A blank (0 M) has no place on the axis.

    Raises:
        ConfigurationError: matplotlib is not installed.
    """
    import numpy as np  # noqa: PLC0415  an optional extra

    kinetics, fit = replicate.kinetics, replicate.kinetics.fit
    kd, kon = (fit.kd_M.value, fit.kon_per_M_s.value) if fit else (None, None)  # a limit draws no isotherm
    measured = [curve for curve in replicate.curves if curve.curve.concentration_M > 0]
    doses = [curve.curve.concentration_M for curve in measured] or [1e-8, 1e-6]
    responses = [_response(curve, replicate.dissociation_s) for curve in measured]
    low, high = 10 ** math.floor(math.log10(min(doses) / 1.5)), 10 ** math.ceil(math.log10(max(doses) * 1.5))
    line = kinetics_caption(replicate)
    top, height = 80, 200

    def paint(sheet: Sheet) -> None:
        sheet.heading(kinetics.name, [line])
        samples: list[tuple[str, Style]] = [("measured", _DOT)]
        response = f"response at end of association ({kinetics.unit})"
        axes = sheet.axes(LEFT, top, _PANEL, height, x="concentration", y=response)
        molar_axis(axes, low, high, "x")
        expected = [np.array([0.0, *responses])]
        if kd is not None and kon is not None and fit is not None:
            grid = np.geomspace(low, high, 150)
            start = min(float(curve.curve.time_s[0]) for curve in replicate.curves)
            isotherm = float(np.median(fit.rmax)) * grid / (grid + kd)
            rate = kon * (grid + kd)
            axes.plot(grid, isotherm, **_FIT)
            axes.plot(grid, isotherm * -np.expm1(-rate * (replicate.dissociation_s - start)), **_AT_END)
            samples += [("1:1 isotherm", _FIT), ("fit at end of association", _AT_END)]
            expected.append(isotherm)
            if low < kd < high:
                axes.axvline(kd, color=MUTED, linewidth=0.8, linestyle=":", clip_on=False)
                across = LEFT + _PANEL * math.log(kd / low) / math.log(high / low)
                sheet.text(across, top - 4, KD, anchor="middle", size=SMALL)
        if responses:
            axes.plot(doses, responses, clip_on=False, zorder=3, **_DOT)
        axes.set_ylim(*extent(expected, 0.06))
        sheet.legend(top - 26, samples)

    return draw(WIDTH, top + height + BOTTOM, paint, title=f"Dose response of {kinetics.name}: {line}")


def _response(curve: FittedCurve, dissociation_s: float) -> float:
    """The mean of the last readings of association."""
    import numpy as np  # noqa: PLC0415  an optional extra

    end = max(1, int(np.searchsorted(curve.curve.time_s, dissociation_s, side="right")))
    return mean(curve.curve.signal[max(0, end - _AVERAGED) : end])


def melting_curve(melt: FittedMelt) -> str:
    """The melting curve of one replicate with its two-state fit, the residuals, and T_m with its 95 % interval.

    Raises:
        ConfigurationError: matplotlib is not installed.
    """
    melting, fitted = melt.melting, melt.fitted
    value = f"{TM} {celsius_estimate(melting.tm_C)}" if melting.tm_C else None
    lines = [caption(melting, value), *reasons(melting.reasons)]
    top = 62 + 14 * len(lines)
    height = 190 if fitted is not None else 190 + _GAP + _RESIDUALS
    end = top + 190 + _GAP + _RESIDUALS
    thin = every_nth(melt.temperature_C)
    temperature = "temperature (°C)"

    def paint(sheet: Sheet) -> None:
        sheet.heading(melting.name, lines)
        samples: list[tuple[str, Style]] = [("measured", _READING)]
        panel = sheet.axes(LEFT, top, _PANEL, height, y="signal", x=temperature if fitted is None else "")
        panel.plot(melt.temperature_C[thin], melt.signal[thin], clip_on=False, **_READING)
        panel.set_ylim(*extent([melt.signal], 0.05))
        panel.locator_params(axis="y", nbins=5)
        panels = [panel]
        if fitted is not None:
            panel.plot(melt.temperature_C, fitted, zorder=1, **_FIT)  # below the readings
            panel.tick_params(labelbottom=False)
            samples.append(("two-state fit", _FIT))
            lower = sheet.axes(LEFT, end - _RESIDUALS, _PANEL, _RESIDUALS, y="residual", x=temperature)
            lower.axhline(0, color=MUTED, linewidth=0.6, clip_on=False)
            lower.plot(melt.temperature_C[thin], (melt.signal - fitted)[thin], clip_on=False, **_READING)
            lower.set_ylim(*extent([melt.signal - fitted], 0.08))
            lower.locator_params(axis="y", nbins=3)
            panels.append(lower)
        for axes in panels:
            axes.set_xlim(*extent([melt.temperature_C], 0))
            if melting.tm_C:
                _mark(axes, melting.tm_C)
        if melting.tm_C:
            samples.append((TM, _TM))
        if melting.derivative_tm_C is not None:
            panel.axvline(melting.derivative_tm_C, **_STEEPEST)
            samples.append(("steepest point", _STEEPEST))
        sheet.legend(top - 22, samples)

    return draw(WIDTH, end + BOTTOM, paint, title=f"Melting curve of {melting.name}: {lines[0]}")


def _mark(axes: Axes, tm: Estimate) -> None:
    if tm.low is not None and tm.high is not None:
        axes.axvspan(tm.low, tm.high, color=GRID, linewidth=0, zorder=0)
    if tm.value is not None:
        axes.axvline(tm.value, **_TM)
