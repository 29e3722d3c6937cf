"""The designer's own scores: which columns are numbers, and each against what was measured."""

import math
from collections.abc import Sequence
from typing import Any, Final

from prefect_assay.reporting.plots.affinities import CONTROL, DESIGN, affinity
from prefect_assay.reporting.plots.style import SMALL, WIDTH, Sheet, draw, molar_axis, shorten
from prefect_assay.reporting.plots.svg import GRID, KD, MUTED
from prefect_assay.results.row import Outcome
from prefect_assay.results.summary import DesignSummary

_NOT_GIVEN: Final = frozenset({"", "-", "n/a", "na", "nan", "none", "null"})
_FEWEST: Final = 3  # designs or different values: fewer say nothing about a correlation
_LEFT: Final = 66
_LANE: Final = 30
_CROSS: Final[dict[str, Any]] = {"linestyle": "none", "marker": "x", "markersize": 5, "color": MUTED}


def score_columns(summaries: Sequence[DesignSummary]) -> tuple[str, ...]:
    """The designer's columns whose every value is a finite number, and that have at least three different ones."""
    names = dict.fromkeys(name for summary in summaries for name in summary.attributes)
    return tuple(
        name for name in names if _is_score([summary.attributes.get(name, "") for summary in summaries])
    )


def _is_score(cells: Sequence[str]) -> bool:
    given = [cell for cell in cells if cell.strip().lower() not in _NOT_GIVEN]
    return None not in {_number(cell) for cell in given} and len({_number(cell) for cell in given}) >= _FEWEST


def _number(cell: str) -> float | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def measured_against_predicted(summaries: Sequence[DesignSummary], column: str) -> str:
    """K_D over one column of the designer's, with Spearman's rank correlation over the designs with a measured K_D.

    Limits are drawn as arrows, and non-binders in a lane of their own; neither counts for the correlation, nor do
    controls.

    Raises:
        ConfigurationError: matplotlib is not installed.
    """
    scored = [(score, s) for s in summaries if (score := _number(s.attributes.get(column, ""))) is not None]
    points = [(score, value, s) for score, s in scored if (value := affinity(s)) is not None]
    silent = [(score, s) for score, s in scored if s.outcome is Outcome.NO_BINDING]
    pairs = [(score, value) for score, value, s in points if not s.control and not s.qualifier]
    top, height = 78, 210
    lane = _LANE if silent else 0

    def paint(sheet: Sheet) -> None:
        sheet.heading(f"{KD} against {column}", [_correlation(pairs)])
        samples = [("design", DESIGN), ("control", CONTROL), ("limit", DESIGN | {"marker": "^"})]
        sheet.legend(56, [*samples, ("no binding", _CROSS)] if silent else samples)
        title = shorten(column, WIDTH - _LEFT - 40, SMALL)
        axes = sheet.axes(_LEFT, top, WIDTH - _LEFT - 20, height, y=KD, x="" if lane else title)
        values = [value for _, value, _ in points] or [1e-9, 1e-6]
        molar_axis(axes, min(values) / 2, max(values) * 2, "y")
        axes.grid(axis="y", color=GRID, linewidth=0.7)
        for score, value, summary in points:
            style = CONTROL if summary.control else DESIGN
            limit = {"marker": "v" if summary.qualifier == "<" else "^"} if summary.qualifier else {}
            axes.plot([score], [value], clip_on=False, **(style | limit))
        across = [score for score, _, _ in points] + [score for score, _ in silent] or [0.0, 1.0]
        margin = (max(across) - min(across)) * 0.04 or 0.5
        axes.set_xlim(min(across) - margin, max(across) + margin)
        if lane:
            axes.tick_params(labelbottom=False)
            lower = sheet.axes(_LEFT, top + height + 8, WIDTH - _LEFT - 20, lane, x=title)
            lower.plot([score for score, _ in silent], [0] * len(silent), clip_on=False, **_CROSS)
            lower.set_xlim(*axes.get_xlim())
            lower.set_ylim(-1, 1)
            lower.set_yticks([])
            sheet.text(_LEFT - 6, top + height + 8 + lane / 2 + 3, "no binding", size=SMALL, anchor="end")

    total = top + height + (8 + lane if lane else 0) + 44
    return draw(WIDTH, total, paint, title=f"K_D against {column}: {_correlation(pairs)}")


def _correlation(pairs: Sequence[tuple[float, float]]) -> str:
    """Spearman's coefficient in words; negative: a higher score goes with tighter binding."""
    scores, values = {score for score, _ in pairs}, {value for _, value in pairs}
    if len(pairs) < _FEWEST or len(scores) == 1 or len(values) == 1:
        return f"no rank correlation: {len(pairs)} designs with a measured {KD}, or all alike"
    from scipy import stats  # noqa: PLC0415  an optional extra

    result: Any = stats.spearmanr([score for score, _ in pairs], [value for _, value in pairs])
    rho = float(result.statistic)
    meaning = "higher is tighter" if rho < 0 else "higher is weaker"
    return f"Spearman ρ = {rho:.2f} over {len(pairs)} designs ({meaning})".replace("-", "−")  # noqa: RUF001
