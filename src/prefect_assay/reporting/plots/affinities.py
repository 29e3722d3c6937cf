"""Affinities of a campaign: ranked with replicates and intervals, and against the designer's own scores."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from prefect_assay.reporting.plots.style import SMALL, WIDTH, Sheet, draw, molar_axis, shorten, wrap
from prefect_assay.reporting.plots.svg import BLUE, GRID, INK, KD, MUTED, PAPER, VERMILLION
from prefect_assay.results.formats import OUTCOME_WORDS, molar
from prefect_assay.results.row import Level, Outcome, ResultRow
from prefect_assay.results.summary import DesignSummary

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DESIGN: Final[dict[str, Any]] = {"linestyle": "none", "marker": "o", "markersize": 6, "color": BLUE}
CONTROL: Final[dict[str, Any]] = {"linestyle": "none", "marker": "D", "markersize": 6, "color": VERMILLION}
_REPLICATE: Final[dict[str, Any]] = {
    "linestyle": "none",
    "marker": "o",
    "markersize": 4,
    "markerfacecolor": PAPER,
    "markeredgecolor": MUTED,
    "markeredgewidth": 0.9,
}
_INTERVAL: Final[dict[str, Any]] = {"color": INK, "linewidth": 1.1}
_ARROWS: Final = {"<": "<", ">": ">"}
_ROW: Final = 14
_NAMES: Final = 132
_VALUES: Final = 72
_REACH: Final = 30.0  # an interval is drawn at most this factor beyond all values


def affinity(summary: DesignSummary) -> float | None:
    """The K_D in M that a design is ranked by, or None: a negative call overrides a fitted number."""
    return summary.kd_M if summary.outcome is Outcome.MEASURED and (summary.kd_M or 0) > 0 else None


def ranked(summaries: Iterable[DesignSummary]) -> list[DesignSummary]:
    """The designs with a K_D, tightest first."""
    return sorted((s for s in summaries if affinity(s)), key=lambda s: (affinity(s), s.name))


def ranked_affinities(summaries: Sequence[DesignSummary], rows: Iterable[ResultRow]) -> str:
    """K_D of each design, tightest first, with its replicates and 95 % interval; a limit is drawn as an arrow.

    Designs without a number are listed below, by outcome.

    Raises:
        ConfigurationError: matplotlib is not installed.
    """
    order = ranked(summaries)
    replicates = _replicates(rows)
    others = _others(summaries)
    top = 92
    height = max(1, len(order)) * _ROW
    lists = [(f"{words} ({len(names)})", wrap(names, WIDTH - 24, SMALL)) for words, names in others.items()]
    below = sum(20 + 13 * len(lines) for _, lines in lists)

    def paint(sheet: Sheet) -> None:
        sheet.heading("Ranked affinities", [f"{len(order)} of {len(summaries)} with a {KD}, tightest first"])
        sheet.legend(
            56,
            [
                ("design", DESIGN),
                ("control", CONTROL),
                ("replicate", _REPLICATE),
                ("95 % interval", _INTERVAL),
                ("limit", DESIGN | {"marker": "<"}),
            ],
        )
        axes = sheet.axes(_NAMES, top, WIDTH - _NAMES - _VALUES, height)
        _paint_ranking(axes, order, replicates)
        for number, summary in enumerate(order):
            y = top + _ROW * (number + 0.5) + 3.5
            sheet.text(_NAMES - 8, y, shorten(summary.name, _NAMES - 16, SMALL), size=SMALL, anchor="end")
            sheet.text(WIDTH - _VALUES + 10, y, molar(summary.kd_M, summary.qualifier), size=SMALL)
        sheet.text(_NAMES + (WIDTH - _NAMES - _VALUES) / 2, top + height + 32, KD, anchor="middle")
        y = top + height + 42
        for title, lines in lists:
            y += 20
            sheet.text(10, y, title, size=SMALL, weight="bold")
            for line in lines:
                y += 13
                sheet.text(14, y, line, size=SMALL)

    return draw(
        WIDTH, top + height + below + 56, paint, title=f"Ranked affinities of {len(summaries)} designs"
    )


def _replicates(rows: Iterable[ResultRow]) -> dict[tuple[str, str], list[float]]:
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in rows:
        if row.level is Level.REPLICATE and (row.kd_M or 0) > 0:
            found[row.experiment_code, row.name].append(row.kd_M or 0)
    return found


def _others(summaries: Iterable[DesignSummary]) -> dict[str, list[str]]:
    """The names of the designs without a K_D, by the words for their outcome."""
    found: dict[str, list[str]] = defaultdict(list)
    for outcome, words in OUTCOME_WORDS.items():
        for summary in summaries:
            if summary.outcome is outcome and affinity(summary) is None:
                name = shorten(summary.name, 150, SMALL)
                title = "measured, without an affinity" if outcome is Outcome.MEASURED else words
                found[title].append(f"{name} (control)" if summary.control else name)
    return found


def _paint_ranking(
    axes: "Axes", order: Sequence[DesignSummary], replicates: dict[tuple[str, str], list[float]]
) -> None:
    values = [affinity(summary) or 0 for summary in order]
    points = [
        (value, row)
        for row, summary in enumerate(order)
        for value in replicates.get((summary.experiment_code, summary.name), ())
    ]
    every = [*values, *(value for value, _ in points)] or [1e-9, 1e-6]
    bounds = [bound for s in order for bound in (s.kd_low_M, s.kd_high_M) if bound and bound > 0]
    low = max(min([*every, *bounds]), min(every) / _REACH) / 1.5
    high = min(max([*every, *bounds]), max(every) * _REACH) * 1.5
    molar_axis(axes, low, high, "x")
    axes.set_ylim(max(1, len(order)) - 0.5, -0.5)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="x", top=True, labeltop=True)
    axes.grid(axis="x", color=GRID, linewidth=0.7)
    across: list[float] = []
    for summary, value in zip(order, values, strict=True):
        ends = [min(max(end or value, low), high) for end in (summary.kd_low_M, summary.kd_high_M)]
        across += [*ends, math.nan]
    axes.plot(across, [y for row in range(len(order)) for y in (row, row, row)], clip_on=False, **_INTERVAL)
    axes.plot([x for x, _ in points], [y for _, y in points], clip_on=False, zorder=3, **_REPLICATE)
    for row, (summary, value) in enumerate(zip(order, values, strict=True)):
        style = CONTROL if summary.control else DESIGN
        if summary.qualifier in _ARROWS:
            style = style | {"marker": _ARROWS[summary.qualifier], "markersize": 8}
            axes.plot(
                [value, low if summary.qualifier == "<" else high],
                [row, row],
                color=style["color"],
                linewidth=1,
                clip_on=False,
            )
        axes.plot([value], [row], clip_on=False, zorder=4, **style)
