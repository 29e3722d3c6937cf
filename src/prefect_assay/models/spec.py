"""What to measure: a target, the assay that a user chooses, an order's specification, a campaign's plan.

Contract 2.2, 2.3, 2.11 and service-shapes, Targets.
"""

from datetime import datetime
from enum import StrEnum
from typing import Any, Self

from pydantic import Field, model_validator

from prefect_assay.models.base import Maybe, Model, StoredModel, WireModel
from prefect_assay.models.sequences import Batch, Duplicate
from prefect_assay.models.vocabulary import (
    BINDING_TYPES,
    METHOD_TYPES,
    REPLICATES_MAX,
    REPLICATES_MIN,
    ExperimentType,
    KnownOrText,
    Method,
)

PLAN_SCHEMA = 1


class Target(WireModel):
    """A catalog target. With `pricing` it has a self-service price: instant estimate, automated checkout."""

    id: str
    name: str | None = None
    vendor_name: str | None = None
    catalog_number: str | None = None
    url: str | None = None
    uniprot_id: str | None = None
    pricing: dict[str, Any] | None = None
    details: dict[str, Any] | None = None


class CustomTargetStatus(StrEnum):
    """The state of a request."""

    PENDING_REVIEW = "pending_review"
    APPROVED = "approved"
    REJECTED = "rejected"


class CustomTarget(WireModel):
    """A request for a target that the catalog lacks. An approved one may name its catalog target."""

    id: str
    name: Maybe[str] = None
    product_id: Maybe[str] = None
    sequence: Maybe[str] = None
    pdb_id: Maybe[str] = None
    vendor: Maybe[str] = None
    note: Maybe[str] = None
    product_url: Maybe[str] = None
    molecular_weight: Maybe[float | str] = None
    status: KnownOrText[CustomTargetStatus] | None = None
    reason: Maybe[str] = None
    target_id: Maybe[str] = None
    created_at: Maybe[datetime] = None
    updated_at: Maybe[datetime] = None


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


class PlannedExperiment(StoredModel):
    """One experiment of a campaign. `batch_index` counts from 0."""

    order_key: str
    batch_index: int
    spec: ExperimentSpec


class Plan(StoredModel):
    """A campaign's experiments. The same designs and assay give the same order keys.

    `attributes` are the designer's own columns: `{design name: {column title: value}}`. They play no part in orders.
    """

    plan_schema: int = PLAN_SCHEMA
    campaign_id: str
    archive_id: str | None = None  # the archive that holds the campaign's orders
    source: str
    assay: Assay
    target_name: str | None = None
    experiments: tuple[PlannedExperiment, ...]
    duplicates: tuple[Duplicate, ...] = ()
    attributes: dict[str, dict[str, str]] = Field(default_factory=dict)
    attributes_left_out: tuple[str, ...] = ()  # titles of columns beyond the plan's size

    @property
    def order_keys(self) -> tuple[str, ...]:
        """The order keys, in batch order."""
        return tuple(e.order_key for e in self.experiments)
