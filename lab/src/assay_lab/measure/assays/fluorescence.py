"""Fluorescence, in a shape of the lab's own: no other is published."""

from collections.abc import Iterator
from typing import Final

from assay_lab.measure.assays.assay_type import AssayType
from assay_lab.measure.assays.replicates import Row, list_entries, make_table
from assay_lab.measure.files import File
from assay_lab.measure.model import compute_mean, compute_spread, draw_expression
from assay_lab.measure.request import AssayRequest, Design, make_random
from assay_lab.vocabulary import ExperimentType

BACKGROUND_RFU: Final = 150.0
_DARK_SHARE = 0.25


def fluorescence_entries(request: AssayRequest) -> list[Row]:
    """Intensity over background in relative units, at 488 nm excitation and 512 nm emission."""
    return list_entries(request, "fluorescence", _make_fluorescence, _fluorescence_summary)


def fluorescence_files(request: AssayRequest) -> Iterator[File]:
    """The table of replicates."""
    yield make_table(request, ("expression", "intensity"), _make_fluorescence)


def _make_fluorescence(design: Design, number: int) -> Row:
    expression = draw_expression(design.residues)
    nature = make_random("fluorescence", design.residues)
    dark = expression == "none" or nature.random() < _DARK_SHARE
    brightness = 0.0 if dark else 10 ** nature.gauss(3.6, 0.6)
    scatter = make_random("fluorescence replicate", design.residues, number).gauss(0, 0.04)
    return {"intensity": round((BACKGROUND_RFU + brightness) * 10**scatter, 1), "expression": expression}


def _fluorescence_summary(design: Design, rows: list[Row]) -> Row:
    values = [row["intensity"] for row in rows]
    return {
        "intensity_mean": compute_mean(values),
        "intensity_std": compute_spread(values),
        "intensity_units": "RFU",
        "background": BACKGROUND_RFU,
        "excitation_nm": 488,
        "emission_nm": 512,
        "expression": draw_expression(design.residues),
    }


FLUORESCENCE: Final = AssayType(
    experiment_type=ExperimentType.FLUORESCENCE,
    title="Fluorescence",
    unit_cents=4_500,
    replicate_cents=1_000,
    list_entries=fluorescence_entries,
    make_files=fluorescence_files,
    columns=(("Intensity, RFU", "intensity_mean", "{:.0f}"),),
)
