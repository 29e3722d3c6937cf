"""Thermostability: the melting temperature. Its result has a published shape."""

from typing import Final

from prefect_assay.service.assays.assay_type import AssayType, ObjectiveValue, QuantityKind
from prefect_assay.service.assays.objective import Objective
from prefect_assay.service.models.vocabulary import ExperimentType

TM: Final = QuantityKind(
    "T_m",
    "tm_C",
    ("tm",),
    dict.fromkeys(("C", "°C", "℃", "degC", "celsius", "Celsius"), 1.0),
    ("°C",),
    -50.0,
    150.0,
    title="T_m",
    number_format=".1f",
    description="melting temperature",
    unit_text="degree Celsius",
    unit_term="http://purl.obolibrary.org/obo/UO_0000027",
)

THERMOSTABILITY: Final = AssayType(
    experiment_type=ExperimentType.THERMOSTABILITY,
    title="Thermostability",
    measures="melting temperature",
    columns=(TM,),
    measured=(TM,),
    main=TM,
    is_published=True,
    improves=ObjectiveValue(Objective.MELTING, TM, "melting temperature", "degrees C", by_factors=False),
    hits_by=Objective.MELTING,
)
