"""Affinities of a campaign: ranked with replicates and intervals, and against the designer's own scores."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

from prefect_assay.analysis.kinetics.analysis import Verdict
from prefect_assay.analysis.plots.scales import Scale, make_molar_scale
from prefect_assay.analysis.plots.sheet import SMALL, WIDTH, Line, Marker, Panel, Shape, Sheet
from prefect_assay.analysis.plots.svg import BLUE, GRID, INK, KD, MUTED, PAPER, VERMILLION
from prefect_assay.analysis.plots.texts import shorten_text, wrap_words
from prefect_assay.analysis.results.design import DesignSummary, get_sort_key
from prefect_assay.analysis.results.formats import OUTCOME_WORDS, VERDICT_WORDS, format_molar
from prefect_assay.analysis.results.interval import list_measured
from prefect_assay.analysis.results.measurements import EXTRAPOLATED
from prefect_assay.analysis.results.ranked import list_verdict_parts
from prefect_assay.analysis.results.row import Outcome, ResultRow
from prefect_assay.analysis.results.summary import list_counted_replicates
from prefect_assay.service.words import many

DESIGN: Final = Marker(color=BLUE)
CONTROL: Final = Marker("diamond", VERMILLION)
LIMIT: Final = Marker("left", BLUE)
_REPLICATE: Final = Marker(color=PAPER, size=4, edge=MUTED)
_INTERVAL: Final = Line(INK, 1.1)
_ROWS: Final = Line(GRID, 0.5)
_MARKS: Final = {
    VERDICT_WORDS[Verdict.AGREES]: "✓",
    VERDICT_WORDS[Verdict.REVIEW]: "?",
    VERDICT_WORDS[Verdict.NOT_1_TO_1]: "≠",
    VERDICT_WORDS[Verdict.NO_BINDING]: "∅",
    EXTRAPOLATED: "↑",
}
_ARROWS: Final[dict[str, Shape]] = {"<": "left", ">": "right"}
MOST: Final = 384  # four plates: a longer figure is not an overview
_ROW: Final = 14
_NAMES: Final = 148
_VALUES: Final = 84
_LISTED: Final = 150
_REACH: Final = 30.0  # an interval is drawn at most this factor beyond all values
_Replicate = tuple[float, str | None]  # K_D in M, and the sign of a limit


def find_affinity(summary: DesignSummary) -> float | None:
    """The K_D in M that a design is ranked by, or None: a negative call overrides a fitted number."""
    return summary.kd_M if summary.outcome is Outcome.MEASURED and (summary.kd_M or 0) > 0 else None


def _rank_designs(summaries: Iterable[DesignSummary]) -> list[tuple[DesignSummary, float]]:
    """The designs with a K_D, and their K_D in M, in the order of the table: tightest first, lower limits last."""
    ranked = [(summary, value) for summary in summaries if (value := find_affinity(summary)) is not None]
    return sorted(ranked, key=lambda entry: get_sort_key(entry[0]))


def make_label(summaries: Sequence[DesignSummary]) -> Callable[[DesignSummary], str]:
    """What to call a design: its name, with its target where the campaign has several."""
    has_several = len({summary.target for summary in summaries}) > 1
    return lambda summary: (
        f"{summary.name} ({summary.target})" if has_several and summary.target else summary.name
    )


def draw_ranked_affinities(summaries: Sequence[DesignSummary], rows: Iterable[ResultRow]) -> str:
    """K_D of each design, the 384 tightest at most, with its replicates, 95 % interval and verdict; a limit is an arrow.

    Designs without a number are listed below, by outcome.
    """
    ranked = _rank_designs(summaries)
    order = ranked[:MOST]
    caption = f"{len(ranked)} of {len(summaries)} with a {KD}, tightest first"
    if len(ranked) > MOST:
        caption += f"; {MOST} are shown"
    lists = [(title, wrap_words(names, WIDTH - 24, SMALL)) for title, names in _list_others(summaries)]
    words = {word for summary, _ in order for word in list_verdict_parts(summary)}
    marks = [f"{mark} {word}" for word, mark in _MARKS.items() if word in words]
    captions = [caption, *(["; ".join(marks)] if marks else [])]
    below = 14 * (len(captions) - 1)
    top, height = 92 + below, max(1, len(order)) * _ROW
    end = top + height + 36
    measured, write_label = _collect_replicates(rows), make_label(summaries)
    replicates = [measured[summary.experiment_code, summary.name] for summary, _ in order]

    sheet = Sheet(WIDTH, end + sum(22 + 13 * len(lines) for _, lines in lists) + 12)
    sheet.add_heading("Ranked affinities", captions)
    samples = [("design", DESIGN), ("control", CONTROL), ("limit", LIMIT), ("replicate", _REPLICATE)]
    sheet.add_legend(58 + below, [*samples, ("95 % interval", _INTERVAL)])
    affinities = make_molar_scale(*_find_bounds(order, replicates), KD)
    lanes, width = Scale(height / _ROW - 0.5, -0.5), WIDTH - _NAMES - _VALUES
    panel = sheet.add_panel(_NAMES, top, width, height, affinities, lanes, grid="x", is_labeled_above=True)
    for row, (summary, value) in enumerate(order):
        panel.draw_across(row, _ROWS)
        _draw_design(panel, row, summary, value, replicates[row])
        baseline = panel.place_y(row) + 3.5
        name = shorten_text(write_label(summary), _NAMES - 16, SMALL)
        sheet.add_text(_NAMES - 8, baseline, name, size=SMALL, anchor="end")
        signs = "".join(_MARKS[word] for word in list_verdict_parts(summary))
        text = f"{format_molar(value, summary.qualifier)} {signs}".rstrip()
        sheet.add_text(WIDTH - _VALUES + 10, baseline, text, size=SMALL)
    for title, lines in lists:
        end += 22
        sheet.add_text(10, end, title, size=SMALL, is_bold=True)
        for line in lines:
            end += 13
            sheet.add_text(14, end, line, size=SMALL)
    return sheet.write_svg(f"Ranked affinities of {many(len(summaries), 'design')}")


def _draw_design(
    panel: Panel, row: int, summary: DesignSummary, value: float, replicates: Sequence[_Replicate]
) -> None:
    """The value with its interval and replicates, or a limit with an arrow to the end of the axis."""
    low, high = panel.x.low, panel.x.high
    marker = CONTROL if summary.control else DESIGN
    if summary.kd_low_M or summary.kd_high_M:
        ends = [min(max(end or value, low), high) for end in (summary.kd_low_M, summary.kd_high_M)]
        panel.draw_line(ends, [row, row], _INTERVAL)
    if shape := _ARROWS.get(summary.qualifier or ""):
        panel.draw_line([value, low if shape == "left" else high], [row, row], Line(marker.color))
        marker = replace(marker, shape=shape, size=8)
    for sign in (None, *_ARROWS):
        values = [measured for measured, qualifier in replicates if qualifier == sign]
        replicate = _REPLICATE.reshape(_ARROWS[sign]) if sign else _REPLICATE
        panel.draw_markers(values, [row] * len(values), replicate)
    panel.draw_markers([value], [row], marker)


def _collect_replicates(rows: Iterable[ResultRow]) -> dict[tuple[str, str], list[_Replicate]]:
    """The K_D of the replicates that count, by experiment and design; a negative call overrides a fitted number."""
    measured: dict[tuple[str, str], list[_Replicate]] = defaultdict(list)
    for row in list_measured(list_counted_replicates(rows)):
        if row.kd_M:
            measured[row.experiment_code, row.name].append((row.kd_M, row.qualifier))
    return measured


def _list_others(summaries: Sequence[DesignSummary]) -> list[tuple[str, list[str]]]:
    """The names of the designs without a K_D, by the words for their outcome."""
    by_outcome: dict[Outcome, list[str]] = defaultdict(list)
    write_label = make_label(summaries)
    for summary in summaries:
        if find_affinity(summary) is None:
            name = shorten_text(write_label(summary), _LISTED, SMALL)
            by_outcome[summary.outcome].append(f"{name} (control)" if summary.control else name)
    words = OUTCOME_WORDS | {Outcome.MEASURED: "measured, without an affinity"}
    return [
        (f"{words[outcome]} ({len(names)})", _cut_list(names))
        for outcome in Outcome
        if (names := by_outcome[outcome])
    ]


def _cut_list(names: Sequence[str]) -> list[str]:
    more = [f"and {len(names) - MOST} more"] if len(names) > MOST else []
    return [*names[:MOST], *more]


def _find_bounds(
    order: Sequence[tuple[DesignSummary, float]], replicates: Sequence[Sequence[_Replicate]]
) -> tuple[float, float]:
    """The ends of the axis: around all values, and around the intervals unless one reaches very far."""
    values = [value for _, value in order] + [value for several in replicates for value, _ in several]
    values = values or [1e-9, 1e-6]
    ends = [end for s, _ in order for end in (s.kd_low_M, s.kd_high_M) if end is not None and end > 0]
    low, high = min(values), max(values)
    return max(min([low, *ends]), low / _REACH) / 1.5, min(max([high, *ends]), high * _REACH) * 1.5
