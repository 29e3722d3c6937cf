"""Fluorescence: the intensity of variants. No shape of its result is published; these fields are the local lab's."""

from typing import Final

from prefect_assay.service.assays.assay_type import AssayType
from prefect_assay.service.models.vocabulary import ExperimentType

FLUORESCENCE: Final = AssayType(
    experiment_type=ExperimentType.FLUORESCENCE,
    title="Fluorescence",
    other_fields=("intensity_mean", "intensity"),
)
