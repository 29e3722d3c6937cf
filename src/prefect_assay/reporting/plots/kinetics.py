"""The curves of one replicate: sensorgrams with fit and residuals, dose response, melting. Knows no campaign."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from prefect_assay.reporting.plots.style import SMALL, WIDTH, Sheet, draw, molar_axis, shorten, spread
from prefect_assay.reporting.plots.svg import (
    BLUE,
    GREEN,
    GRID,
    INK,
    KD,
    MUTED,
    ORANGE,
    PURPLE,
    SKY,
    VERMILLION,
)
from prefect_assay.results.formats import molar
from prefect_assay.results.kinetics.analysis import Estimate, ModelName, Verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from prefect_assay.results.kinetics.curves import FittedCurve, FittedMelt, FittedReplicate, FloatArray

_VERDICTS: Final = {
    Verdict.AGREES: "agrees",
    Verdict.REVIEW: "to review",
    Verdict.NOT_1_TO_1: "not 1:1",
    Verdict.NO_BINDING: "no binding",
}
# The first model that is there gives the residuals and the numbers of the caption.
_MODELS: Final[tuple[tuple[ModelName, str, str], ...]] = (
    ("two_step", "two-step fit", "-"),
    ("global_1to1", "global 1:1 fit", "--"),
)
_COLORS: Final = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY)
_POINTS: Final = 60  # of one curve: more cannot be told apart in this size
_AVERAGED: Final = 5  # readings before the end of association
_LEFT: Final = 54
_RIGHT: Final = 62
_PANEL: Final = WIDTH - _LEFT - _RIGHT
_GAP: Final = 12
_BOTTOM: Final = 42


def sensorgrams(replicate: "FittedReplicate") -> str:
    """The curves of one replicate with their fits, and the residuals of the first fit (two-step, else global 1:1).

    A measured curve is thinned to every n-th of its points.

    Raises:
        ConfigurationError: matplotlib is not installed.
    """
    kinetics = replicate.kinetics
    models = [entry for entry in _MODELS if any(entry[0] in curve.fitted for curve in replicate.curves)]
    lines = _lines(_caption(replicate), kinetics.reasons)
    top = 62 + 14 * len(lines)
    height, residuals = (170, 56) if models else (170 + 56 + _GAP, 0)
    end = top + height + (_GAP + residuals if residuals else 0)

    def paint(sheet: Sheet) -> None:
        sheet.heading(kinetics.name, lines)
        samples: list[tuple[str, dict[str, Any]]] = [("measured", {"color": BLUE, "linewidth": 1})]
        samples += [(words, {"color": INK, "linestyle": line}) for _, words, line in models]
        sheet.legend(top - 22, samples)
        panel = sheet.axes(
            _LEFT, top, _PANEL, height, y=f"response ({kinetics.unit})", x="" if residuals else "time (s)"
        )
        _paint_curves(panel, replicate, models)
        _frame(panel, replicate, [curve.curve.signal for curve in replicate.curves])
        _label_concentrations(sheet, panel, replicate, top, height)
        if residuals:
            panel.tick_params(labelbottom=False)
            lower = sheet.axes(_LEFT, end - residuals, _PANEL, residuals, y="residual", x="time (s)")
            _frame(lower, replicate, _paint_residuals(lower, replicate, models[0][0]), ticks=3)

    return draw(WIDTH, end + _BOTTOM, paint, title=f"Sensorgrams of {kinetics.name}: {lines[0]}")


def _lines(caption: str, reasons: Sequence[str]) -> list[str]:
    """What is said below the name: at most one reason, the others are in the table."""
    more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
    return [caption, *(shorten(f"{reason}{more}", WIDTH - 20, SMALL) for reason in reasons[:1])]


def _caption(replicate: "FittedReplicate") -> str:
    kinetics = replicate.kinetics
    parts = [] if kinetics.replicate is None else [f"replicate {kinetics.replicate}"]
    parts.append(_VERDICTS[kinetics.verdict])
    fit = next((fit for model, _, _ in _MODELS if (fit := kinetics.fit(model))), None)
    if fit is not None:
        parts.append(f"{KD} {_interval(fit.kd_M)}")
    return " · ".join(parts)


def _interval(estimate: Estimate) -> str:
    if estimate.low is None and estimate.high is None:
        return molar(estimate.value)
    low = "open" if estimate.low is None else molar(estimate.low)
    high = "open" if estimate.high is None else molar(estimate.high)
    return f"{molar(estimate.value)} ({low} to {high})"


def _paint_curves(
    axes: "Axes", replicate: "FittedReplicate", models: Sequence[tuple[ModelName, str, str]]
) -> None:
    for number, curve in enumerate(replicate.curves):
        thin = _every(curve.curve.time_s)
        axes.plot(
            curve.curve.time_s[thin],
            curve.curve.signal[thin],
            color=_COLORS[number % len(_COLORS)],
            linewidth=0.9,
            clip_on=False,
        )
    for model, _, line in models:
        for curve in replicate.curves:
            if model in curve.fitted:
                axes.plot(
                    curve.curve.time_s,
                    curve.fitted[model],
                    color=INK,
                    linestyle=line,
                    linewidth=1,
                    clip_on=False,
                )


def _paint_residuals(axes: "Axes", replicate: "FittedReplicate", model: ModelName) -> list["FloatArray"]:
    axes.axhline(0, color=MUTED, linewidth=0.6)
    found = []
    for number, curve in enumerate(replicate.curves):
        if model in curve.fitted:
            thin = _every(curve.curve.time_s)
            residual = (curve.curve.signal - curve.fitted[model])[thin]
            axes.plot(
                curve.curve.time_s[thin],
                residual,
                color=_COLORS[number % len(_COLORS)],
                linewidth=0.7,
                clip_on=False,
            )
            found.append(residual)
    return found


def _frame(
    axes: "Axes", replicate: "FittedReplicate", values: Iterable["FloatArray"], *, ticks: int = 5
) -> None:
    """Limits around all values, the end of association, and few ticks."""
    axes.set_xlim(*_extent((curve.curve.time_s for curve in replicate.curves), 0))
    axes.set_ylim(*_extent(values, 0.04))
    axes.axvline(replicate.dissociation_s, color=MUTED, linewidth=0.7, linestyle=":")
    axes.locator_params(axis="x", nbins=6)
    axes.locator_params(axis="y", nbins=ticks)


def _label_concentrations(
    sheet: Sheet, axes: "Axes", replicate: "FittedReplicate", top: float, height: float
) -> None:
    """Each curve's concentration, at the right of its end."""
    low, high = axes.get_ylim()
    ends = [
        top + height * (high - float(curve.curve.signal[-_AVERAGED:].mean())) / (high - low)
        for curve in replicate.curves
    ]
    right = _LEFT + _PANEL
    for number, (end, place) in enumerate(
        zip(ends, spread(ends, 12, top + 6, top + height - 2), strict=True)
    ):
        color = _COLORS[number % len(_COLORS)]
        sheet.line([right + 2, right + 10], [end, place], color=color, linewidth=1)
        sheet.text(right + 13, place + 3.5, molar(replicate.curves[number].curve.concentration_M), size=SMALL)


def _every(values: "FloatArray") -> slice:
    return slice(None, None, max(1, -(-len(values) // _POINTS)))


def _extent(arrays: Iterable["FloatArray"], margin: float) -> tuple[float, float]:
    """The range of all values, widened; (0, 1) without a value."""
    import numpy as np  # noqa: PLC0415  an optional extra

    values = np.concatenate([np.asarray(array, dtype=float) for array in arrays] or [np.empty(0)])
    values = values[np.isfinite(values)]
    if not len(values):
        return 0, 1
    low, high = float(values.min()), float(values.max())
    more = (high - low) * margin if high > low else 0.5
    return low - more, high + more


def dose_response(replicate: "FittedReplicate") -> str:
    """The response at the end of association over the concentration, with the 1:1 isotherm of the first fit.

    The isotherm is what the fit expects at equilibrium; the dashed curve is what it expects when association ends.

    Raises:
        ConfigurationError: matplotlib is not installed.
    """
    import numpy as np  # noqa: PLC0415  an optional extra

    kinetics = replicate.kinetics
    fit = next((fit for model, _, _ in _MODELS if (fit := kinetics.fit(model))), None)
    measured = [curve for curve in replicate.curves if curve.curve.concentration_M > 0]
    doses = [curve.curve.concentration_M for curve in measured]
    responses = [_response(curve, replicate.dissociation_s) for curve in measured]
    lines = [_caption(replicate)]
    top, height = 78, 200

    def paint(sheet: Sheet) -> None:
        sheet.heading(kinetics.name, lines)
        samples: list[tuple[str, dict[str, Any]]] = [("measured", _DOT)]
        axes = sheet.axes(
            _LEFT,
            top,
            WIDTH - _LEFT - 20,
            height,
            x="concentration",
            y=f"response at end of association ({kinetics.unit})",
        )
        low, high = (min(doses) / 3, max(doses) * 3) if doses else (1e-9, 1e-6)
        expected: list[FloatArray] = [np.array(responses), np.zeros(1)]
        if fit is not None:
            grid = np.geomspace(low, high, 120)
            start = min(float(curve.curve.time_s[0]) for curve in replicate.curves)
            equilibrium = float(np.median(fit.rmax)) * grid / (grid + fit.kd_M.value)
            rate = fit.kon_per_M_s.value * grid + fit.koff_per_s.value
            reached = equilibrium * -np.expm1(-rate * (replicate.dissociation_s - start))
            axes.plot(grid, equilibrium, color=INK, clip_on=False)
            axes.plot(grid, reached, color=INK, linestyle="--", clip_on=False)
            expected += [equilibrium]
            samples += [
                ("1:1 isotherm", {"color": INK}),
                ("fit at end of association", {"color": INK, "linestyle": "--"}),
            ]
        axes.plot(doses, responses, clip_on=False, zorder=3, **_DOT)
        molar_axis(axes, low, high, "x")
        bottom, upper = _extent(expected, 0.06)
        axes.set_ylim(bottom, upper)
        if fit is not None and low < fit.kd_M.value < high:
            axes.axvline(fit.kd_M.value, color=MUTED, linewidth=0.8, linestyle=":")
            across = _LEFT + (WIDTH - _LEFT - 20) * float(np.log(fit.kd_M.value / low) / np.log(high / low))
            sheet.text(across, top - 4, KD, anchor="middle", size=SMALL)
        sheet.legend(top - 24, samples)

    return draw(WIDTH, top + height + _BOTTOM, paint, title=f"Dose response of {kinetics.name}: {lines[0]}")


_DOT: Final[dict[str, Any]] = {"linestyle": "none", "marker": "o", "markersize": 6, "color": BLUE}


def _response(curve: "FittedCurve", dissociation_s: float) -> float:
    """The mean of the last readings of association."""
    import numpy as np  # noqa: PLC0415  an optional extra

    end = int(np.searchsorted(curve.curve.time_s, dissociation_s, side="right"))
    return float(curve.curve.signal[max(0, end - _AVERAGED) : max(1, end)].mean())


def melting_curve(melt: "FittedMelt") -> str:
    """The melting curve of one replicate with its two-state fit, the residuals, and T_m with its 95 % interval.

    Raises:
        ConfigurationError: matplotlib is not installed.
    """
    melting = melt.melting
    parts = [] if melting.replicate is None else [f"replicate {melting.replicate}"]
    parts.append(_VERDICTS[melting.verdict])
    if melting.tm_C is not None:
        parts.append(f"Tm {_celsius(melting.tm_C)}")
    lines = _lines(" · ".join(parts), melting.reasons)
    top = 62 + 14 * len(lines)
    height, residuals = (190, 50) if melt.fitted is not None else (190 + 50 + _GAP, 0)
    end = top + height + (_GAP + residuals if residuals else 0)
    width = WIDTH - _LEFT - 20

    def paint(sheet: Sheet) -> None:
        sheet.heading(melting.name, lines)
        across = _extent([melt.temperature_C], 0)
        samples: list[tuple[str, dict[str, Any]]] = [("measured", _READING)]
        axes = sheet.axes(_LEFT, top, width, height, y="signal", x="" if residuals else "temperature (°C)")
        thin = _every(melt.temperature_C)
        axes.plot(melt.temperature_C[thin], melt.signal[thin], clip_on=False, **_READING)
        if melt.fitted is not None:
            axes.plot(melt.temperature_C, melt.fitted, color=INK, clip_on=False)
            samples.append(("two-state fit", {"color": INK}))
        if melting.derivative_tm_C is not None:
            axes.axvline(melting.derivative_tm_C, color=VERMILLION, linestyle="--", linewidth=0.9)
            samples.append(("steepest point", {"color": VERMILLION, "linestyle": "--", "linewidth": 0.9}))
        axes.set_xlim(*across)
        axes.set_ylim(*_extent([melt.signal], 0.05))
        axes.locator_params(axis="y", nbins=5)
        panels = [axes]
        if residuals and melt.fitted is not None:
            axes.tick_params(labelbottom=False)
            lower = sheet.axes(_LEFT, end - residuals, width, residuals, y="residual", x="temperature (°C)")
            lower.axhline(0, color=MUTED, linewidth=0.6)
            residual = melt.signal - melt.fitted
            lower.plot(melt.temperature_C[thin], residual[thin], clip_on=False, **_READING)
            lower.set_xlim(*across)
            lower.set_ylim(*_extent([residual], 0.08))
            lower.locator_params(axis="y", nbins=3)
            panels.append(lower)
        if melting.tm_C is not None:
            for panel in panels:
                _mark_interval(panel, melting.tm_C)
            samples.append(("Tm", {"color": MUTED, "linestyle": ":"}))
        sheet.legend(top - 22, samples)

    return draw(WIDTH, end + _BOTTOM, paint, title=f"Melting curve of {melting.name}: {lines[0]}")


_READING: Final[dict[str, Any]] = {"linestyle": "none", "marker": "o", "markersize": 3, "color": BLUE}


def _mark_interval(axes: "Axes", tm: Estimate) -> None:
    if tm.low is not None and tm.high is not None:
        axes.axvspan(tm.low, tm.high, color=GRID, linewidth=0, zorder=0)
    axes.axvline(tm.value, color=MUTED, linewidth=1, linestyle=":")


def _celsius(estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.1f} °C"
    return f"{estimate.value:.1f} °C ({estimate.low:.1f} to {estimate.high:.1f})"
