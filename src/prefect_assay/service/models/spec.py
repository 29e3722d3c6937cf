"""The target, the assay that a user chooses, an order's specification.

Contract 2.2, 2.3, 2.11 and service-shapes, Targets.
"""

from enum import StrEnum
from typing import Any, Final, Self

from pydantic import ConfigDict, Field, model_validator

from prefect_assay.service.assays import ASSAY_TYPES, BINDING_TYPES, METHOD_TYPES, join_types
from prefect_assay.service.bounds import (
    RESIDUES_MAX,
    Concentrations,
    ConcentrationsForm,
    FreeForm,
    FreeForms,
    Line,
    LineForm,
    ReplicatesForm,
    ResiduesForm,
)
from prefect_assay.service.form import Schema, form_of, text_only_for
from prefect_assay.service.models.base import Model, Moment, WireModel
from prefect_assay.service.models.identifiers import Identifier
from prefect_assay.service.models.sequences import Batch, ProteinSequence
from prefect_assay.service.models.vocabulary import (
    REPLICATES_MAX,
    REPLICATES_MIN,
    ExperimentType,
    KnownOrText,
    Method,
)


def _describe_types() -> str:
    """Each type with what it measures: binding first, and last those whose name says it."""
    ordered = sorted(ASSAY_TYPES.values(), key=lambda one: (not one.takes_target, not one.measures))
    return "; ".join(
        f"{one.experiment_type}: {one.measures}" if one.measures else one.experiment_type for one in ordered
    )


_TYPE_HELP: Final = f"What is measured. {_describe_types()}."
_TARGET_TYPES: Final = join_types(BINDING_TYPES)
_METHOD_HELP: Final = (
    f"For {join_types(METHOD_TYPES)}: bli (bio-layer interferometry) or spr (surface plasmon resonance). "
)
_REPLICATES_HELP: Final = "Replicates per sequence, 1 to 5. Empty: the service's default of 3."
_CONCENTRATION_TYPES: Final = [kind for kind, one in ASSAY_TYPES.items() if one.concentrations_nM]
_CONCENTRATIONS_HELP: Final = f"{join_types(_CONCENTRATION_TYPES)} only. Empty: the service's default of 1000, 316.2, 100, 31.6 and 0 nM."
_PARAMETERS_HELP: Final = "Experiment-specific settings, passed on to the service as they are."


class Target(WireModel):
    """A catalog target. With `pricing` it has a self-service price: instant estimate, automated checkout."""

    id: Identifier
    name: str | None = None
    vendor_name: str | None = None
    catalog_number: str | None = None
    url: str | None = None
    uniprot_id: str | None = None
    pricing: dict[str, Any] | None = None
    details: dict[str, Any] | None = None

    @property
    def sequence(self) -> str | None:
        """The residues of the target, if the catalog has them."""
        residues = (self.details or {}).get("sequence")
        return residues if isinstance(residues, str) else None


class CustomTargetStatus(StrEnum):
    """The state of a request."""

    PENDING_REVIEW = "pending_review"
    APPROVED = "approved"
    REJECTED = "rejected"


class CustomTarget(WireModel):
    """A request for a target that the catalog lacks. An approved one may name its catalog target."""

    id: Identifier
    name: str | None = None
    product_id: str | None = None
    sequence: str | None = None
    pdb_id: str | None = None
    status: KnownOrText[CustomTargetStatus] | None = None
    reason: str | None = None
    target_id: Identifier | None = None
    created_at: Moment | None = None
    updated_at: Moment | None = None


class Assay(Model):
    """The assay, without its sequences."""

    model_config = ConfigDict(
        json_schema_extra=form_of(text_only_for("target", of="experiment_type", among=BINDING_TYPES))
    )

    experiment_type: ExperimentType = Field(
        default=ExperimentType.AFFINITY,
        title="Experiment type",
        description=_TYPE_HELP,
        json_schema_extra={"position": 0},
    )
    target: Line | None = Field(
        default=None,
        title="Target",
        description=f"What the designs bind in {_TARGET_TYPES}: a catalog target by its id, its "
        "catalog number or its exact name. Other types take none.",
        json_schema_extra={"position": 1},
    )
    method: Method | None = Field(
        default=None,
        title="Method",
        description=f"{_METHOD_HELP}Empty: bli where a method is needed.",
        json_schema_extra={"position": 2},
    )
    n_replicates: int | None = Field(
        default=None,
        ge=REPLICATES_MIN,
        le=REPLICATES_MAX,
        title="Replicates",
        description=_REPLICATES_HELP,
        json_schema_extra={"position": 3},
    )
    antigen_concentrations: Concentrations | None = Field(
        default=None,
        title="Antigen concentrations (nM)",
        description=_CONCENTRATIONS_HELP,
        json_schema_extra={"position": 4},
    )
    parameters: FreeForm | None = Field(
        default=None,
        title="Further settings",
        description=_PARAMETERS_HELP,
        json_schema_extra={"position": 5},
    )

    @property
    def effective_method(self) -> Method | None:
        """The chosen method, else the first one of a type that needs one (contract 2.2): bli."""
        return self.method or next(iter(ASSAY_TYPES[self.experiment_type].methods), None)


class SequenceValue(Model):
    """One sequence in a specification. The simple form, bare residues, is read as well."""

    # contract 2.3
    model_config = ConfigDict(json_schema_extra=form_of())

    aa_string: ResiduesForm = Field(title="Residues", description="Amino acids; a colon between chains.")
    control: bool = Field(default=False, title="Control", description="A control, and not a design.")
    metadata: FreeForms | None = Field(
        default=None, title="Metadata", description="Passed on to the service, such as the construct's type."
    )

    @model_validator(mode="before")
    @classmethod
    def _simple_form(cls, value: Any) -> Any:
        return {"aa_string": value} if isinstance(value, str) else value


def _bare_residues_too(schema: Schema) -> None:
    bare = {"type": "string", "maxLength": RESIDUES_MAX}
    schema["additionalProperties"] = {"anyOf": [bare, schema["additionalProperties"]]}
    schema["position"] = 3


class ExperimentSpec(Model):
    """One experiment's assay with its sequences and its resolved target."""

    # `experiment_spec` of contract 2.2
    model_config = ConfigDict(
        json_schema_extra=form_of(text_only_for("target_id", of="experiment_type", among=BINDING_TYPES))
    )

    experiment_type: ExperimentType = Field(
        title="Experiment type", description=_TYPE_HELP, json_schema_extra={"position": 0}
    )
    method: Method | None = Field(
        default=None,
        title="Method",
        description=f"{_METHOD_HELP}Needed there, empty elsewhere.",
        json_schema_extra={"position": 2},
    )
    target_id: LineForm | None = Field(
        default=None,
        title="Target",
        description=f"What the designs bind in {_TARGET_TYPES}: the catalog id (uuid) of the "
        "target. Other types take none. The flow campaign takes a target's name as well.",
        json_schema_extra={"position": 1},
    )
    sequences: dict[str, SequenceValue] = Field(
        title="Sequences",
        description='Residues by name, as JSON: {"design-1": "MKVLAAGT", "design-2": "MKILAAGS"}. A colon separates '
        'chains. With a control: {"ref": {"aa_string": "MKVLAAGT", "control": true}}.',
        json_schema_extra=_bare_residues_too,
    )
    n_replicates: ReplicatesForm | None = Field(
        default=None, title="Replicates", description=_REPLICATES_HELP, json_schema_extra={"position": 4}
    )
    antigen_concentrations: ConcentrationsForm | None = Field(
        default=None,
        title="Antigen concentrations (nM)",
        description=_CONCENTRATIONS_HELP,
        json_schema_extra={"position": 5},
    )
    parameters: FreeForms | None = Field(
        default=None,
        title="Further settings",
        description=_PARAMETERS_HELP,
        json_schema_extra={"position": 6},
    )

    @classmethod
    def of(cls, assay: Assay, batch: Batch, target_id: str | None) -> Self:
        """Combine an assay, a batch of designs and the resolved target."""
        same = {name: getattr(assay, name) for name in Assay.model_fields.keys() & cls.model_fields.keys()}
        return cls(
            **same
            | {
                "method": assay.effective_method,
                "target_id": target_id,
                "sequences": {
                    s.name: SequenceValue(
                        aa_string=s.aa_string, control=s.control, metadata=s.metadata or None
                    )
                    for s in batch.items
                },
            }
        )

    @property
    def takes_target(self) -> bool:
        """Whether the type has a target. Only then can a create accept its own quote (contract 4.2)."""
        return ASSAY_TYPES[self.experiment_type].takes_target

    @property
    def designs(self) -> tuple[ProteinSequence, ...]:
        """The sequences with their names, without metadata."""
        return tuple(
            ProteinSequence(name=name, aa_string=value.aa_string, control=value.control)
            for name, value in self.sequences.items()
        )

    def wire(self) -> dict[str, Any]:
        """The JSON body: only what is set, because inapplicable fields cause a 400 (contract 2.2)."""
        return self.model_dump(mode="json", exclude_none=True)
