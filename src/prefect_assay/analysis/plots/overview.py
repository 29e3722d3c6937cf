"""All designs of a campaign at once: a grid of cells, and counts of the laboratory's calls."""

from collections import Counter
from collections.abc import Sequence
from itertools import product
from typing import Final

from prefect_assay.analysis.plots.affinities import MOST, find_affinity, make_label
from prefect_assay.analysis.plots.sheet import DASHED, DOTTED, SMALL, WIDTH, Line, Sheet
from prefect_assay.analysis.plots.svg import BLUE, GRID, INK, KD, MUTED, PAPER
from prefect_assay.analysis.plots.texts import split_in_two
from prefect_assay.analysis.results.design import DesignSummary
from prefect_assay.analysis.results.formats import OUTCOME_WORDS
from prefect_assay.analysis.results.ranked import format_value
from prefect_assay.analysis.results.row import Outcome
from prefect_assay.service.words import many

# Five steps of cividis, which differ in lightness for every kind of colour vision: upper end in M, fill, ink, words.
_Step = tuple[float, str, str, str]
_STEPS: Final[tuple[_Step, ...]] = (
    (1e-9, "#00224e", "#fafafa", "under 1 nM"),
    (1e-8, "#434e6c", "#fafafa", "to 10 nM"),
    (1e-7, "#7d7c78", "#fafafa", "to 100 nM"),
    (1e-6, "#bcaf6f", "#111111", "to 1 µM"),
    (float("inf"), "#fee838", "#111111", "over 1 µM"),
)
_THIN: Final = Line(MUTED, 0.6)
_CONTROL: Final = Line(INK, 2)
_FRAMES: Final = {
    Outcome.MEASURED: Line(BLUE, 1),
    Outcome.BINDING: Line(BLUE, 1),
    Outcome.NO_BINDING: Line(GRID, 1),
    Outcome.NO_EXPRESSION: Line(MUTED, 0.8, DASHED),
    Outcome.UNKNOWN: Line(MUTED, 0.8, DOTTED),
    Outcome.PENDING: Line(MUTED, 0.8, DOTTED),
    Outcome.MISSING: Line(MUTED, 0.8, DOTTED),
}
_COLUMNS: Final = 6
_CELL: Final = (WIDTH - 20) / _COLUMNS
_HEIGHT: Final = 40
_TINY: Final = 9.0
_GRID_LEFT: Final = 84
_GRID_TOP: Final = 86
_LINE: Final = 34


def draw_overview(summaries: Sequence[DesignSummary]) -> str:
    """One cell per design, at most 384 in the order given: name, value or outcome, colour by affinity, controls framed.

    A limit has a colour only where all its values have the same one.
    """
    counts = Counter(f"with a {KD}" if find_affinity(s) else OUTCOME_WORDS[s.outcome] for s in summaries)
    caption = ", ".join(f"{number} {words}" for words, number in counts.most_common())
    if len(summaries) > MOST:
        caption = f"the first {MOST}; {caption}"
    shown = summaries[:MOST]
    top, write_label = 64, make_label(summaries)
    rows = max(1, -(-len(shown) // _COLUMNS))

    sheet = Sheet(WIDTH, top + rows * _HEIGHT + 12)
    sheet.add_heading(f"Campaign overview: {many(len(summaries), 'design')}", [caption])
    if any(find_affinity(summary) for summary in shown):
        _add_key(sheet, 54)
    for number, summary in enumerate(shown):
        row, column = divmod(number, _COLUMNS)
        _add_cell(sheet, 10 + column * _CELL, top + row * _HEIGHT, summary, write_label(summary))
    return sheet.write_svg(f"Campaign overview: {caption}")


def _add_key(sheet: Sheet, y: float) -> None:
    samples = [(fill, _THIN, words) for _, fill, _, words in _STEPS]
    for number, (fill, edge, words) in enumerate([*samples, ("", _CONTROL, "control")]):
        x = 10 + 68 * number
        sheet.add_box(x, y - 8, 10, 10, fill=fill, edge=edge)
        sheet.add_text(x + 14, y, words, size=_TINY)


def _find_step(value: float, qualifier: str | None) -> _Step | None:
    """The step of an affinity; None for a limit below or above which there are several."""
    if qualifier == "<":
        return _STEPS[0] if value <= _STEPS[0][0] else None
    if qualifier == ">":
        return _STEPS[-1] if value >= _STEPS[-2][0] else None
    return next(step for step in _STEPS if value <= step[0])


def _add_cell(sheet: Sheet, x: float, y: float, summary: DesignSummary, name: str) -> None:
    value = find_affinity(summary)
    fill, ink, edge = PAPER, INK, _FRAMES[summary.outcome]
    if value is not None:
        edge = _THIN
        if step := _find_step(value, summary.qualifier):
            _, fill, ink, _ = step
    edge = _CONTROL if summary.control else edge
    inset = 2 if summary.control else 1.5
    sheet.add_box(x + inset, y + inset, _CELL - 2 * inset, _HEIGHT - 2 * inset, fill=fill, edge=edge)
    lines = split_in_two(f"◆ {name}" if summary.control else name, _CELL - 4, _TINY)
    first = y + 13 + 5.5 * (2 - len(lines))
    for number, line in enumerate([*lines, format_value(summary)]):
        sheet.add_text(x + _CELL / 2, first + 11 * number, line, size=_TINY, color=ink, anchor="middle")


_EXPRESSION: Final = ("high", "medium", "low", "none", "not reported")
_BINDING: Final = ("strong", "medium", "weak", "binds", "none", "unknown", "untested")


def draw_calls(summaries: Sequence[DesignSummary]) -> str:
    """How many designs the laboratory calls how, expression by binding; controls are left out."""
    designs = [summary for summary in summaries if not summary.control]
    counts: Counter[tuple[str, str]] = Counter()
    for summary in designs:
        counts.update(product((_read_expression(summary), "all"), (_read_binding(summary), "all")))
    rows = [word for word in _EXPRESSION if counts[word, "all"]]
    columns = [word for word in _BINDING if counts["all", word]]
    left_out = len(summaries) - len(designs)
    caption = many(len(designs), "design") + (f", controls left out: {left_out}" if left_out else "")

    sheet = Sheet(WIDTH, _GRID_TOP + _LINE * (len(rows) + 1) + 4)
    sheet.add_heading("Expression and binding calls", [caption])
    sheet.add_text(_GRID_LEFT, 60, "binding", color=MUTED)
    sheet.add_text(10, 78, "expression", color=MUTED)
    step = (WIDTH - _GRID_LEFT - 36) / max(1, len(columns))
    places = [(word, _GRID_LEFT + step * number) for number, word in enumerate([*columns, "all"])]
    for word, x in places:
        sheet.add_text(x, 78, word, size=SMALL, is_bold=True)
    most = max((counts[pair] for pair in product(rows, columns)), default=1)
    for number, expression in enumerate([*rows, "all"]):
        y = _GRID_TOP + _LINE * number
        sheet.add_line([(10, y), (WIDTH - 10, y)], Line(GRID, 0.8))
        sheet.add_text(10, y + 16, expression, size=SMALL, is_bold=True)
        for binding, x in places:
            count, is_total = counts[expression, binding], "all" in {expression, binding}
            sheet.add_text(x, y + 16, str(count), color=INK if count and not is_total else MUTED)
            if count and not is_total:
                sheet.add_box(x, y + 22.5, (step - 8) * count / most, 5, fill=BLUE)
    return sheet.write_svg(f"Expression and binding calls: {caption}")


def _read_expression(summary: DesignSummary) -> str:
    if summary.outcome is Outcome.NO_EXPRESSION:
        return "none"
    word = (summary.expression or "").lower()
    return word if word in _EXPRESSION else "not reported"


def _read_binding(summary: DesignSummary) -> str:
    strength = (summary.binding_strength or "").lower()
    if summary.outcome is Outcome.NO_EXPRESSION:
        return "untested"
    if summary.outcome is Outcome.NO_BINDING:
        return "none"
    if strength in _BINDING[:3]:
        return strength
    if summary.outcome is Outcome.BINDING or find_affinity(summary):
        return "binds"
    return "unknown" if summary.outcome is Outcome.UNKNOWN else "untested"
