"""Epitope binning, in a shape of the lab's own: no other is published.

Every binder has one of `BINS` epitopes; two of one epitope block each other. Each pair is measured once.
"""

from collections.abc import Iterator
from typing import Any, Final

from assay_lab.measure.assays.assay_type import AssayType
from assay_lab.measure.assays.binding import BINDING_FACTS_IF_MISSING, find_majority_call
from assay_lab.measure.files import File, format_table, summary_file
from assay_lab.measure.model import Nature, measured_of, nature_of, typical_expression
from assay_lab.measure.request import AssayRequest, Design, make_random
from assay_lab.vocabulary import (
    BINNING_SEQUENCES_MAX,
    BINNING_SEQUENCES_MIN,
    BINNING_SEQUENCES_STEP,
    ExperimentType,
)

BINS: Final = ("A", "B", "C", "D")
BLOCKED_BELOW: Final = 0.5


def find_nature(request: AssayRequest, design: Design) -> Nature:
    """Expression and call of a design: of its published replicates, else of the landscape or the model."""
    rows = measured_of(request, design.residues)
    if not rows:
        return nature_of(request, design.residues)
    return Nature(typical_expression([row.expression for row in rows]), find_majority_call(rows))


def find_epitope(request: AssayRequest, design: Design) -> str | None:
    """The design's bin, or None when it is not known to bind and so cannot be binned."""
    if find_nature(request, design).binding != "true":
        return None
    return make_random("epitope", design.residues, request.target_key).choice(BINS)


def compute_response(request: AssayRequest, first: Design, second: Design) -> float | None:
    """Normalised binding of `second` to the antigen that `first` holds: 1 unhindered, 0 blocked."""
    bins = find_epitope(request, first), find_epitope(request, second)
    if None in bins:
        return None
    level = 0.08 if bins[0] == bins[1] else 0.95
    noise = make_random("pair", first.residues, second.residues, request.target_key).gauss(0, 0.04)
    return round(min(1.1, max(0.0, level + noise)), 3)


def binning_entries(request: AssayRequest) -> list[dict[str, Any]]:
    """One entry per design: its bin and the designs that it blocks."""
    entries: list[dict[str, Any]] = []
    for design in request.designs:
        head: dict[str, Any] = {
            "result_type": "epitope_binning",
            "sequence": design.as_sequence(),
            "target": request.target_summary,
        }
        if not design.measured:
            entries.append({**head, "state": "in_progress", "bin": None, "responses": {}})
            continue
        nature = find_nature(request, design)
        responses = {
            other.name: compute_response(request, design, other) for other in request.measured_designs
        }
        entries.append(
            {
                **head,
                "bin": find_epitope(request, design),
                "binding": nature.binding,
                "expression": nature.expression,
                "blocks": [
                    name
                    for name, value in responses.items()
                    if value is not None and value < BLOCKED_BELOW and name != design.name
                ],
                "responses": responses,
                "data_source": request.source(design.residues),
            }
        )
    return entries


def binning_files(request: AssayRequest) -> Iterator[File]:
    """The bins, and the matrix of normalised responses (rows first, columns second)."""
    measured = request.measured_designs
    yield summary_file(
        request.experiment_id,
        ("name", "bin", "sequence"),
        ((design.name, find_epitope(request, design), design.residues) for design in measured),
    )
    yield (
        "raw_data/competition_matrix.csv",
        format_table(
            ("name", *(design.name for design in measured)),
            (
                (first.name, *(compute_response(request, first, second) for second in measured))
                for first in measured
            ),
        ),
    )


EPITOPE_BINNING: Final = AssayType(
    experiment_type=ExperimentType.EPITOPE_BINNING,
    title="Epitope binning",
    unit_cents=14_900,
    takes_target=True,
    takes={},
    sequence_counts=(BINNING_SEQUENCES_MIN, BINNING_SEQUENCES_MAX, BINNING_SEQUENCES_STEP),
    list_entries=binning_entries,
    make_files=binning_files,
    columns=(("Bin", "bin", "{}"),),
    facts_if_missing=BINDING_FACTS_IF_MISSING,
)
