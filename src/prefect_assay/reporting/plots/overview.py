"""All designs of a campaign at once: a grid in the campaign's order, and counts of the laboratory's calls."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from prefect_assay.reporting.plots.affinities import affinity
from prefect_assay.reporting.plots.style import SMALL, WIDTH, Sheet, draw, shorten
from prefect_assay.reporting.plots.svg import BLUE, GRID, INK, KD, MUTED, PAPER
from prefect_assay.results.formats import OUTCOME_WORDS, molar
from prefect_assay.results.row import Outcome
from prefect_assay.results.summary import DesignSummary

# Five steps of cividis, which differ in lightness for every kind of colour vision: upper end in M, fill, ink, words.
_STEPS: Final = (
    (1e-9, "#00224e", "#ffffff", "under 1 nM"),
    (1e-8, "#434e6c", "#ffffff", "to 10 nM"),
    (1e-7, "#7d7c78", "#ffffff", "to 100 nM"),
    (1e-6, "#bcaf6f", "#000001", "to 1 µM"),
    (float("inf"), "#fee838", "#000001", "over 1 µM"),
)
_FRAMES: Final[dict[Outcome, dict[str, Any]]] = {
    Outcome.MEASURED: {"edgecolor": BLUE, "linewidth": 1},
    Outcome.BINDING: {"edgecolor": BLUE, "linewidth": 1},
    Outcome.NO_BINDING: {"edgecolor": GRID, "linewidth": 1},
    Outcome.NO_EXPRESSION: {"edgecolor": MUTED, "linewidth": 0.8, "linestyle": "--"},
    Outcome.UNKNOWN: {"edgecolor": MUTED, "linewidth": 0.8, "linestyle": ":"},
    Outcome.PENDING: {"edgecolor": MUTED, "linewidth": 0.8, "linestyle": ":"},
    Outcome.MISSING: {"edgecolor": MUTED, "linewidth": 0.8, "linestyle": ":"},
}
_COLUMNS: Final = 8
_CELL: Final = (WIDTH - 20) / _COLUMNS
_HEIGHT: Final = 30
_TINY: Final = 8.0


def overview(summaries: Sequence[DesignSummary]) -> str:
    """One cell per design in the campaign's order: name, value or outcome, colour by affinity, controls framed.

    Raises:
        ConfigurationError: matplotlib is not installed.
    """
    counts = Counter("with a K_D" if affinity(s) else OUTCOME_WORDS[s.outcome] for s in summaries)
    caption = ", ".join(f"{number} {words}".replace("K_D", KD) for words, number in counts.most_common())
    top = 66

    def paint(sheet: Sheet) -> None:
        sheet.heading(f"Campaign overview: {len(summaries)} designs", [caption])
        _paint_key(sheet, 54)
        for number, summary in enumerate(summaries):
            row, column = divmod(number, _COLUMNS)
            _paint_cell(sheet, 10 + column * _CELL, top + row * _HEIGHT, summary)

    rows = -(-len(summaries) // _COLUMNS)
    return draw(WIDTH, top + max(1, rows) * _HEIGHT + 12, paint, title=f"Campaign overview: {caption}")


def _paint_key(sheet: Sheet, y: float) -> None:
    x = 10.0
    for _, fill, _, words in _STEPS:
        sheet.box(x, y - 8, 10, 10, facecolor=fill, edgecolor=MUTED, linewidth=0.6)
        sheet.text(x + 14, y, words, size=_TINY)
        x += 68
    sheet.box(x, y - 8, 10, 10, facecolor="none", edgecolor=INK, linewidth=2)
    sheet.text(x + 14, y, "◆ control", size=_TINY)


def _paint_cell(sheet: Sheet, x: float, y: float, summary: DesignSummary) -> None:
    value = affinity(summary)
    fill, ink, frame = PAPER, INK, _FRAMES[summary.outcome]
    if value is not None:
        _, fill, ink, _ = next(step for step in _STEPS if value <= step[0])
        frame = {"edgecolor": MUTED, "linewidth": 0.6}
    if summary.control:
        frame = {"edgecolor": INK, "linewidth": 2}
    inset = 2 if summary.control else 1.5
    sheet.box(x + inset, y + inset, _CELL - 2 * inset, _HEIGHT - 2 * inset, facecolor=fill, **frame)
    name = f"◆ {summary.name}" if summary.control else summary.name
    sheet.text(x + _CELL / 2, y + 13, shorten(name, _CELL - 5, _TINY), size=_TINY, color=ink, anchor="middle")
    sheet.text(x + _CELL / 2, y + 24, _value(summary), size=_TINY, color=ink, anchor="middle", weight="bold")


def _value(summary: DesignSummary) -> str:
    if affinity(summary) is not None:
        return molar(summary.kd_M, summary.qualifier)
    if summary.outcome is Outcome.MEASURED and summary.tm_C is not None:
        return f"{summary.qualifier or ''}{summary.tm_C:.1f} °C"
    if summary.outcome is Outcome.BINDING and summary.binding_strength:
        return f"{summary.binding_strength}"
    return OUTCOME_WORDS[summary.outcome]


_EXPRESSION: Final = ("high", "medium", "low", "none", "not reported")
_BINDING: Final = ("strong", "medium", "weak", "binds", "none", "unknown", "not tested")


def calls(summaries: Sequence[DesignSummary]) -> str:
    """How many designs the laboratory calls how, expression by binding; controls are left out.

    Raises:
        ConfigurationError: matplotlib is not installed.
    """
    designs = [summary for summary in summaries if not summary.control]
    counts = Counter((_expression_call(s), _binding_call(s)) for s in designs)
    rows = [word for word in _EXPRESSION if any(e == word for e, _ in counts)] or list(_EXPRESSION)
    columns = [word for word in _BINDING if any(b == word for _, b in counts)] or list(_BINDING)
    most = max(counts.values(), default=1)
    left, top, line = 92, 84, 34
    step = (WIDTH - left - 50) / len(columns)

    def paint(sheet: Sheet) -> None:
        left_out = len(summaries) - len(designs)
        note = f", without {left_out} controls" if left_out else ""
        sheet.heading("Expression and binding calls", [f"Number of designs of {len(designs)}{note}"])
        sheet.text(left, 58, "binding", color=MUTED)
        sheet.text(10, 76, "expression", color=MUTED)
        for number, word in enumerate([*columns, "all"]):
            sheet.text(left + step * number, 76, word, size=SMALL, weight="bold")
        for number, expression in enumerate([*rows, "all"]):
            y = top + line * number
            sheet.line([10, WIDTH - 10], [y, y], color=GRID, linewidth=0.8)
            sheet.text(10, y + 16, expression, size=SMALL, weight="bold")
            for place, binding in enumerate([*columns, "all"]):
                count = sum(
                    n for (e, b), n in counts.items() if expression in {e, "all"} and binding in {b, "all"}
                )
                total = "all" in {expression, binding}
                sheet.text(
                    left + step * place, y + 16, str(count), color=MUTED if total or not count else INK
                )
                if count and not total:
                    x = left + step * place
                    sheet.line(
                        [x, x + (step - 10) * count / most],
                        [y + 25, y + 25],
                        color=BLUE,
                        linewidth=5,
                        solid_capstyle="butt",
                    )

    return draw(
        WIDTH,
        top + line * (len(rows) + 1) + 4,
        paint,
        title=f"Expression and binding calls of {len(designs)} designs",
    )


def _expression_call(summary: DesignSummary) -> str:
    if summary.outcome is Outcome.NO_EXPRESSION:
        return "none"
    word = (summary.expression or "").lower()
    return word if word in _EXPRESSION else "not reported"


def _binding_call(summary: DesignSummary) -> str:
    strength = (summary.binding_strength or "").lower()
    if summary.outcome is Outcome.NO_EXPRESSION:
        return "not tested"
    if summary.outcome is Outcome.NO_BINDING:
        return "none"
    if strength in _BINDING[:3]:
        return strength
    if summary.outcome is Outcome.BINDING or affinity(summary):
        return "binds"
    return "unknown" if summary.outcome is Outcome.UNKNOWN else "not tested"
