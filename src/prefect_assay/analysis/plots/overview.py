"""All designs of a campaign at once: a grid of cells, and counts of the laboratory's calls."""

from collections import Counter
from collections.abc import Sequence
from itertools import product
from typing import Final

from prefect_assay.analysis.plots.affinities import MOST, affinity, labels
from prefect_assay.analysis.plots.style import (
    SMALL,
    WIDTH,
    Sheet,
    Style,
    draw,
    two_lines,
)
from prefect_assay.analysis.plots.svg import (
    BLUE,
    GRID,
    INK,
    KD,
    MUTED,
    PAPER,
)
from prefect_assay.analysis.results.design import DesignSummary
from prefect_assay.analysis.results.formats import OUTCOME_WORDS
from prefect_assay.analysis.results.ranked import value_text
from prefect_assay.analysis.results.row import Outcome
from prefect_assay.service.words import many

# Five steps of cividis, which differ in lightness for every kind of colour vision: upper end in M, fill, ink, words.
_STEPS: Final = (
    (1e-9, "#00224e", "#fafafa", "under 1 nM"),
    (1e-8, "#434e6c", "#fafafa", "to 10 nM"),
    (1e-7, "#7d7c78", "#fafafa", "to 100 nM"),
    (1e-6, "#bcaf6f", "#111111", "to 1 µM"),
    (float("inf"), "#fee838", "#111111", "over 1 µM"),
)
_FRAMES: Final[dict[Outcome, Style]] = {
    Outcome.MEASURED: {"edgecolor": BLUE, "linewidth": 1},
    Outcome.BINDING: {"edgecolor": BLUE, "linewidth": 1},
    Outcome.NO_BINDING: {"edgecolor": GRID, "linewidth": 1},
    Outcome.NO_EXPRESSION: {"edgecolor": MUTED, "linewidth": 0.8, "linestyle": "--"},
    Outcome.UNKNOWN: {"edgecolor": MUTED, "linewidth": 0.8, "linestyle": ":"},
    Outcome.PENDING: {"edgecolor": MUTED, "linewidth": 0.8, "linestyle": ":"},
    Outcome.MISSING: {"edgecolor": MUTED, "linewidth": 0.8, "linestyle": ":"},
}
_COLUMNS: Final = 6
_CELL: Final = (WIDTH - 20) / _COLUMNS
_HEIGHT: Final = 40
_TINY: Final = 9.0
_GRID_LEFT: Final = 84
_GRID_TOP: Final = 86
_LINE: Final = 34


def overview(summaries: Sequence[DesignSummary]) -> str:
    """One cell per design, at most 384 in the order given: name, value or outcome, colour by affinity, controls framed.

    Raises:
        ConfigurationError: matplotlib is not installed.
    """
    counts = Counter(f"with a {KD}" if affinity(s) else OUTCOME_WORDS[s.outcome] for s in summaries)
    caption = ", ".join(f"{number} {words}" for words, number in counts.most_common())
    if len(summaries) > MOST:
        caption = f"the first {MOST}; {caption}"
    shown = summaries[:MOST]
    top, label = 64, labels(summaries)

    def paint(sheet: Sheet) -> None:
        sheet.heading(f"Campaign overview: {many(len(summaries), 'design')}", [caption])
        if any(affinity(summary) for summary in shown):
            _paint_key(sheet, 54)
        for number, summary in enumerate(shown):
            row, column = divmod(number, _COLUMNS)
            place = (10 + column * _CELL, top + row * _HEIGHT)
            _paint_cell(sheet, *place, summary, label(summary))

    rows = -(-len(shown) // _COLUMNS)
    return draw(WIDTH, top + max(1, rows) * _HEIGHT + 12, paint, title=f"Campaign overview: {caption}")


def _paint_key(sheet: Sheet, y: float) -> None:
    x = 10.0
    for _, fill, _, words in _STEPS:
        sheet.box(x, y - 8, 10, 10, facecolor=fill, edgecolor=MUTED, linewidth=0.6)
        sheet.text(x + 14, y, words, size=_TINY)
        x += 68
    sheet.box(x, y - 8, 10, 10, facecolor="none", edgecolor=INK, linewidth=2)
    sheet.text(x + 14, y, "control", size=_TINY)


def _paint_cell(sheet: Sheet, x: float, y: float, summary: DesignSummary, name: str) -> None:
    value = affinity(summary)
    fill, ink, frame = PAPER, INK, _FRAMES[summary.outcome]
    if value is not None:
        _, fill, ink, _ = next(step for step in _STEPS if value <= step[0])
        frame = {"edgecolor": MUTED, "linewidth": 0.6}
    if summary.control:
        frame = {"edgecolor": INK, "linewidth": 2}
    inset = 2 if summary.control else 1.5
    sheet.box(x + inset, y + inset, _CELL - 2 * inset, _HEIGHT - 2 * inset, facecolor=fill, **frame)
    lines = two_lines(f"◆ {name}" if summary.control else name, _CELL - 4, _TINY)
    first = y + 13 + 5.5 * (2 - len(lines))
    for number, line in enumerate([*lines, value_text(summary)]):
        sheet.text(x + _CELL / 2, first + 11 * number, line, size=_TINY, color=ink, anchor="middle")


_EXPRESSION: Final = ("high", "medium", "low", "none", "not reported")
_BINDING: Final = ("strong", "medium", "weak", "binds", "none", "unknown", "untested")


def calls(summaries: Sequence[DesignSummary]) -> str:
    """How many designs the laboratory calls how, expression by binding; controls are left out.

    Raises:
        ConfigurationError: matplotlib is not installed.
    """
    designs = [summary for summary in summaries if not summary.control]
    counts: Counter[tuple[str, str]] = Counter()
    for summary in designs:
        counts.update(product((_expression_call(summary), "all"), (_binding_call(summary), "all")))
    rows = [word for word in _EXPRESSION if counts[word, "all"]]
    columns = [word for word in _BINDING if counts["all", word]]
    left_out = len(summaries) - len(designs)
    line = many(len(designs), "design") + (f", controls left out: {left_out}" if left_out else "")

    def paint(sheet: Sheet) -> None:
        sheet.heading("Expression and binding calls", [line])
        sheet.text(_GRID_LEFT, 60, "binding", color=MUTED)
        sheet.text(10, 78, "expression", color=MUTED)
        step = (WIDTH - _GRID_LEFT - 36) / max(1, len(columns))
        places = [(word, _GRID_LEFT + step * number) for number, word in enumerate([*columns, "all"])]
        for word, x in places:
            sheet.text(x, 78, word, size=SMALL, weight="bold")
        most = max((counts[pair] for pair in product(rows, columns)), default=1)
        for number, expression in enumerate([*rows, "all"]):
            y = _GRID_TOP + _LINE * number
            sheet.line([10, WIDTH - 10], [y, y], color=GRID, linewidth=0.8)
            sheet.text(10, y + 16, expression, size=SMALL, weight="bold")
            for binding, x in places:
                count, total = counts[expression, binding], "all" in {expression, binding}
                sheet.text(x, y + 16, str(count), color=INK if count and not total else MUTED)
                if count and not total:
                    sheet.line([x, x + (step - 8) * count / most], [y + 25] * 2, color=BLUE, linewidth=5)

    height = _GRID_TOP + _LINE * (len(rows) + 1) + 4
    return draw(WIDTH, height, paint, title=f"Expression and binding calls: {line}")


def _expression_call(summary: DesignSummary) -> str:
    if summary.outcome is Outcome.NO_EXPRESSION:
        return "none"
    word = (summary.expression or "").lower()
    return word if word in _EXPRESSION else "not reported"


def _binding_call(summary: DesignSummary) -> str:
    strength = (summary.binding_strength or "").lower()
    if summary.outcome is Outcome.NO_EXPRESSION:
        return "untested"
    if summary.outcome is Outcome.NO_BINDING:
        return "none"
    if strength in _BINDING[:3]:
        return strength
    if summary.outcome is Outcome.BINDING or affinity(summary):
        return "binds"
    return "unknown" if summary.outcome is Outcome.UNKNOWN else "untested"
