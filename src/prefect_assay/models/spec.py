"""What to measure: the assay that a user chooses, and the specification of an order (contract 2.2, 2.3)."""

from typing import Any, Self

from pydantic import Field, model_validator

from prefect_assay.models.base import Model
from prefect_assay.models.sequences import Batch
from prefect_assay.models.vocabulary import (
    BINDING_TYPES,
    METHOD_TYPES,
    REPLICATES_MAX,
    REPLICATES_MIN,
    ExperimentType,
    Method,
)


class Assay(Model):
    """The assay, without its sequences: the form a user fills in the Prefect UI."""

    experiment_type: ExperimentType = Field(
        default=ExperimentType.AFFINITY,
        title="Experiment type",
        description="What is measured. affinity: K_D, k_on, k_off; screening: binding yes or no; "
        "thermostability: melting temperature.",
        json_schema_extra={"position": 0},
    )
    target: str | None = Field(
        default=None,
        title="Target",
        description="Catalog target for binding assays: its id, its catalog number, or its exact name. "
        "Leave empty for assays without a target.",
        json_schema_extra={"position": 1},
    )
    method: Method | None = Field(
        default=None,
        title="Method",
        description="For affinity and screening: bli (bio-layer interferometry) or spr (surface plasmon "
        "resonance). Empty means bli where a method is needed.",
        json_schema_extra={"position": 2},
    )
    n_replicates: int | None = Field(
        default=None,
        ge=REPLICATES_MIN,
        le=REPLICATES_MAX,
        title="Replicates",
        description="Replicates per sequence, 1 to 5. Empty: the service's default of 3.",
        json_schema_extra={"position": 3},
    )
    antigen_concentrations: tuple[float, ...] | None = Field(
        default=None,
        title="Antigen concentrations (nM)",
        description="affinity only. Empty: the service's default of 1000, 316.2, 100, 31.6 and 0 nM.",
        json_schema_extra={"position": 4},
    )
    parameters: dict[str, Any] | None = Field(
        default=None,
        title="Further settings",
        description="Experiment-specific settings, passed on to the service as they are.",
        json_schema_extra={"position": 5},
    )

    @property
    def effective_method(self) -> Method | None:
        """The chosen method, else bli if the type needs one (contract 2.2)."""
        if self.method is None and self.experiment_type in METHOD_TYPES:
            return Method.BLI
        return self.method


class SequenceValue(Model):
    """One sequence in a specification (contract 2.3). The simple form, bare residues, is read as well."""

    aa_string: str
    control: bool = False
    metadata: dict[str, Any] | None = None

    @model_validator(mode="before")
    @classmethod
    def _simple_form(cls, value: Any) -> Any:
        return {"aa_string": value} if isinstance(value, str) else value


class ExperimentSpec(Model):
    """`experiment_spec` of contract 2.2: one experiment's assay with its sequences and resolved target."""

    experiment_type: ExperimentType
    method: Method | None = None
    target_id: str | None = Field(default=None, description="Catalog id (uuid) of the target.")
    sequences: dict[str, SequenceValue]
    n_replicates: int | None = None
    antigen_concentrations: tuple[float, ...] | None = None
    parameters: dict[str, Any] | None = None

    @classmethod
    def of(cls, assay: Assay, batch: Batch, target_id: str | None) -> Self:
        """Combine an assay, a batch of designs and the resolved target."""
        return cls(
            experiment_type=assay.experiment_type,
            method=assay.effective_method,
            target_id=target_id,
            sequences={
                s.name: SequenceValue(aa_string=s.aa_string, control=s.control, metadata=s.metadata or None)
                for s in batch.items
            },
            n_replicates=assay.n_replicates,
            antigen_concentrations=assay.antigen_concentrations,
            parameters=assay.parameters,
        )

    @property
    def takes_target(self) -> bool:
        """Whether the type has a target. Only then can a create accept its own quote (contract 4.2)."""
        return self.experiment_type in BINDING_TYPES

    def wire(self) -> dict[str, Any]:
        """The JSON body: only what is set, because inapplicable fields cause a 400 (contract 2.2)."""
        return self.model_dump(mode="json", exclude_none=True)
