"""The designer's own scores: which columns are numbers, and each against what was measured."""

import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final

from prefect_assay.analysis.plots.affinities import CONTROL, DESIGN, LIMIT, find_affinity
from prefect_assay.analysis.plots.scales import Scale, make_linear_scale, make_molar_scale, widen_range
from prefect_assay.analysis.plots.sheet import SMALL, WIDTH, Marker, Sheet
from prefect_assay.analysis.plots.svg import KD, MUTED, TM
from prefect_assay.analysis.results.design import DesignSummary
from prefect_assay.analysis.results.row import Outcome
from prefect_assay.designs.scores import predictions_first, read_score
from prefect_assay.service.words import many

_NOT_GIVEN: Final = frozenset({"", "-", "n/a", "na", "nan", "none", "null"})
_FEWEST: Final = 6  # measured designs: with fewer, no correlation is more than chance
_VALUES: Final = 3  # different scores
_LEFT: Final = 66
_PANEL: Final = WIDTH - _LEFT - 20
_LANE: Final = 30
_CROSS: Final = Marker("cross", MUTED, 5)


def has_enough_measured(summaries: Sequence[DesignSummary]) -> bool:
    """Whether six designs at least were measured: fewer show nothing about a score."""
    return sum(_is_measured(summary) for summary in summaries) >= _FEWEST


def has_points(summaries: Sequence[DesignSummary], column: str) -> bool:
    """Whether a design with a score in the column was measured: without one there is nothing to draw."""
    return bool(_list_points(summaries, column))


def find_score_columns(summaries: Sequence[DesignSummary]) -> tuple[str, ...]:
    """The designer's columns whose every value is a finite number, and that have at least three different ones.

    Scores whose titles say which direction is better come first, one of each kind before the others. Row numbers, ranks, seeds
    and lengths are not scores.
    """
    names = dict.fromkeys(name for summary in summaries for name in summary.attributes)
    return tuple(
        name
        for name in predictions_first(names)
        if _is_score([summary.attributes.get(name, "") for summary in summaries])
    )


def _is_measured(summary: DesignSummary) -> bool:
    has_value = find_affinity(summary) is not None or summary.tm_C is not None
    return has_value and not summary.control and not summary.qualifier


def _is_score(cells: Sequence[str]) -> bool:
    filled = [cell for cell in cells if cell.strip().lower() not in _NOT_GIVEN]
    return (
        None not in {read_score(cell) for cell in filled}
        and len({read_score(cell) for cell in filled}) >= _VALUES
    )


def draw_measured_against_predicted(summaries: Sequence[DesignSummary], column: str) -> str:
    """K_D, or T_m in a campaign without any K_D, over a column of the designer's, with Spearman's rank correlation.

    K_D is drawn with the tightest binders at the top. Limits are arrows, and non-binders have a lane of their own;
    neither counts for the correlation, nor do controls.
    """
    melts = _is_melting(summaries)
    points, scored = _list_points(summaries, column), _list_scored(summaries, column)
    silent = [score for score, s in scored if s.outcome is Outcome.NO_BINDING]
    symbol = TM if melts else KD
    line = _describe_correlation([(x, y) for x, y, s in points if not (s.control or s.qualifier)], symbol)
    top, height = 80, 210
    end = top + height + (_LANE + 8 if silent else 0)
    across = [score for score, _, _ in points] + silent or [0.0, 1.0]
    scores = make_linear_scale(*widen_range(min(across), max(across), 0.04), column)

    sheet = Sheet(WIDTH, end + 44)
    sheet.add_heading(f"{symbol} against {column}", [line])
    samples = [("design", DESIGN), ("control", CONTROL), ("limit", LIMIT.reshape("up"))]
    sheet.add_legend(58, [*samples, ("no binding", _CROSS)] if silent else samples)
    measured = _scale_values([value for _, value, _ in points], is_molar=not melts)
    above = scores.hide_title() if silent else scores
    panel = sheet.add_panel(_LEFT, top, _PANEL, height, above, measured, grid="y")
    for score, value, summary in points:
        marker = CONTROL if summary.control else DESIGN
        if summary.qualifier:
            marker = marker.reshape("up" if (summary.qualifier == ">") is melts else "down")
        panel.draw_markers([score], [value], marker)
    if silent:
        lane = sheet.add_panel(_LEFT, end - _LANE, _PANEL, _LANE, scores, Scale(-1, 1))
        lane.draw_markers(silent, [0] * len(silent), _CROSS)
        sheet.add_text(_LEFT - 6, end - _LANE / 2 + 3, "no binding", size=SMALL, anchor="end")
    return sheet.write_svg(f"{symbol} against {column}: {line}")


def _is_melting(summaries: Sequence[DesignSummary]) -> bool:
    has_affinity = any(find_affinity(summary) for summary in summaries)
    return not has_affinity and any(summary.tm_C is not None for summary in summaries)


def _list_scored(summaries: Sequence[DesignSummary], column: str) -> list[tuple[float, DesignSummary]]:
    scores = [(read_score(summary.attributes.get(column, "")), summary) for summary in summaries]
    return [(score, summary) for score, summary in scores if score is not None]


def _list_points(summaries: Sequence[DesignSummary], column: str) -> list[tuple[float, float, DesignSummary]]:
    """Score, K_D or T_m, and summary of each design that has both."""
    melts = _is_melting(summaries)
    return [
        (score, value, summary)
        for score, summary in _list_scored(summaries, column)
        if (value := summary.tm_C if melts else find_affinity(summary)) is not None
    ]


def _scale_values(values: Sequence[float], *, is_molar: bool) -> Scale:
    if not is_molar:
        values = values or [25.0, 95.0]
        return make_linear_scale(min(values) - 2, max(values) + 2, f"{TM} (°C)")
    values = values or [1e-9, 1e-6]
    return make_molar_scale(min(values) / 2, max(values) * 2, KD).reverse()


def _describe_correlation(pairs: Sequence[tuple[float, float]], symbol: str) -> str:
    """Spearman's coefficient in words, with its direction: a low K_D and a high T_m are good."""
    scores, values = [score for score, _ in pairs], [value for _, value in pairs]
    if len(pairs) < _FEWEST or len(set(scores)) == 1 or len(set(values)) == 1:
        return f"no rank correlation: {many(len(pairs), 'design')} with a measured {symbol}, or all alike"
    rho = statistics.correlation(_rank(scores), _rank(values))
    words = {KD: ("tighter", "weaker"), TM: ("less stable", "more stable")}[symbol][rho > 0]
    return f"Spearman ρ = {rho:.2f} over {len(pairs)} designs (higher is {words})".replace("-", "−")  # noqa: RUF001


def _rank(values: Sequence[float]) -> list[float]:
    """The place of each value; equal values share the mean of their places."""
    ordered = sorted(values)
    return [(bisect_left(ordered, value) + bisect_right(ordered, value)) / 2 for value in values]
