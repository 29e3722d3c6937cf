"""The designer's own scores: which columns are numbers, and each against what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from prefect_assay.analysis.plots.affinities import CONTROL, DESIGN, affinity
from prefect_assay.analysis.plots.style import (
    SMALL,
    WIDTH,
    Sheet,
    Style,
    draw,
    molar_axis,
)
from prefect_assay.analysis.plots.svg import (
    GRID,
    KD,
    MUTED,
    TM,
)
from prefect_assay.analysis.results.design import DesignSummary
from prefect_assay.analysis.results.row import Outcome
from prefect_assay.designs.scores import predictions_first, read_score
from prefect_assay.service.words import many

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NOT_GIVEN: Final = frozenset({"", "-", "n/a", "na", "nan", "none", "null"})
_FEWEST: Final = 6  # measured designs: with fewer, no correlation is more than chance
_VALUES: Final = 3  # different scores
_LEFT: Final = 66
_PANEL: Final = WIDTH - _LEFT - 20
_LANE: Final = 30
_CROSS: Final[Style] = {"linestyle": "none", "marker": "x", "markersize": 5, "color": MUTED}


def enough_measured(summaries: Sequence[DesignSummary]) -> bool:
    """Whether six designs at least were measured: fewer show nothing about a score."""
    return sum(_is_measured(summary) for summary in summaries) >= _FEWEST


def score_columns(summaries: Sequence[DesignSummary]) -> tuple[str, ...]:
    """The designer's columns whose every value is a finite number, and that have at least three different ones.

    Scores whose titles say which direction is better come first, one of each kind before the others. Row numbers, ranks, seeds
    and lengths are no scores.
    """
    names = dict.fromkeys(name for summary in summaries for name in summary.attributes)
    return tuple(
        name
        for name in predictions_first(names)
        if _is_score([summary.attributes.get(name, "") for summary in summaries])
    )


def _is_measured(summary: DesignSummary) -> bool:
    has_value = affinity(summary) is not None or summary.tm_C is not None
    return has_value and not summary.control and not summary.qualifier


def _is_score(cells: Sequence[str]) -> bool:
    given = [cell for cell in cells if cell.strip().lower() not in _NOT_GIVEN]
    return (
        None not in {read_score(cell) for cell in given}
        and len({read_score(cell) for cell in given}) >= _VALUES
    )


def measured_against_predicted(summaries: Sequence[DesignSummary], column: str) -> str:
    """K_D, or T_m in a campaign without any K_D, over a column of the designer's, with Spearman's rank correlation.

    K_D is drawn with the tightest binders at the top. Limits are arrows, and non-binders have a lane of their own;
    neither counts for the correlation, nor do controls.

    Raises:
        ConfigurationError: matplotlib is not installed.
    """
    melts = not any(affinity(summary) for summary in summaries) and any(s.tm_C for s in summaries)
    scored = [
        (score, s) for s in summaries if (score := read_score(s.attributes.get(column, ""))) is not None
    ]
    points = [
        (score, value, s) for score, s in scored if (value := s.tm_C if melts else affinity(s)) is not None
    ]
    silent = [score for score, s in scored if s.outcome is Outcome.NO_BINDING]
    symbol = TM if melts else KD
    line = _correlation([(x, y) for x, y, s in points if not (s.control or s.qualifier)], symbol)
    top, height = 80, 210
    end = top + height + (_LANE + 8 if silent else 0)

    def paint(sheet: Sheet) -> None:
        sheet.heading(f"{symbol} against {column}", [line])
        samples: list[tuple[str, Style]] = [
            ("design", DESIGN),
            ("control", CONTROL),
            ("limit", DESIGN | {"marker": "^"}),
        ]
        sheet.legend(58, [*samples, ("no binding", _CROSS)] if silent else samples)
        title = column
        axes = sheet.axes(
            _LEFT, top, _PANEL, height, y=f"{TM} (°C)" if melts else KD, x="" if silent else title
        )
        _paint_points(axes, points, melts=melts)
        across = [score for score, _, _ in points] + silent or [0.0, 1.0]
        margin = (max(across) - min(across)) * 0.04 or 0.5
        axes.set_xlim(min(across) - margin, max(across) + margin)
        if silent:
            axes.tick_params(labelbottom=False)
            lower = sheet.axes(_LEFT, end - _LANE, _PANEL, _LANE, x=title)
            lower.plot(silent, [0] * len(silent), clip_on=False, **_CROSS)
            lower.set_xlim(*axes.get_xlim())
            lower.set_ylim(-1, 1)
            lower.set_yticks([])
            sheet.text(_LEFT - 6, end - _LANE / 2 + 3, "no binding", size=SMALL, anchor="end")

    return draw(WIDTH, end + 44, paint, title=f"{symbol} against {column}: {line}")


def _paint_points(axes: Axes, points: Sequence[tuple[float, float, DesignSummary]], *, melts: bool) -> None:
    values = [value for _, value, _ in points] or [1e-9, 1e-6]
    if melts:
        axes.set_ylim(min(values) - 2, max(values) + 2)
    else:
        molar_axis(axes, min(values) / 2, max(values) * 2, "y")
        axes.invert_yaxis()
    axes.grid(axis="y", color=GRID, linewidth=0.7)
    for score, value, summary in points:
        style: Style = CONTROL if summary.control else DESIGN
        if summary.qualifier:
            up = (summary.qualifier == ">") is melts
            style = style | {"marker": "^" if up else "v"}
        axes.plot([score], [value], clip_on=False, **style)


def _correlation(pairs: Sequence[tuple[float, float]], symbol: str) -> str:
    """Spearman's coefficient in words, with its direction: a low K_D and a high T_m are good."""
    scores, values = [score for score, _ in pairs], [value for _, value in pairs]
    if len(pairs) < _FEWEST or len(set(scores)) == 1 or len(set(values)) == 1:
        return f"no rank correlation: {many(len(pairs), 'design')} with a measured {symbol}, or all alike"
    from scipy import stats  # noqa: PLC0415  an optional extra

    result: Any = stats.spearmanr(scores, values)
    rho = float(result.statistic)
    words = {KD: ("tighter", "weaker"), TM: ("less stable", "more stable")}[symbol][rho > 0]
    return f"Spearman ρ = {rho:.2f} over {len(pairs)} designs (higher is {words})".replace("-", "−")  # noqa: RUF001
