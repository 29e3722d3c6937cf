"""Sequences as the list forms of requests take them (contract 2.4)."""

from prefect_assay.models.sequences import Sequence


def entry(design: Sequence) -> dict[str, object]:
    """A sequence as the list forms take it (contract 2.4)."""
    fields: dict[str, object] = {
        "name": design.name,
        "aa_string": design.aa_string,
        "control": design.control,
    }
    return fields | ({"metadata": design.metadata} if design.metadata else {})
