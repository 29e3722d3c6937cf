"""Expression: the yield of constructs. No shape of its result is published; these fields are the local lab's."""

from typing import Final

from prefect_assay.service.assays.assay_type import AssayType, ObjectiveValue, QuantityKind
from prefect_assay.service.assays.objective import Objective
from prefect_assay.service.models.vocabulary import ExperimentType

CONCENTRATION: Final = QuantityKind(
    "the concentration",
    "concentration_nM",
    ("concentration_value", "concentration"),
    {"M": 1e-9, "mM": 1e-6, "uM": 1e-3, "µM": 1e-3, "μM": 1e-3, "nM": 1.0, "pM": 1e3},
    ("nM", "M", "mM", "uM", "pM"),
    0.0,
    1e9,
    description="concentration",
    unit_text="nM",
    unit_term="http://purl.obolibrary.org/obo/UO_0000065",
)

EXPRESSION: Final = AssayType(
    experiment_type=ExperimentType.EXPRESSION,
    title="Expression",
    measures="concentration",
    value_title="Concentration",
    columns=(CONCENTRATION,),
    measured=(CONCENTRATION,),
    main=CONCENTRATION,
    other_fields=("yield_mean", "yield_mg_per_l"),
    measured_by_call="expression",
    improves=ObjectiveValue(Objective.EXPRESSION, CONCENTRATION, "concentration", "nM", by_factors=True),
    hits_by=Objective.EXPRESSION,
)
