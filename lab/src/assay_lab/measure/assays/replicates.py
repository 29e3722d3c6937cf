"""Entries and the table of assays that measure each design several times, in shapes of the lab's own."""

from collections.abc import Callable
from typing import Any

from assay_lab.measure.files import File, summary_file
from assay_lab.measure.request import AssayRequest, Design

Row = dict[str, Any]
_RowOf = Callable[[Design, int], Row]
_SummaryOf = Callable[[Design, list[Row]], Row]


def list_entries(
    request: AssayRequest, result_type: str, rows_of: _RowOf, summary_of: _SummaryOf
) -> list[Row]:
    """An entry per design, each with its replicates; `rows_of` measures one of them, `summary_of` joins them."""
    entries: list[Row] = []
    for design in request.designs:
        head: Row = {"result_type": result_type, "sequence": design.as_sequence()}
        if not design.measured:
            entries.append({**head, "state": "in_progress", "replicates": []})
            continue
        source = request.source(design.residues)
        rows = [
            {"replicate": number, **rows_of(design, number), "data_source": source}
            for number in _number_replicates(request, design)
        ]
        summary = summary_of(design, rows) if rows else {}
        entries.append({**head, **summary, "data_source": source, "replicates": rows})
    return entries


def _number_replicates(request: AssayRequest, design: Design) -> range:
    """The numbers of a design's replicates; none where a landscape leaves the outcome open."""
    return range(1, 1 if request.facts(design.residues) == {} else request.n_replicates + 1)


def make_table(request: AssayRequest, columns: tuple[str, ...], rows_of: _RowOf) -> File:
    """The table of replicates."""
    return summary_file(
        request.experiment_id,
        ("name", "replicate", *columns, "sequence"),
        (
            (design.name, number, *(row[column] for column in columns), design.residues)
            for design in request.measured_designs
            for number in _number_replicates(request, design)
            for row in (rows_of(design, number),)
        ),
    )
