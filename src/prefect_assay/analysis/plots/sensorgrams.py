"""The sensorgrams of one replicate with fits and residuals. Knows no campaign."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from prefect_assay.analysis.kinetics.analysis import Verdict
from prefect_assay.analysis.plots.curves import (
    BOTTOM,
    LEFT,
    caption,
    drawn_points,
    extent,
    mean,
    reasons,
)
from prefect_assay.analysis.plots.style import (
    SMALL,
    WIDTH,
    Sheet,
    Style,
    draw,
    spread,
)
from prefect_assay.analysis.plots.svg import (
    BLUE,
    GREEN,
    INK,
    KD,
    MUTED,
    ORANGE,
    PURPLE,
    SKY,
    VERMILLION,
)
from prefect_assay.analysis.results.formats import molar, molar_estimate

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from prefect_assay.analysis.kinetics.curves import FittedCurve, FittedReplicate, FloatArray

_COLORS: Final = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY)
_PANEL: Final = WIDTH - LEFT - 62
_CURVES: Final = 170
_RESIDUALS: Final = 56
_GAP: Final = 12
_FIT: Final[Style] = {"color": INK, "linewidth": 2.6, "clip_on": False}
_THRESHOLD: Final[Style] = {"color": MUTED, "linewidth": 1, "linestyle": "--"}
_END: Final = 5  # readings that give the height of a label


def kinetics_caption(replicate: FittedReplicate) -> str:
    """Replicate, verdict and K_D with its 95 % interval."""
    kinetics = replicate.kinetics
    fit = kinetics.fit
    value = f"{KD} {molar_estimate(fit.kd_uncertainty_M)}" if fit else None
    return caption(kinetics, value)


def sensorgrams(replicate: FittedReplicate) -> str:
    """The curves of one replicate with the fit and its residuals.

    A measured curve is thinned where it is slow. Without binding, the threshold of a response is drawn.

    Raises:
        ConfigurationError: matplotlib is not installed.
    """
    import numpy as np  # noqa: PLC0415  an optional extra

    from prefect_assay.analysis.kinetics.verdict import NO_RESPONSE  # noqa: PLC0415  likewise

    kinetics = replicate.kinetics
    is_fitted = kinetics.fit is not None and any(curve.fitted is not None for curve in replicate.curves)
    threshold = NO_RESPONSE.get(kinetics.unit) if kinetics.verdict is Verdict.NO_BINDING else None
    lines = [kinetics_caption(replicate), *reasons(kinetics.reasons)]
    top = 62 + 14 * len(lines)
    height = _CURVES if is_fitted else _CURVES + _GAP + _RESIDUALS
    end = top + _CURVES + _GAP + _RESIDUALS

    def paint(sheet: Sheet) -> None:
        sheet.heading(kinetics.name, lines)
        samples: list[tuple[str, Style]] = [("measured", {"color": BLUE, "linewidth": 1.3})]
        samples += [("global 1:1 fit", _FIT)] if is_fitted else []
        samples += [(f"threshold {threshold:g} {kinetics.unit}", _THRESHOLD)] if threshold else []
        sheet.legend(top - 22, samples)
        time = "time (s)"
        response = f"response ({kinetics.unit})"
        panel = sheet.axes(LEFT, top, _PANEL, height, y=response, x="" if is_fitted else time)
        _paint_curves(panel, replicate)
        signals = [curve.curve.signal for curve in replicate.curves]
        if threshold:
            panel.axhline(threshold, **_THRESHOLD)
            signals.append(np.array([threshold]))
        _frame(panel, replicate, signals, ticks=5)
        _label_concentrations(sheet, panel, replicate, top, height)
        if is_fitted:
            panel.tick_params(labelbottom=False)
            lower = sheet.axes(
                LEFT, end - _RESIDUALS, _PANEL, _RESIDUALS, y=f"residual ({kinetics.unit})", x=time
            )
            _frame(lower, replicate, _paint_residuals(lower, replicate), ticks=3)

    return draw(WIDTH, end + BOTTOM, paint, title=f"Sensorgrams of {kinetics.name}: {lines[0]}")


def _paint_curves(axes: Axes, replicate: FittedReplicate) -> None:
    """The fits below, as wide lines, and the readings upon them: a fit must not hide what it misses."""
    for curve in replicate.curves:
        if curve.fitted is not None:
            axes.plot(curve.curve.time_s, curve.fitted, **_FIT)
    for number, curve in enumerate(replicate.curves):
        thin = _thinned(curve, replicate)
        _plot(axes, number, curve.curve.time_s[thin], curve.curve.signal[thin])


def _thinned(curve: FittedCurve, replicate: FittedReplicate) -> NDArray[np.intp]:
    return drawn_points(curve.curve.time_s, (0.0, replicate.dissociation_s))


def _paint_residuals(axes: Axes, replicate: FittedReplicate) -> list[FloatArray]:
    axes.axhline(0, color=MUTED, linewidth=0.6, clip_on=False)
    found = []
    for number, curve in enumerate(replicate.curves):
        if curve.fitted is not None:
            thin = _thinned(curve, replicate)
            residual = (curve.curve.signal - curve.fitted)[thin]
            _plot(axes, number, curve.curve.time_s[thin], residual)
            found.append(residual)
    return found


def _plot(axes: Axes, number: int, times: FloatArray, values: FloatArray) -> None:
    axes.plot(times, values, color=_COLORS[number % len(_COLORS)], linewidth=1.3, clip_on=False)


def _frame(axes: Axes, replicate: FittedReplicate, values: Iterable[FloatArray], *, ticks: int) -> None:
    """Limits around all values, the end of association, and few ticks."""
    axes.set_xlim(*extent((curve.curve.time_s for curve in replicate.curves), 0))
    axes.set_ylim(*extent(values, 0.04))
    axes.axvline(replicate.dissociation_s, color=MUTED, linewidth=0.7, linestyle=":", clip_on=False)
    axes.locator_params(axis="x", nbins=6)
    axes.locator_params(axis="y", nbins=ticks)


def _label_concentrations(
    sheet: Sheet, axes: Axes, replicate: FittedReplicate, top: float, height: float
) -> None:
    """Each curve's concentration beside its end: colour alone must not identify a curve."""
    low, high = axes.get_ylim()
    last = [mean(curve.curve.signal[-_END:]) for curve in replicate.curves]
    ends = [top + height * (high - value) / (high - low) for value in last]
    right = LEFT + _PANEL
    for number, place in enumerate(spread(ends, 12, top + 6, top + height - 2)):
        sheet.line(
            [right + 2, right + 10], [ends[number], place], color=_COLORS[number % len(_COLORS)], linewidth=1
        )
        sheet.text(right + 13, place + 3.5, molar(replicate.curves[number].curve.concentration_M), size=SMALL)
