"""Enzyme activity, in a shape of the lab's own: no other is published."""

from collections.abc import Iterator
from typing import Final

from assay_lab.measure.assays.assay_type import AssayType
from assay_lab.measure.assays.replicates import Row, list_entries, make_table
from assay_lab.measure.files import File, format_table
from assay_lab.measure.model import compute_mean, compute_spread, draw_expression, michaelis_menten
from assay_lab.measure.request import AssayRequest, Design, make_random
from assay_lab.vocabulary import ExperimentType

SUBSTRATE_UM: Final = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
_INACTIVE_SHARE = 0.35


def activity_entries(request: AssayRequest) -> list[Row]:
    """Michaelis-Menten constants: k_cat in 1/s, K_M in M."""
    return list_entries(request, "enzyme_activity", _make_activity, _activity_summary)


def activity_files(request: AssayRequest) -> Iterator[File]:
    """The table of replicates, and initial rates (1/s per enzyme) over substrate (uM)."""
    yield make_table(request, ("expression", "active", "kcat", "km"), _make_activity)
    for design in request.measured_designs:
        for number in range(1, request.n_replicates + 1):
            row = _make_activity(design, number)
            if row["kcat"] is None:
                continue
            rates = [
                (s, round(michaelis_menten(s * 1e-6, vmax=row["kcat"], km=row["km"]), 6))
                for s in SUBSTRATE_UM
            ]
            yield f"raw_data/{design.stem}_{number}.csv", format_table(("substrate_um", "rate"), rates)


def _make_activity(design: Design, number: int) -> Row:
    expression = draw_expression(design.residues)
    if expression == "none":
        return {"expression": expression, "active": "unknown", "kcat": None, "km": None}
    nature = make_random("activity", design.residues)
    if nature.random() < _INACTIVE_SHARE:
        return {"expression": expression, "active": "false", "kcat": None, "km": None}
    kcat, km = 10 ** nature.gauss(0.5, 0.8), 10 ** nature.gauss(-4.2, 0.5)
    chance = make_random("activity replicate", design.residues, number)
    return {
        "expression": expression,
        "active": "true",
        "kcat": kcat * 10 ** chance.gauss(0, 0.04),
        "km": km * 10 ** chance.gauss(0, 0.06),
    }


def _activity_summary(design: Design, rows: list[Row]) -> Row:
    kcat = [row["kcat"] for row in rows if row["kcat"] is not None]
    km = [row["km"] for row in rows if row["km"] is not None]
    return {
        "active": rows[0]["active"],
        "kcat_mean": compute_mean(kcat),
        "kcat_std": compute_spread(kcat),
        "kcat_units": "1/s",
        "km_mean": compute_mean(km),
        "km_std": compute_spread(km),
        "km_units": "M",
        "expression": draw_expression(design.residues),
    }


ENZYME_ACTIVITY: Final = AssayType(
    experiment_type=ExperimentType.ENZYME_ACTIVITY,
    title="Enzyme activity",
    unit_cents=8_900,
    replicate_cents=2_500,
    list_entries=activity_entries,
    make_files=activity_files,
    columns=(("k_cat, 1/s", "kcat_mean", "{:.3g}"), ("Active", "active", "{}")),
)
