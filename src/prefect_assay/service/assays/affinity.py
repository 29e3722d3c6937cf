"""Affinity: K_D, k_on and k_off of a binder and its target. Its result has a published shape."""

from typing import Final

from prefect_assay.service.assays.assay_type import AssayType, ObjectiveValue, QuantityKind
from prefect_assay.service.assays.expression import CONCENTRATION
from prefect_assay.service.assays.objective import Objective
from prefect_assay.service.models.vocabulary import (
    ANTIGEN_CONCENTRATIONS_NM,
    REPLICATES_DEFAULT,
    ExperimentType,
    Method,
)

KD: Final = QuantityKind(
    "K_D",
    "kd_M",
    ("kd_mean", "kd"),
    {"M": 1.0, "mM": 1e3, "uM": 1e6, "µM": 1e6, "μM": 1e6, "nM": 1e9, "pM": 1e12},
    ("M", "mM", "uM", "nM", "pM"),
    1e-15,
    0.1,
    is_positive=True,
    most_without_unit=1e-4,
    lower_is_better=True,
    has_log_mean=True,
    title="K_D",
    description="dissociation constant K_D",
    unit_text="M",
    unit_term="http://purl.obolibrary.org/obo/UO_0000062",
)
KON: Final = QuantityKind(
    "k_on",
    "kon_per_M_s",
    ("kon_mean", "kon"),
    dict.fromkeys(("1/Ms", "1/M/s", "/M/s", "M-1s-1", "M⁻¹s⁻¹", "1/M.s", "M-1.s-1"), 1.0),
    ("1/(M s)",),
    1.0,
    1e10,
    is_positive=True,
    has_log_mean=True,
    description="association rate constant k_on",
    unit_text="1/(M s)",
)
KOFF: Final = QuantityKind(
    "k_off",
    "koff_per_s",
    ("koff_mean", "koff"),
    dict.fromkeys(("1/s", "/s", "s-1", "s⁻¹"), 1.0),
    ("1/s",),
    0.0,
    1e4,
    is_positive=True,
    has_log_mean=True,
    description="dissociation rate constant k_off",
    unit_text="1/s",
    unit_term="http://qudt.org/vocab/unit/PER-SEC",
)

AFFINITY: Final = AssayType(
    experiment_type=ExperimentType.AFFINITY,
    title="Binding affinity",
    measures="K_D, k_on, k_off",
    takes_target=True,
    methods=tuple(Method),
    takes={"n_replicates": REPLICATES_DEFAULT, "antigen_concentrations": ANTIGEN_CONCENTRATIONS_NM},
    columns=(KD, KON, KOFF, CONCENTRATION),
    measured=(KD, KON, KOFF),
    main=KD,
    is_published=True,
    improves=ObjectiveValue(Objective.AFFINITY, KD, "K_D", "nM", by_factors=True),
    hits_by=Objective.AFFINITY,
)
