"""Affinities of a campaign: ranked with replicates and intervals, and against the designer's own scores."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from prefect_assay.analysis.kinetics.analysis import Verdict
from prefect_assay.analysis.plots.style import (
    SMALL,
    WIDTH,
    Sheet,
    Style,
    draw,
    molar_axis,
    shorten,
    wrap,
)
from prefect_assay.analysis.plots.svg import (
    BLUE,
    GRID,
    INK,
    KD,
    MUTED,
    PAPER,
    VERMILLION,
)
from prefect_assay.analysis.results.design import DesignSummary, order_of
from prefect_assay.analysis.results.formats import OUTCOME_WORDS, VERDICT_WORDS, molar
from prefect_assay.analysis.results.measurements import EXTRAPOLATED
from prefect_assay.analysis.results.ranked import verdict_parts
from prefect_assay.analysis.results.row import Level, Outcome, ResultRow
from prefect_assay.service.words import many

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DESIGN: Final[Style] = {"linestyle": "none", "marker": "o", "markersize": 6, "color": BLUE}
CONTROL: Final[Style] = {"linestyle": "none", "marker": "D", "markersize": 6, "color": VERMILLION}
_REPLICATE: Final[Style] = {
    "linestyle": "none",
    "marker": "o",
    "markersize": 4,
    "markerfacecolor": PAPER,
    "markeredgecolor": MUTED,
    "markeredgewidth": 0.9,
}
_INTERVAL: Final[Style] = {"color": INK, "linewidth": 1.1, "clip_on": False}
_MARKS: Final = {
    VERDICT_WORDS[Verdict.AGREES]: "✓",
    VERDICT_WORDS[Verdict.REVIEW]: "?",
    VERDICT_WORDS[Verdict.NOT_1_TO_1]: "≠",
    VERDICT_WORDS[Verdict.NO_BINDING]: "∅",
    EXTRAPOLATED: "↑",
}
_ENDS: Final = {"<": 0, ">": 1}  # the end of the axis that the arrow of a limit points to
MOST: Final = 384  # four plates: a longer figure is no overview
_ROW: Final = 14
_NAMES: Final = 148
_VALUES: Final = 84
_LISTED: Final = 150
_REACH: Final = 30.0  # an interval is drawn at most this factor beyond all values


def affinity(summary: DesignSummary) -> float | None:
    """The K_D in M that a design is ranked by, or None: a negative call overrides a fitted number."""
    return summary.kd_M if summary.outcome is Outcome.MEASURED and (summary.kd_M or 0) > 0 else None


def ranked(summaries: Iterable[DesignSummary]) -> list[tuple[DesignSummary, float]]:
    """The designs with a K_D, and their K_D in M, in the order of the table: tightest first, lower limits last."""
    found = [(summary, value) for summary in summaries if (value := affinity(summary)) is not None]
    return sorted(found, key=lambda entry: order_of(entry[0]))


def labels(summaries: Sequence[DesignSummary]) -> Callable[[DesignSummary], str]:
    """What to call a design: its name, with its target where the campaign has several."""
    several = len({summary.target for summary in summaries}) > 1
    return lambda summary: (
        f"{summary.name} ({summary.target})" if several and summary.target else summary.name
    )


def ranked_affinities(summaries: Sequence[DesignSummary], rows: Iterable[ResultRow]) -> str:
    """K_D of each design, the 384 tightest at most, with its replicates, 95 % interval and verdict; a limit is an arrow.

    Designs without a number are listed below, by outcome.

    Raises:
        ConfigurationError: matplotlib is not installed.
    """
    every = ranked(summaries)
    order = every[:MOST]
    caption = f"{len(every)} of {len(summaries)} with a {KD}, tightest first"
    if len(every) > MOST:
        caption += f"; {MOST} are shown"
    lists = [(title, wrap(names, WIDTH - 24, SMALL)) for title, names in _others(summaries)]
    said = {word for summary, _ in order for word in verdict_parts(summary)}
    marks = [f"{mark} {word}" for word, mark in _MARKS.items() if word in said]
    captions = [caption, *(["; ".join(marks)] if marks else [])]
    below = 14 * (len(captions) - 1)
    top, height = 92 + below, max(1, len(order)) * _ROW
    end = top + height + 36 + sum(22 + 13 * len(lines) for _, lines in lists)
    measured, label = _measured(rows), labels(summaries)

    def paint(sheet: Sheet) -> None:
        sheet.heading("Ranked affinities", captions)
        limit: Style = DESIGN | {"marker": "<"}
        samples: list[tuple[str, Style]] = [
            ("design", DESIGN),
            ("control", CONTROL),
            ("limit", limit),
            ("replicate", _REPLICATE),
        ]
        sheet.legend(58 + below, [*samples, ("95 % interval", _INTERVAL)])
        axes = sheet.axes(_NAMES, top, WIDTH - _NAMES - _VALUES, height, x=KD)
        replicates = [measured.get((s.experiment_code, s.name), ()) for s, _ in order]
        low, high = _bounds(order, replicates)
        molar_axis(axes, low, high, "x")
        axes.set_ylim(max(1, len(order)) - 0.5, -0.5)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="x", top=True, labeltop=True)
        axes.grid(axis="x", color=GRID, linewidth=0.7)
        axes.hlines(range(len(order)), low, high, colors=GRID, linewidths=0.5, zorder=0, clip_on=False)
        _paint_points(axes, order, replicates)
        for number, (summary, value) in enumerate(order):
            y = top + _ROW * (number + 0.5) + 3.5
            name = shorten(label(summary), _NAMES - 16, SMALL)
            sheet.text(_NAMES - 8, y, name, size=SMALL, anchor="end")
            signs = "".join(_MARKS[word] for word in verdict_parts(summary))
            text = f"{molar(value, summary.qualifier)} {signs}".rstrip()
            sheet.text(WIDTH - _VALUES + 10, y, text, size=SMALL)
        _paint_lists(sheet, top + height + 36, lists)

    return draw(WIDTH, end + 12, paint, title=f"Ranked affinities of {many(len(summaries), 'design')}")


def _measured(rows: Iterable[ResultRow]) -> dict[tuple[str, str], list[float]]:
    """The replicates' K_D by experiment and design."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in rows:
        if row.level is Level.REPLICATE and row.kd_M is not None and row.kd_M > 0:
            found[row.experiment_code, row.name].append(row.kd_M)
    return found


def _others(summaries: Sequence[DesignSummary]) -> list[tuple[str, list[str]]]:
    """The names of the designs without a K_D, by the words for their outcome."""
    found: dict[Outcome, list[str]] = defaultdict(list)
    label = labels(summaries)
    for summary in summaries:
        if affinity(summary) is None:
            name = shorten(label(summary), _LISTED, SMALL)
            found[summary.outcome].append(f"{name} (control)" if summary.control else name)
    words = OUTCOME_WORDS | {Outcome.MEASURED: "measured, without an affinity"}
    return [
        (f"{words[outcome]} ({len(names)})", _first(names))
        for outcome in Outcome
        if (names := found[outcome])
    ]


def _first(names: Sequence[str]) -> list[str]:
    more = [f"and {len(names) - MOST} more"] if len(names) > MOST else []
    return [*names[:MOST], *more]


def _paint_lists(sheet: Sheet, y: float, lists: Iterable[tuple[str, Sequence[str]]]) -> None:
    for title, lines in lists:
        y += 22
        sheet.text(10, y, title, size=SMALL, weight="bold")
        for line in lines:
            y += 13
            sheet.text(14, y, line, size=SMALL)


def _bounds(
    order: Sequence[tuple[DesignSummary, float]], replicates: Sequence[Sequence[float]]
) -> tuple[float, float]:
    """The ends of the axis: around all values, and around the intervals unless one reaches very far."""
    values = [value for _, value in order] + [value for several in replicates for value in several]
    values = values or [1e-9, 1e-6]
    ends = [end for s, _ in order for end in (s.kd_low_M, s.kd_high_M) if end is not None and end > 0]
    low, high = min(values), max(values)
    return max(min([low, *ends]), low / _REACH) / 1.5, min(max([high, *ends]), high * _REACH) * 1.5


def _paint_points(
    axes: Axes, order: Sequence[tuple[DesignSummary, float]], replicates: Sequence[Sequence[float]]
) -> None:
    low, high = axes.get_xlim()
    for row, (summary, value) in enumerate(order):
        style: Style = CONTROL if summary.control else DESIGN
        if summary.kd_low_M or summary.kd_high_M:
            ends = [min(max(end or value, low), high) for end in (summary.kd_low_M, summary.kd_high_M)]
            axes.plot(ends, [row, row], **_INTERVAL)
        if summary.qualifier in _ENDS:
            axes.plot(
                [value, (low, high)[_ENDS[summary.qualifier]]],
                [row, row],
                color=style["color"],
                clip_on=False,
            )
            style = style | {"marker": summary.qualifier, "markersize": 8}
        axes.plot([value], [row], clip_on=False, zorder=4, **style)
        axes.plot(replicates[row], [row] * len(replicates[row]), clip_on=False, zorder=3, **_REPLICATE)
