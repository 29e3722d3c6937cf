"""Enzyme activity: k_cat and K_M. No shape of its result is published; these fields are the local lab's."""

from typing import Final

from prefect_assay.service.assays.assay_type import AssayType
from prefect_assay.service.models.vocabulary import ExperimentType

ENZYME_ACTIVITY: Final = AssayType(
    experiment_type=ExperimentType.ENZYME_ACTIVITY,
    title="Enzyme activity",
    other_fields=("kcat_mean", "kcat", "km_mean", "km"),
)
