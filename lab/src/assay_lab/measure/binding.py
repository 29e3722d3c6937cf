"""Summary entries of affinity and screening, each derived from its replicates alone."""

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

from assay_lab.measure.bundled import Replicate
from assay_lab.measure.model import (
    interval,
    log_spread,
    mean,
    measured_of,
    replicates,
    typical_expression,
)
from assay_lab.measure.request import AssayRequest, Design, seeded

_STRENGTHS = ("unknown", "none", "weak", "medium", "strong")
_YIELD_NM = {"high": 800.0, "medium": 200.0, "low": 40.0}
_DETECTION_NM = 5.0
_NOISE_PCT = 1.2
_MISFIT_PCT_PER_DECADE = 12.0


def affinity_entries(request: AssayRequest) -> list[dict[str, Any]]:
    """One entry per design, with kinetics, rank and comparison with the controls."""
    return _ranked(_entries(request, "affinity", _affinity))


def screening_entries(request: AssayRequest) -> list[dict[str, Any]]:
    """One entry per design: a call, no constants (a screening call is not an affinity)."""
    return _entries(request, "screening", _screening)


def _entries(
    request: AssayRequest, result_type: str, measured: Callable[[AssayRequest, Design], dict[str, Any]]
) -> list[dict[str, Any]]:
    return [
        measured(request, design) if index < request.measured else _in_progress(request, design, result_type)
        for index, design in enumerate(request.designs)
    ]


def weighed(rows: tuple[Replicate, ...]) -> tuple[Replicate, ...]:
    """The replicates that a summary rests on: modelled ones never dilute measured ones."""
    return tuple(row for row in rows if row.source == "measured") or rows


def counted(rows: tuple[Replicate, ...]) -> tuple[Replicate, ...]:
    """The replicates that `kd_mean` averages: the strong ones, else the medium ones, else none."""
    for wanted in ("strong", "medium"):
        if chosen := tuple(row for row in weighed(rows) if row.binds and row.binding_strength == wanted):
            return chosen
    return ()


def _affinity(request: AssayRequest, design: Design) -> dict[str, Any]:
    rows = replicates(request, design.residues)
    chosen = counted(rows)
    fitted = tuple(row for row in rows if row.binds)
    kd, kon, koff = ([getattr(row, name) for row in chosen] for name in ("kd", "kon", "koff"))
    modelled = not any(row.source == "measured" for row in rows)
    return {
        **_call(request, design, rows, "affinity"),
        "kd_units": "M",
        "kd_mean": mean(kd),
        "kd_log_std": log_spread(kd),
        "kon_mean": mean(kon),
        "kon_log_std": log_spread(kon),
        "koff_mean": mean(koff),
        "koff_log_std": log_spread(koff),
        # The bundled table has no such fits, and none is made up for it.
        "kd_app": interval([row.kd for row in fitted if row.kd]) if modelled else None,
        "kon_1to1": interval([row.kon for row in fitted if row.kon]) if modelled else None,
        "koff_1to1": interval([row.koff for row in fitted if row.koff]) if modelled else None,
        "binding_model": ["1:1"] if fitted else [],
        "fit_quality": _quality(kd) if modelled else None,
        "rmse_max_signal_pct": _misfit(kd) if modelled else None,
        "performance": {},
        "place": None,
        "replicates": [_affinity_replicate(request, row, mean(kd)) for row in rows],
    }


def _screening(request: AssayRequest, design: Design) -> dict[str, Any]:
    rows = replicates(request, design.residues)
    return {
        **_call(request, design, rows, "screening"),
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


def _call(
    request: AssayRequest, design: Design, rows: tuple[Replicate, ...], result_type: str
) -> dict[str, Any]:
    basis = weighed(rows)
    expression = typical_expression([row.expression for row in basis])
    return {
        "result_type": result_type,
        "sequence": design.as_sequence(),
        "target": request.target_summary,
        "binding": _majority_call(basis),
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


def _majority_call(rows: tuple[Replicate, ...]) -> str:
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
    value = round(_YIELD_NM[expression] * 10 ** seeded("yield", design.residues).gauss(0, 0.1), 1)
    return {"concentration_value": value, "concentration_display": f"{value:.1f}"}


def _quality(kd: list[float]) -> str | None:
    decades = log_spread(kd)
    if decades is None:
        return "medium" if kd else None
    return _graded(decades)


def _graded(decades: float) -> str:
    if decades < 0.1:  # noqa: PLR2004 - a quarter of a factor of two
        return "good"
    return "medium" if decades < 0.25 else "poor"  # noqa: PLR2004 - a factor of 1.8


def _misfit(kd: list[float]) -> float | None:
    """Residual of the fits in percent of the largest signal: the instrument's noise, and more where replicates scatter."""
    return round(_NOISE_PCT + _MISFIT_PCT_PER_DECADE * (log_spread(kd) or 0.0), 2) if kd else None


def _affinity_replicate(request: AssayRequest, row: Replicate, kd_mean: float | None) -> dict[str, Any]:
    return {
        "replicate": row.number,
        "kd": row.kd,
        "kon": row.kon,
        "koff": row.koff,
        "kon_method": request.method if row.binds else None,
        "koff_method": request.method if row.binds else None,
        "binding": row.binding,
        "binding_strength": row.binding_strength,
        "confidence": None,  # published without its scale
        "expression": row.expression,
        "fit_quality": _fit(row, kd_mean),
        "data_source": row.source,
    }


def _fit(row: Replicate, kd_mean: float | None) -> str | None:
    if row.source == "measured" or not row.kd or not kd_mean:
        return None
    return _graded(abs(math.log10(row.kd / kd_mean)))


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


def _ranked(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add `place` (1 binds tightest, controls unplaced) and `performance` against each control."""
    controls = {
        entry["sequence"]["name"]: entry.get("kd_mean") for entry in entries if entry["positive_control"]
    }
    placed = sorted(
        entry["kd_mean"] for entry in entries if entry.get("kd_mean") and not entry["positive_control"]
    )
    return [
        {
            **entry,
            "place": placed.index(entry["kd_mean"]) + 1
            if entry.get("kd_mean") in placed and not entry["positive_control"]
            else None,
            "performance": {}
            if entry["positive_control"]
            else {name: _compared(entry.get("kd_mean"), kd) for name, kd in controls.items()},
        }
        for entry in entries
    ]


def _compared(kd: float | None, control_kd: float | None) -> str | None:
    if kd is None or control_kd is None:
        return None
    return "better" if kd < control_kd else "worse"
