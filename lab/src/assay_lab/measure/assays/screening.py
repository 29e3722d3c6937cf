"""Screening, in a shape of the lab's own: a call, and no constants."""

from typing import Any, Final

from assay_lab.measure.assays.assay_type import AssayType
from assay_lab.measure.assays.binding import BINDING_FACTS_IF_MISSING, list_binding_entries, make_call
from assay_lab.measure.model import make_replicates
from assay_lab.measure.request import AssayRequest, Design
from assay_lab.measure.sensorgrams import binding_files
from assay_lab.vocabulary import ExperimentType

SCREENING_CONCENTRATIONS_NM: Final = (1000.0, 0.0)
"""A screening call needs the highest concentration and the blank."""


def screening_entries(request: AssayRequest) -> list[dict[str, Any]]:
    """One entry per design: a call, no constants (a screening call is not an affinity)."""
    return list_binding_entries(request, "screening", _make_entry)


def _make_entry(request: AssayRequest, design: Design) -> dict[str, Any]:
    rows = make_replicates(request, design.residues)
    return {
        **make_call(request, design, rows, "screening"),
        "replicates": [
            {
                "replicate": row.number,
                "binding": row.binding,
                "binding_strength": row.binding_strength,
                "expression": row.expression,
                "data_source": row.source,
            }
            for row in rows
        ],
    }


SCREENING: Final = AssayType(
    experiment_type=ExperimentType.SCREENING,
    title="Binding screen",
    unit_cents=6_900,
    replicate_cents=2_000,
    takes_target=True,
    takes_method=True,
    concentrations_nm=SCREENING_CONCENTRATIONS_NM,
    list_entries=screening_entries,
    make_files=binding_files,
    facts_if_missing=BINDING_FACTS_IF_MISSING,
)
