"""Epitope binning: which designs compete for a site. No shape of its result is published; these fields are the local lab's."""

from typing import Final

from prefect_assay.service.assays.assay_type import AssayType, SequenceCounts
from prefect_assay.service.models.vocabulary import (
    BINNING_SEQUENCES_MAX,
    BINNING_SEQUENCES_MIN,
    BINNING_SEQUENCES_STEP,
    ExperimentType,
)

EPITOPE_BINNING: Final = AssayType(
    experiment_type=ExperimentType.EPITOPE_BINNING,
    title="Epitope binning",
    measures="which designs compete for a site",
    takes_target=True,
    takes={},
    sequence_counts=SequenceCounts(BINNING_SEQUENCES_MIN, BINNING_SEQUENCES_MAX, BINNING_SEQUENCES_STEP),
    other_fields=("bin", "responses"),
)
