"""The ranked affinities for a terminal, with Rich alone."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final

from rich.table import Table
from rich.text import Text

from prefect_assay.reporting.plots.affinities import affinity, ranked
from prefect_assay.reporting.plots.style import shorten
from prefect_assay.results.formats import OUTCOME_WORDS, molar
from prefect_assay.results.summary import DesignSummary

_WIDTH: Final = 36
_NAME: Final = 24
_MARKS: Final = {None: "●", "<": "◀", ">": "▶"}


def terminal_ranking(summaries: Sequence[DesignSummary]) -> Table:
    """K_D of each design on a logarithmic line, tightest first, with its 95 % interval; a limit is an arrow."""
    order = ranked(summaries)
    values = [affinity(summary) or 1 for summary in order] or [1e-9]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    high = max(high, low + 1)
    others = Counter(OUTCOME_WORDS[s.outcome] for s in summaries if affinity(s) is None)
    table = Table(caption=", ".join(f"{number} {words}" for words, number in others.items()) or None)
    table.add_column("Design")
    table.add_column("K_D", justify="right")
    table.add_column(_scale(low, high), no_wrap=True)
    for summary in order:
        name = shorten(summary.name, _NAME, 1 / 0.54)
        table.add_row(
            Text(f"◆ {name}" if summary.control else name),
            Text(molar(summary.kd_M, summary.qualifier)),
            Text(_plot(summary, low, high)),
        )
    return table


def _column(value: float, low: float, high: float) -> int:
    share = (math.log10(value) - low) / (high - low)
    return round(min(max(share, 0), 1) * (_WIDTH - 1))


def _plot(summary: DesignSummary, low: float, high: float) -> str:
    value = affinity(summary) or 1
    cells = ["·"] * _WIDTH
    first = _column(summary.kd_low_M, low, high) if summary.kd_low_M else _column(value, low, high)
    last = _column(summary.kd_high_M, low, high) if summary.kd_high_M else _column(value, low, high)
    cells[first : last + 1] = "─" * (last + 1 - first)
    cells[_column(value, low, high)] = _MARKS.get(summary.qualifier, "●")
    return "".join(cells)


def _scale(low: int, high: int) -> str:
    left, right = molar(10.0**low), molar(10.0**high)
    return left + " " * (_WIDTH - len(left) - len(right)) + right
