"""The assay types of the lab, one module each, and their table."""

from collections.abc import Mapping
from typing import Final

from assay_lab.measure.assays.affinity import AFFINITY
from assay_lab.measure.assays.assay_type import AssayType
from assay_lab.measure.assays.enzyme_activity import ENZYME_ACTIVITY
from assay_lab.measure.assays.epitope_binning import EPITOPE_BINNING
from assay_lab.measure.assays.expression import EXPRESSION
from assay_lab.measure.assays.fluorescence import FLUORESCENCE
from assay_lab.measure.assays.screening import SCREENING
from assay_lab.measure.assays.thermostability import THERMOSTABILITY
from assay_lab.vocabulary import ExperimentType

_TYPES: Final = (
    AFFINITY,
    SCREENING,
    THERMOSTABILITY,
    FLUORESCENCE,
    EXPRESSION,
    EPITOPE_BINNING,
    ENZYME_ACTIVITY,
)
ASSAY_TYPES: Final[Mapping[str, AssayType]] = {one.experiment_type: one for one in _TYPES}
"""By the word of a request; each `ExperimentType` has one entry."""
BINDING_TYPES: Final = frozenset(one.experiment_type for one in _TYPES if one.takes_target)
LIMITED_FIELDS: Final = frozenset(name for one in _TYPES for name in one.takes)
"""The optional fields of a request that some types refuse."""
METHOD_TYPES: Final = frozenset(one.experiment_type for one in _TYPES if one.takes_method)

if len(ASSAY_TYPES) < len(ExperimentType):
    raise LookupError("an experiment type has no module in assay_lab.measure.assays")

__all__ = ["ASSAY_TYPES", "BINDING_TYPES", "LIMITED_FIELDS", "METHOD_TYPES", "AssayType"]
