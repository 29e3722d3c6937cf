"""The assay types, one module each, and their table. Every rule, unit and word that differs between types is in it.

Knows the vocabulary only: what is done with a rule or a unit is the business of the packages above. A type that the table
does not have is archived as it came, and none of its numbers is read.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from prefect_assay.service.assays.affinity import AFFINITY, KD, KOFF, KON
from prefect_assay.service.assays.assay_type import AssayType, ObjectiveValue, QuantityKind, SequenceCounts
from prefect_assay.service.assays.enzyme_activity import ENZYME_ACTIVITY
from prefect_assay.service.assays.epitope_binning import EPITOPE_BINNING
from prefect_assay.service.assays.expression import CONCENTRATION, EXPRESSION
from prefect_assay.service.assays.fluorescence import FLUORESCENCE
from prefect_assay.service.assays.objective import Objective
from prefect_assay.service.assays.screening import SCREENING
from prefect_assay.service.assays.thermostability import THERMOSTABILITY, TM
from prefect_assay.service.models.vocabulary import ExperimentType, snake_case

_TYPES: Final = (
    AFFINITY,
    SCREENING,
    THERMOSTABILITY,
    FLUORESCENCE,
    EXPRESSION,
    EPITOPE_BINNING,
    ENZYME_ACTIVITY,
)
ASSAY_TYPES: Final[Mapping[ExperimentType, AssayType]] = {one.experiment_type: one for one in _TYPES}
"""The table: each `ExperimentType` has one entry."""


def _list_quantities(kinds: Iterable[QuantityKind | None]) -> tuple[QuantityKind, ...]:
    return tuple(dict.fromkeys(kind for kind in kinds if kind is not None))


QUANTITIES: Final = _list_quantities(
    kind
    for kinds in ([one.measured for one in _TYPES], [one.columns for one in _TYPES])
    for some in kinds
    for kind in some
)
"""All quantities with a column."""
MAIN_QUANTITIES: Final = _list_quantities(one.main for one in _TYPES)
"""The quantities that rank designs, the first that a design has before all others."""
FURTHER_QUANTITIES: Final = _list_quantities(
    kind for kind in QUANTITIES if kind not in (KD, KON, KOFF, TM, CONCENTRATION)
)
"""Quantities that tables have a column for because a type declares them, and that no other rule knows."""
BINDING_TYPES: Final = frozenset(one.experiment_type for one in _TYPES if one.takes_target)
LIMITED_FIELDS: Final = tuple(dict.fromkeys(name for one in _TYPES for name in one.takes))
"""The optional fields of a request that some types refuse."""
METHOD_TYPES: Final = frozenset(one.experiment_type for one in _TYPES if one.methods)

_OBJECTIVES: Final = {one.improves.objective: one.improves for one in _TYPES if one.improves}


def find_assay_type(word: Any) -> AssayType | None:
    """The type that a result names, in any published spelling; None for one that the table does not have.

    >>> find_assay_type("EpitopeBinning").title
    'Epitope binning'
    >>> find_assay_type("mass_photometry")
    """
    return ASSAY_TYPES.get(snake_case(word)) if isinstance(word, str) else None


def describe_objective(objective: Objective) -> ObjectiveValue:
    """The value that an objective improves, as the type that measures it describes it."""
    return _OBJECTIVES[objective]


def join_types(kinds: Iterable[ExperimentType]) -> str:
    """Types as a list for people, in the order of the table: `affinity, screening and epitope_binning`."""
    words = [one.experiment_type.value for one in _TYPES if one.experiment_type in frozenset(kinds)]
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


__all__ = [
    "ASSAY_TYPES",
    "BINDING_TYPES",
    "CONCENTRATION",
    "FURTHER_QUANTITIES",
    "KD",
    "KOFF",
    "KON",
    "LIMITED_FIELDS",
    "MAIN_QUANTITIES",
    "METHOD_TYPES",
    "QUANTITIES",
    "TM",
    "AssayType",
    "Objective",
    "ObjectiveValue",
    "QuantityKind",
    "SequenceCounts",
    "describe_objective",
    "find_assay_type",
    "join_types",
]
