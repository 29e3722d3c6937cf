"""Epitope binning: who competes with whom for the antigen. No shape is published: this is a plausible one.

Every binder has one of `BINS` epitopes. The second of a pair binds fully when its epitope differs from the
first's, and hardly when it is the same. Each pair is measured once: the contract allows no replicates.
"""

from collections.abc import Iterator
from typing import Any, Final

from prefect_assay.lab.measure.draws import draw_nature, measured_of
from prefect_assay.lab.measure.request import Design, Request, seeded
from prefect_assay.lab.measure.tables import File, summary_file, table

BINS: Final = ("A", "B", "C", "D")
BLOCKED_BELOW: Final = 0.5


def epitope(request: Request, design: Design) -> str | None:
    """The design's bin, or None when it does not bind and so cannot be binned."""
    rows = measured_of(request, design.residues)
    binds = (
        any(row.binding == "true" for row in rows)
        if rows
        else draw_nature(design.residues, request.target_key).binding == "true"
    )
    return seeded("epitope", design.residues, request.target_key).choice(BINS) if binds else None


def response(request: Request, first: Design, second: Design) -> float | None:
    """Normalised binding of `second` to the antigen that `first` holds: 1 unhindered, 0 blocked."""
    bins = epitope(request, first), epitope(request, second)
    if None in bins:
        return None
    level = 0.08 if bins[0] == bins[1] else 0.95
    noise = seeded("pair", first.residues, second.residues, request.target_key).gauss(0, 0.04)
    return round(min(1.1, max(0.0, level + noise)), 3)


def binning_entries(request: Request) -> list[dict[str, Any]]:
    """One entry per design: its bin and the designs that it blocks."""
    measured = request.designs[: request.measured]
    entries: list[dict[str, Any]] = []
    for index, design in enumerate(request.designs):
        head: dict[str, Any] = {
            "result_type": "epitope_binning",
            "sequence": design.as_sequence(),
            "target": request.target,
        }
        if index >= request.measured:
            entries.append({**head, "state": "in_progress", "bin": None, "responses": {}})
            continue
        responses = {other.name: response(request, design, other) for other in measured}
        entries.append(
            {
                **head,
                "bin": epitope(request, design),
                "binding": "true" if epitope(request, design) else "false",
                "blocks": [
                    name
                    for name, value in responses.items()
                    if value is not None and value < BLOCKED_BELOW and name != design.name
                ],
                "responses": responses,
                "data_source": "model",
            }
        )
    return entries


def binning_files(request: Request) -> Iterator[File]:
    """The bins, and the matrix of normalised responses (rows first, columns second)."""
    measured = request.designs[: request.measured]
    yield summary_file(
        request,
        ("name", "bin", "sequence"),
        ((design.name, epitope(request, design), design.residues) for design in measured),
    )
    yield (
        "raw_data/competition_matrix.csv",
        table(
            ("name", *(design.name for design in measured)),
            ((first.name, *(response(request, first, second) for second in measured)) for first in measured),
        ),
    )
