"""The parts of a report below its ranked table: all values of each design, conditions, a table to download. Pure."""

import base64
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from prefect_assay.analysis.kinetics.analysis import ReplicateKinetics
from prefect_assay.analysis.report.answers import ReportedExperiment
from prefect_assay.analysis.report.figures import CurveFigure
from prefect_assay.analysis.results.design import DesignSummary, find_main_quantity
from prefect_assay.analysis.results.formats import EMPTY, format_molar, format_rate
from prefect_assay.analysis.results.summary import list_counted_replicates
from prefect_assay.analysis.results.tables import write_summary_csv
from prefect_assay.service.assays import ASSAY_TYPES, CONCENTRATION
from prefect_assay.service.models.base import Model

ATTRIBUTES_MAX: Final = 4
_ATTRIBUTE_LENGTH: Final = 24
_DIGITS: Final = 4
# What is rounded; all else may be a name, such as `1_2`, `007` or `1.10`.
_LONG_DECIMAL: Final = re.compile(r"-?(?:0|[1-9][0-9]*)\.[0-9]{3,}(?:[eE][+-]?[0-9]{1,2})?")
_REPLICATES: Final = 3  # the service's default


class Details(Model):
    """Names and cells of all designs; columns without any value are left out."""

    titles: tuple[str, ...]
    lines: tuple[tuple[str, tuple[str, ...]], ...]
    attributes_left_out: int


def details_table(ranked: Sequence[DesignSummary], scores: Sequence[str]) -> Details:
    """All values that do not fit into the ranked table; of the designer's columns first `scores`, then those that differ."""
    attribute_titles = _list_shown_columns(ranked, scores)
    columns = [(title, cell) for title, cell in _COLUMNS if any(cell(design) for design in ranked)]
    columns += [(title, _make_getter(title)) for title in attribute_titles[:ATTRIBUTES_MAX]]
    return Details(
        titles=tuple(title for title, _ in columns),
        lines=tuple(
            (summary.name, tuple(cell(summary) or EMPTY for _, cell in columns)) for summary in ranked
        ),
        attributes_left_out=max(0, len(attribute_titles) - ATTRIBUTES_MAX),
    )


def list_conditions(
    experiment: ReportedExperiment, curves: Iterable[CurveFigure]
) -> tuple[tuple[str, str], ...]:
    """How an experiment was measured, as its results and raw curves show it; what was ordered, while they do not."""
    counts = Counter((row.name, row.result_id) for row in list_counted_replicates(experiment.rows)).values()
    ordered = experiment.spec.n_replicates if experiment.spec else None
    if counts:
        few, many = min(counts), max(counts)
        replicates = f"{few} per design" if few == many else f"{few} to {many} per design"
    else:
        replicates = f"{ordered or _REPLICATES} per design, as ordered"
    conditions = [("Replicates", replicates)]
    doses = Counter(
        curve.fit.concentrations_nM
        for curve in curves
        if curve.experiment_code == experiment.code and isinstance(curve.fit, ReplicateKinetics)
    )
    if doses:
        most, count = doses.most_common(1)[0]
        others = f"; {doses.total() - count} of {doses.total()} replicates differ" if len(doses) > 1 else ""
        conditions.append(("Concentrations", f"{', '.join(f'{dose:g}' for dose in most)} nM{others}"))
    elif experiment.spec and experiment.spec.antigen_concentrations:
        concentrations = ", ".join(f"{dose:g}" for dose in experiment.spec.antigen_concentrations)
        conditions.append(("Concentrations", f"{concentrations} nM, as ordered"))
    elif experiment.spec and ASSAY_TYPES[experiment.spec.experiment_type].concentrations_nM:
        conditions.append(("Concentrations", "the laboratory's default; no raw curves say which"))
    return tuple(conditions)


def encode_table(designs: Sequence[DesignSummary]) -> str:
    """The table of designs as CSV, in an address that holds it."""
    return f"data:text/csv;base64,{base64.b64encode(write_summary_csv(designs)).decode()}"


def _list_shown_columns(designs: Sequence[DesignSummary], scores: Sequence[str]) -> list[str]:
    """Titles of the designer's columns to show: scores first, then those with more than one value."""
    values: dict[str, set[str]] = {title: set() for title in scores}
    for design in designs:
        for title, value in design.attributes.items():
            values.setdefault(title, set()).add(value)
    first = [title for title in scores if values[title]]
    return first + [title for title, cells in values.items() if len(cells) > 1 and title not in first]


def _make_getter(title: str) -> Callable[[DesignSummary], str]:
    def cell(design: DesignSummary) -> str:
        value = design.attributes.get(title, "")
        if _LONG_DECIMAL.fullmatch(value):
            value = min(value, f"{float(value):.{_DIGITS}g}", key=len)
        return value if len(value) <= _ATTRIBUTE_LENGTH else f"{value[: _ATTRIBUTE_LENGTH - 1]}\u2026"

    return cell


def _format_rate(value: float | None, unit: str) -> str:
    return "" if value is None else format_rate(value, unit)


def _format_concentration(design: DesignSummary) -> str:
    if design.concentration_nM is None:
        return ""
    is_main = find_main_quantity(design) is CONCENTRATION
    return format_molar(design.concentration_nM * 1e-9, design.qualifier if is_main else None)


def _format_replicates(design: DesignSummary) -> str:
    if not design.replicates:
        return ""
    averaged = design.replicates_averaged
    return (
        str(design.replicates)
        if averaged in {None, design.replicates}
        else f"{averaged} of {design.replicates}"
    )


_COLUMNS: Final[tuple[tuple[str, Callable[[DesignSummary], str]], ...]] = (
    ("k_on", lambda design: _format_rate(design.kon_per_M_s, "/M/s")),
    ("k_off", lambda design: _format_rate(design.koff_per_s, "/s")),
    ("T_m", lambda design: f"{design.tm_C:.1f} °C" if design.tm_C is not None and design.kd_M else ""),
    ("Concentration", _format_concentration),
    ("Strength", lambda design: design.binding_strength or ""),
    ("Expression", lambda design: design.expression or ""),
    ("Replicates", _format_replicates),
)
