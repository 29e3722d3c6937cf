"""Affinity, in the published shape, each summary derived from its replicates alone."""

import math
from typing import Any, Final

from assay_lab.measure.assays.assay_type import AssayType
from assay_lab.measure.assays.binding import (
    BINDING_FACTS_IF_MISSING,
    list_binding_entries,
    make_call,
    weighed,
)
from assay_lab.measure.bundled import Replicate
from assay_lab.measure.model import compute_interval, compute_mean, log_spread, make_replicates
from assay_lab.measure.request import AssayRequest, Design
from assay_lab.measure.sensorgrams import binding_files
from assay_lab.vocabulary import ANTIGEN_CONCENTRATIONS_NM, REPLICATES_DEFAULT, ExperimentType

_NOISE_PCT = 1.2
_MISFIT_PCT_PER_DECADE = 12.0


def affinity_entries(request: AssayRequest) -> list[dict[str, Any]]:
    """One entry per design, with kinetics, rank and comparison with the controls."""
    return _ranked(list_binding_entries(request, "affinity", _affinity))


def counted(rows: tuple[Replicate, ...]) -> tuple[Replicate, ...]:
    """The replicates that `kd_mean` averages: the strong ones, else the medium ones, else none."""
    for strength in ("strong", "medium"):
        if chosen := tuple(row for row in weighed(rows) if row.binds and row.binding_strength == strength):
            return chosen
    return ()


def _affinity(request: AssayRequest, design: Design) -> dict[str, Any]:
    rows = make_replicates(request, design.residues)
    chosen = counted(rows)
    fitted = tuple(row for row in rows if row.binds)
    kd, kon, koff = ([getattr(row, name) for row in chosen] for name in ("kd", "kon", "koff"))
    modelled = not any(row.source == "measured" for row in rows)
    return {
        **make_call(request, design, rows, "affinity"),
        "kd_units": "M",
        "kd_mean": compute_mean(kd),
        "kd_log_std": log_spread(kd),
        "kon_mean": compute_mean(kon),
        "kon_log_std": log_spread(kon),
        "koff_mean": compute_mean(koff),
        "koff_log_std": log_spread(koff),
        # The bundled table has no such fits, and none is made up for it.
        "kd_app": compute_interval([row.kd for row in fitted if row.kd]) if modelled else None,
        "kon_1to1": compute_interval([row.kon for row in fitted if row.kon]) if modelled else None,
        "koff_1to1": compute_interval([row.koff for row in fitted if row.koff]) if modelled else None,
        "binding_model": ["1:1"] if fitted else [],
        "fit_quality": _quality(kd) if modelled else None,
        "rmse_max_signal_pct": _misfit(kd) if modelled else None,
        "performance": {},
        "place": None,
        "replicates": [_affinity_replicate(request, row, compute_mean(kd)) for row in rows],
    }


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


AFFINITY: Final = AssayType(
    experiment_type=ExperimentType.AFFINITY,
    title="Binding affinity",
    unit_cents=11_900,
    replicate_cents=3_000,
    takes_target=True,
    takes_method=True,
    takes={"n_replicates": REPLICATES_DEFAULT, "antigen_concentrations": ANTIGEN_CONCENTRATIONS_NM},
    concentrations_nm=ANTIGEN_CONCENTRATIONS_NM,
    list_entries=affinity_entries,
    make_files=binding_files,
    columns=(
        ("K_D, M", "kd_mean", "{:.3g}"),
        ("k_on, 1/(M s)", "kon_mean", "{:.3g}"),
        ("k_off, 1/s", "koff_mean", "{:.3g}"),
    ),
    facts_if_missing=BINDING_FACTS_IF_MISSING,
)
