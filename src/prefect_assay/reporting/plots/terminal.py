"""The ranked affinities for a terminal, with Rich alone."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final

from rich.table import Table
from rich.text import Text

from prefect_assay.reporting.plots.affinities import affinity, labels, ranked
from prefect_assay.reporting.plots.style import LETTER, decade, shorten
from prefect_assay.results.formats import OUTCOME_WORDS, molar
from prefect_assay.results.summary import DesignSummary

_WIDTH: Final = 36
_NAME: Final = 24
_MARKS: Final = {None: "●", "<": "◀", ">": "▶"}


def terminal_ranking(summaries: Sequence[DesignSummary]) -> Table:
    """K_D of each design on a logarithmic line, tightest first, with its 95 % interval; a limit is an arrow."""
    order, label = ranked(summaries), labels(summaries)
    logarithms = [math.log10(value) for _, value in order] or [-9.0]
    low, high = math.floor(min(logarithms)), max(math.floor(min(logarithms)) + 1, math.ceil(max(logarithms)))
    others = Counter(OUTCOME_WORDS[s.outcome] for s in summaries if affinity(s) is None)
    table = Table(caption=", ".join(f"{number} {words}" for words, number in others.items()) or None)
    table.add_column("Design")
    table.add_column("K_D", justify="right")
    left, right = decade(10.0**low), decade(10.0**high)
    table.add_column(left + right.rjust(_WIDTH - len(left)), no_wrap=True)
    for summary, value in order:
        name = shorten(label(summary), _NAME * LETTER, 1)
        table.add_row(
            Text(f"◆ {name}" if summary.control else name),  # Text: a name is no markup
            Text(molar(value, summary.qualifier)),
            Text(_line(summary, value, low, high)),
        )
    return table


def _line(summary: DesignSummary, value: float, low: float, high: float) -> str:
    def column(concentration: float | None) -> int:
        share = (math.log10(concentration or value) - low) / (high - low)
        return round(min(max(share, 0), 1) * (_WIDTH - 1))

    cells = ["·"] * _WIDTH
    first, last = column(summary.kd_low_M), column(summary.kd_high_M)
    cells[first : last + 1] = "─" * (last + 1 - first)
    cells[column(value)] = _MARKS.get(summary.qualifier, "●")
    return "".join(cells)
