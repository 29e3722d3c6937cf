"""The sensorgrams of one replicate with fits and residuals. Knows no campaign."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from prefect_assay.analysis.kinetics.analysis import Verdict
from prefect_assay.analysis.plots.curves import (
    BOTTOM,
    LEFT,
    draw_readings,
    find_limits,
    find_mean,
    wrap_reasons,
    write_caption,
)
from prefect_assay.analysis.plots.scales import make_linear_scale
from prefect_assay.analysis.plots.sheet import DASHED, DOTTED, SMALL, WIDTH, Line, Marker, Panel, Sheet
from prefect_assay.analysis.plots.svg import BLUE, GREEN, KD, MUTED, ORANGE, PURPLE, SKY, VERMILLION
from prefect_assay.analysis.plots.texts import spread_positions
from prefect_assay.analysis.results.formats import format_molar, format_molar_estimate

if TYPE_CHECKING:
    from prefect_assay.analysis.kinetics.curves import Curve, FittedReplicate

_COLORS: Final = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY)
_PANEL: Final = WIDTH - LEFT - 62
_CURVES: Final = 170
_RESIDUALS: Final = 56
_GAP: Final = 12
_FIT: Final = Line(width=2.6)
_READING: Final = 1.3
_COLUMN: Final = 9  # narrower ones make a page of hundreds of noisy curves too large
_THRESHOLD: Final = Line(MUTED, 1, DASHED)
_ZERO: Final = Line(MUTED, 0.6)
_DISSOCIATION: Final = Line(MUTED, 0.7, DOTTED)
_END: Final = 5  # readings that give the height of a label


def write_kinetics_caption(replicate: FittedReplicate) -> str:
    """Replicate, verdict and K_D with its 95 % interval."""
    fit = replicate.kinetics.fit
    return write_caption(
        replicate.kinetics, f"{KD} {format_molar_estimate(fit.kd_uncertainty_M)}" if fit else None
    )


def draw_sensorgrams(replicate: FittedReplicate) -> str:
    """The curves of one replicate with the fit and its residuals. Without binding, the threshold of a response is drawn."""
    from prefect_assay.analysis.kinetics.verdict import NO_RESPONSE  # noqa: PLC0415  an optional extra

    kinetics, curves = replicate.kinetics, [curve.curve for curve in replicate.curves]
    fitted = [(curve.curve, curve.fitted) for curve in replicate.curves if curve.fitted is not None]
    is_fitted = kinetics.fit is not None and bool(fitted)
    threshold = NO_RESPONSE.get(kinetics.unit) if kinetics.verdict is Verdict.NO_BINDING else None
    lines = [write_kinetics_caption(replicate), *wrap_reasons(kinetics.reasons)]
    top = 62 + 14 * len(lines)
    height = _CURVES if is_fitted else _CURVES + _GAP + _RESIDUALS
    end = top + _CURVES + _GAP + _RESIDUALS
    colors = [_COLORS[number % len(_COLORS)] for number in range(len(curves))]
    starts = (0.0, replicate.dissociation_s)
    times = make_linear_scale(*find_limits([curve.time_s for curve in curves], 0), "time (s)")
    limits = find_limits([*(curve.signal for curve in curves), [threshold] if threshold else []], 0.04)
    signals = make_linear_scale(*limits, f"response ({kinetics.unit})", most=5)

    sheet = Sheet(WIDTH, end + BOTTOM)
    sheet.add_heading(kinetics.name, lines)
    samples: list[tuple[str, Line | Marker]] = [("measured", Line(BLUE, _READING))]
    samples += [("global 1:1 fit", _FIT)] if is_fitted else []
    samples += [(f"threshold {threshold:g} {kinetics.unit}", _THRESHOLD)] if threshold else []
    sheet.add_legend(top - 22, samples)
    above = times.hide_title() if is_fitted else times
    panel = sheet.add_panel(LEFT, top, _PANEL, height, above, signals)
    panel.draw_down(replicate.dissociation_s, _DISSOCIATION)
    if threshold:
        panel.draw_across(threshold, _THRESHOLD)
    for curve, values in fitted:  # below the readings: a fit must not hide what it misses
        draw_readings(panel, curve.time_s, values, _FIT, column_px=_COLUMN, starts=starts)
    for curve, color in zip(curves, colors, strict=True):
        draw_readings(
            panel, curve.time_s, curve.signal, Line(color, _READING), column_px=_COLUMN, starts=starts
        )
    _label_concentrations(sheet, panel, curves, colors)
    if is_fitted:
        residuals = [
            (curve.curve.time_s, curve.curve.signal - curve.fitted, Line(color, _READING))
            for curve, color in zip(replicate.curves, colors, strict=True)
            if curve.fitted is not None
        ]
        limits = find_limits([values for _, values, _ in residuals], 0.04)
        differences = make_linear_scale(*limits, f"residual ({kinetics.unit})", most=4)
        lower = sheet.add_panel(LEFT, end - _RESIDUALS, _PANEL, _RESIDUALS, times, differences)
        lower.draw_down(replicate.dissociation_s, _DISSOCIATION)
        lower.draw_across(0, _ZERO)
        for xs, values, line in residuals:
            draw_readings(lower, xs, values, line, column_px=_COLUMN, starts=starts)
    return sheet.write_svg(f"Sensorgrams of {kinetics.name}: {lines[0]}")


def _label_concentrations(sheet: Sheet, panel: Panel, curves: Sequence[Curve], colors: Sequence[str]) -> None:
    """Each curve's concentration next to its end: colour alone must not identify a curve."""
    ends = [panel.place_y(find_mean(curve.signal[-_END:])) for curve in curves]
    right = panel.left + panel.width
    places = spread_positions(ends, 12, panel.top + 6, panel.top + panel.height - 2)
    for curve, color, end, place in zip(curves, colors, ends, places, strict=True):
        sheet.add_line([(right + 2, end), (right + 10, place)], Line(color, 1))
        sheet.add_text(right + 13, place + 3.5, format_molar(curve.concentration_M), size=SMALL)
