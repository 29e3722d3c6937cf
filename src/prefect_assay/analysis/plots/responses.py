"""Dose response and melting curve of one replicate. Knows no campaign."""

from __future__ import annotations

import bisect
import math
import statistics
from typing import TYPE_CHECKING, Final

from prefect_assay.analysis.kinetics.analysis import Estimate
from prefect_assay.analysis.plots.curves import (
    BOTTOM,
    LEFT,
    draw_readings,
    find_limits,
    find_mean,
    wrap_reasons,
    write_caption,
)
from prefect_assay.analysis.plots.scales import make_linear_scale, make_molar_scale
from prefect_assay.analysis.plots.sensorgrams import write_kinetics_caption
from prefect_assay.analysis.plots.sheet import DASHED, DOTTED, SMALL, WIDTH, Line, Marker, Panel, Sheet
from prefect_assay.analysis.plots.svg import BLUE, KD, MUTED, TM, VERMILLION
from prefect_assay.analysis.results.formats import format_celsius_estimate

if TYPE_CHECKING:
    from prefect_assay.analysis.kinetics.curves import FittedCurve, FittedMelt, FittedReplicate

_DOT: Final = Marker(color=BLUE)
_READING: Final = Marker(color=BLUE, size=3)
_FIT: Final = Line()
_AT_END: Final = Line(dash=DASHED)
_AT_KD: Final = Line(MUTED, 0.8, DOTTED)
_STEEPEST: Final = Line(VERMILLION, 0.9, DASHED)
_AT_TM: Final = Line(MUTED, dash=DOTTED)
_ZERO: Final = Line(MUTED, 0.6)
_PANEL: Final = WIDTH - LEFT - 20
_AVERAGED: Final = 5  # readings before the end of association
_STEPS: Final = 100  # of an isotherm
_COLUMN: Final = 4
_CURVE: Final = 190
_RESIDUALS: Final = 50
_GAP: Final = 12


def draw_dose_response(replicate: FittedReplicate) -> str:
    """The response at the end of association over the concentration, with the 1:1 isotherm of the fit.

    The isotherm is what the fit expects at equilibrium, with the median R_max of its curves; the dashed curve is what it
    expects when association ends. A blank (0 M) has no place on the axis.
    """
    kinetics, fit = replicate.kinetics, replicate.kinetics.fit
    kd, kon = (fit.kd_M.value, fit.kon_per_M_s.value) if fit else (None, None)  # a limit draws no isotherm
    measured = [curve for curve in replicate.curves if curve.curve.concentration_M > 0]
    doses = [curve.curve.concentration_M for curve in measured] or [1e-8, 1e-6]
    responses = [_find_response(curve, replicate.dissociation_s) for curve in measured]
    low, high = 10 ** math.floor(math.log10(min(doses) / 1.5)), 10 ** math.ceil(math.log10(max(doses) * 1.5))
    top, height = 80, 200
    grid = [low * (high / low) ** (step / _STEPS) for step in range(_STEPS + 1)]
    isotherm: list[float] = []
    at_end: list[float] = []
    if fit is not None and kd is not None and kon is not None:
        seconds = replicate.dissociation_s - min(float(curve.curve.time_s[0]) for curve in replicate.curves)
        isotherm = [statistics.median(fit.rmax) * dose / (dose + kd) for dose in grid]
        at_end = [
            response * -math.expm1(-kon * (dose + kd) * seconds)
            for dose, response in zip(grid, isotherm, strict=True)
        ]
    line = write_kinetics_caption(replicate)

    sheet = Sheet(WIDTH, top + height + BOTTOM)
    sheet.add_heading(kinetics.name, [line])
    samples: list[tuple[str, Line | Marker]] = [("measured", _DOT)]
    samples += [("1:1 isotherm", _FIT), ("fit at end of association", _AT_END)] if isotherm else []
    sheet.add_legend(top - 26, samples)
    limits = find_limits([[0], responses, isotherm], 0.06)
    heights = make_linear_scale(*limits, f"response at end of association ({kinetics.unit})")
    panel = sheet.add_panel(LEFT, top, _PANEL, height, make_molar_scale(low, high, "concentration"), heights)
    if isotherm:
        panel.draw_line(grid, isotherm, _FIT)
        panel.draw_line(grid, at_end, _AT_END)
        if kd is not None and low < kd < high:
            panel.draw_down(kd, _AT_KD)
            sheet.add_text(panel.place_x(kd), top - 4, KD, anchor="middle", size=SMALL)
    panel.draw_markers(doses[: len(responses)], responses, _DOT)
    return sheet.write_svg(f"Dose response of {kinetics.name}: {line}")


def _find_response(curve: FittedCurve, dissociation_s: float) -> float:
    """The mean of the last readings of association."""
    end = max(1, bisect.bisect_right(curve.curve.time_s, dissociation_s))
    return find_mean(curve.curve.signal[max(0, end - _AVERAGED) : end])


def draw_melting_curve(melt: FittedMelt) -> str:
    """The melting curve of one replicate with its fit, the residuals, and T_m with its 95 % interval."""
    melting, fitted, tm = melt.melting, melt.fitted, melt.melting.tm_C
    lines = [
        write_caption(melting, f"{TM} {format_celsius_estimate(tm)}" if tm else None),
        *wrap_reasons(melting.reasons),
    ]
    top = 62 + 14 * len(lines)
    height = _CURVE if fitted is not None else _CURVE + _GAP + _RESIDUALS
    end = top + _CURVE + _GAP + _RESIDUALS
    temperatures = make_linear_scale(*find_limits([melt.temperature_C], 0), "temperature (°C)", most=9)

    sheet = Sheet(WIDTH, end + BOTTOM)
    sheet.add_heading(melting.name, lines)
    samples: list[tuple[str, Line | Marker]] = [("measured", _READING)]
    samples += [("fit", _FIT)] if fitted is not None else []
    samples += [(TM, _AT_TM)] if tm else []
    samples += [("steepest point", _STEEPEST)] if melting.derivative_tm_C is not None else []
    sheet.add_legend(top - 22, samples)
    above = temperatures if fitted is None else temperatures.hide_title()
    signals = make_linear_scale(*find_limits([melt.signal], 0.05), "signal")
    panel = sheet.add_panel(LEFT, top, _PANEL, height, above, signals)
    _mark_melting(panel, tm)
    if melting.derivative_tm_C is not None:
        panel.draw_down(melting.derivative_tm_C, _STEEPEST)
    if fitted is not None:
        draw_readings(panel, melt.temperature_C, fitted, _FIT, column_px=_COLUMN)  # below the readings
        residuals = melt.signal - fitted
        differences = make_linear_scale(*find_limits([residuals], 0.08), "residual", most=4)
        lower = sheet.add_panel(LEFT, end - _RESIDUALS, _PANEL, _RESIDUALS, temperatures, differences)
        _mark_melting(lower, tm)
        lower.draw_across(0, _ZERO)
        draw_readings(lower, melt.temperature_C, residuals, _READING, column_px=_COLUMN)
    draw_readings(panel, melt.temperature_C, melt.signal, _READING, column_px=_COLUMN)
    return sheet.write_svg(f"Melting curve of {melting.name}: {lines[0]}")


def _mark_melting(panel: Panel, tm: Estimate | None) -> None:
    if tm and tm.low is not None and tm.high is not None:
        panel.shade_between(tm.low, tm.high)
    if tm and tm.value is not None:
        panel.draw_down(tm.value, _AT_TM)
