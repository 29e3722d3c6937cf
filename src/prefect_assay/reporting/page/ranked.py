"""The ranked table of a report: its columns and their cells as text. Pure."""

from collections.abc import Callable, Sequence
from typing import Final

from prefect_assay.models.base import Model
from prefect_assay.reporting.page import words
from prefect_assay.results.formats import molar, rate
from prefect_assay.results.row import Outcome
from prefect_assay.results.summary import DesignSummary

ATTRIBUTES_MAX: Final = 4
_HAS_RESULT: Final = frozenset({Outcome.MEASURED, Outcome.BINDING})
_ATTRIBUTE_LENGTH: Final = 24


class RankedDesign(Model):
    """One line. `place` counts designs with a result from 1; controls and failures have none."""

    place: int | None
    design: DesignSummary
    cells: tuple[str, ...]


class RankedTable(Model):
    """Titles and cells agree in number; columns without any value are left out."""

    titles: tuple[str, ...]
    lines: tuple[RankedDesign, ...]
    attributes_left_out: int


def ranked_table(ranked: Sequence[DesignSummary], scores: Sequence[str]) -> RankedTable:
    """The table of designs in their order; of the designer's columns first `scores`, then those that differ."""
    titles = _attributes(ranked, scores)
    shown = titles[:ATTRIBUTES_MAX]
    columns = [(title, cell) for title, cell in _COLUMNS if any(cell(design) for design in ranked)]
    columns += [(title, _attribute(title)) for title in shown]
    lines = []
    place = 0
    for design in ranked:
        counts = design.outcome in _HAS_RESULT and not design.control
        place += counts
        lines.append(
            RankedDesign(
                place=place if counts else None,
                design=design,
                cells=tuple(cell(design) or words.NONE for _, cell in columns),
            )
        )
    return RankedTable(
        titles=tuple(title for title, _ in columns),
        lines=tuple(lines),
        attributes_left_out=len(titles) - len(shown),
    )


def _attributes(designs: Sequence[DesignSummary], scores: Sequence[str]) -> list[str]:
    values: dict[str, set[str]] = {title: set() for title in scores}
    for design in designs:
        for title, value in design.attributes.items():
            values.setdefault(title, set()).add(value)
    first = [title for title in scores if values[title]]
    return first + [title for title, found in values.items() if len(found) > 1 and title not in first]


def _attribute(title: str) -> Callable[[DesignSummary], str]:
    def cell(design: DesignSummary) -> str:
        value = design.attributes.get(title, "")
        return value if len(value) <= _ATTRIBUTE_LENGTH else f"{value[: _ATTRIBUTE_LENGTH - 1]}\u2026"

    return cell


def _rate(value: float | None, unit: str) -> str:
    return "" if value is None else rate(value, unit)


def _concentration(design: DesignSummary) -> str:
    if design.concentration_nM is None:
        return ""
    return molar(design.concentration_nM * 1e-9, None if design.kd_M is not None else design.qualifier)


_COLUMNS: Final[tuple[tuple[str, Callable[[DesignSummary], str]], ...]] = (
    ("K_D", lambda design: "" if design.kd_M is None else molar(design.kd_M, design.qualifier)),
    ("95 % interval", lambda design: words.interval(design.kd_low_M, design.kd_high_M)),
    ("k_on", lambda design: _rate(design.kon_per_M_s, "/M/s")),
    ("k_off", lambda design: _rate(design.koff_per_s, "/s")),
    ("T_m", lambda design: "" if design.tm_C is None else f"{design.tm_C:.1f} °C"),
    ("Concentration", _concentration),
    ("Strength", lambda design: design.binding_strength or ""),
    ("Expression", lambda design: design.expression or ""),
    ("n", lambda design: str(design.replicates) if design.replicates else ""),
)
