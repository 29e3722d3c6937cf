"""Screening: whether a design binds its target. Its result is a call, and not an affinity."""

from typing import Final

from prefect_assay.service.assays.assay_type import AssayType
from prefect_assay.service.assays.expression import CONCENTRATION
from prefect_assay.service.assays.objective import Objective
from prefect_assay.service.models.vocabulary import ExperimentType, Method

SCREENING: Final = AssayType(
    experiment_type=ExperimentType.SCREENING,
    title="Binding screen",
    measures="binding yes or no",
    value_title="Call",
    takes_target=True,
    methods=tuple(Method),
    columns=(CONCENTRATION,),
    is_call=True,
    hits_by=Objective.AFFINITY,
)
