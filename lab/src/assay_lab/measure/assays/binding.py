"""What the assays of binding share: the call of a design, and an entry that is not measured yet."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

from assay_lab.measure.bundled import Replicate
from assay_lab.measure.model import measured_of, typical_expression
from assay_lab.measure.request import AssayRequest, Design, make_random

BINDING_FACTS_IF_MISSING: Final[Mapping[str, Mapping[str, Any]]] = {
    "unknown": {"binding": "unknown"},
    "none": {"binding": "false"},
}
_STRENGTHS = ("unknown", "none", "weak", "medium", "strong")
_YIELD_NM = {"high": 800.0, "medium": 200.0, "low": 40.0}
_DETECTION_NM = 5.0


def list_binding_entries(
    request: AssayRequest, result_type: str, measured: Callable[[AssayRequest, Design], dict[str, Any]]
) -> list[dict[str, Any]]:
    """An entry per design: as `measured` makes it, or in progress."""
    return [
        measured(request, design) if design.measured else _in_progress(request, design, result_type)
        for design in request.designs
    ]


def weighed(rows: tuple[Replicate, ...]) -> tuple[Replicate, ...]:
    """The replicates that a summary rests on: modelled ones never dilute measured ones."""
    return tuple(row for row in rows if row.source == "measured") or rows


def make_call(
    request: AssayRequest, design: Design, rows: tuple[Replicate, ...], result_type: str
) -> dict[str, Any]:
    """The fields of an entry that a screening and an affinity share."""
    basis = weighed(rows)
    expression = typical_expression([row.expression for row in basis])
    return {
        "result_type": result_type,
        "sequence": design.as_sequence(),
        "target": request.target_summary,
        "binding": find_majority_call(basis),
        "binding_strength": _majority_strength(basis),
        "method": [request.method] if request.method else [],
        "expression": expression,
        **_yield(request, design, expression),
        "positive_control": design.control,
        "data_source": data_source(rows),
    }


def data_source(rows: tuple[Replicate, ...]) -> str:
    """measured, landscape, model, or measured+model when replicates were added to measured ones."""
    return "+".join(sorted({row.source for row in rows}))


def find_majority_call(rows: tuple[Replicate, ...]) -> str:
    """Binds when at least half of the replicates with a call bind; unknown when none has a call."""
    calls = [row.binding for row in rows if row.binding in {"true", "false"}]
    if not calls:
        return "unknown"
    return "true" if 2 * calls.count("true") >= len(calls) else "false"


def _majority_strength(rows: tuple[Replicate, ...]) -> str:
    """The most frequent class; of equally frequent ones the weaker."""
    counts = Counter(row.binding_strength for row in rows)
    return max(counts, key=lambda name: (counts[name], -_STRENGTHS.index(name)))


def _yield(request: AssayRequest, design: Design, expression: str) -> dict[str, Any]:
    """Concentration of the expressed design in nM; the bundled table does not have it."""
    if measured_of(request, design.residues):
        return {"concentration_value": None, "concentration_display": None}
    if expression == "none":
        return {"concentration_value": None, "concentration_display": f"<{_DETECTION_NM:.1f}"}
    value = round(_YIELD_NM[expression] * 10 ** make_random("yield", design.residues).gauss(0, 0.1), 1)
    return {"concentration_value": value, "concentration_display": f"{value:.1f}"}


def _in_progress(request: AssayRequest, design: Design, result_type: str) -> dict[str, Any]:
    return {
        "result_type": result_type,
        "sequence": design.as_sequence(),
        "target": request.target_summary,
        "binding": "in_progress",
        "binding_strength": "unknown",
        "positive_control": design.control,
        "replicates": [],
    }
