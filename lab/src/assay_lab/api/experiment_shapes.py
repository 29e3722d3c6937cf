"""Shapes of experiments, sequences, targets and updates (contract 2.1, 2.9, 2.11, 4.2 and 4.3)."""

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import ConfigDict, Field

from assay_lab.api.billing_shapes import Costs
from assay_lab.api.shapes import Cents, Count, Moment, Page, Shape, Url, absent
from assay_lab.vocabulary import (
    REPLICATES_MAX,
    REPLICATES_MIN,
    ExperimentStatus,
    ExperimentType,
    Method,
    ResultsStatus,
)


class ExperimentItem(Shape):
    """An experiment in a list (contract 2.1)."""

    id: UUID
    code: str = Field(description="Unique and readable: organisation, project and number.")
    name: str | None = None
    status: ExperimentStatus
    created_at: Moment
    results_status: ResultsStatus
    experiment_type: ExperimentType | None = None
    experiment_url: Url = Field(description="The experiment in the web portal.")
    provider_invoice_url: Url | None = Field(
        default=None, description="Not populated here: ask the invoice call."
    )
    provider_quote_url: Url | None = None


class ExperimentPage(Page[ExperimentItem]):
    """A page of experiments."""


class ResolvedTarget(Shape):
    """The target of an experiment, looked up."""

    name: str
    target_catalog_id: UUID | None = None
    sequence: str | None = None
    supplier_url: Url | None = None


class StoredSequence(Shape):
    """A sequence of an experiment, under its name."""

    aa_string: str
    control: bool
    metadata: Any = None


class StoredSpec(Shape):
    """The specification as stored: the target is resolved, defaults are filled in."""

    experiment_type: ExperimentType
    method: Method = absent()
    target: ResolvedTarget = absent()
    sequences: dict[str, StoredSequence]
    n_replicates: Annotated[int, Field(ge=REPLICATES_MIN, le=REPLICATES_MAX)] = absent()
    antigen_concentrations: list[float] = absent("nM")
    parameters: dict[str, Any] = absent()


class Experiment(ExperimentItem):
    """An experiment (service shapes, Experiments)."""

    experiment_spec: StoredSpec
    provider_quote_id: str | None = None
    costs: Costs = absent()


class CreatedExperiment(Shape):
    """201 of an order (contract 4.2). The invoice fields come with auto_accept_quote."""

    experiment_id: UUID
    experiment_code: str
    status: ExperimentStatus
    costs: Costs = absent()
    error: str = absent()
    provider_invoice_id: str = absent()
    provider_hosted_invoice_url: Url = absent("Where a person views and pays the invoice.")


class SubmittedExperiment(Shape):
    """A draft that was submitted; the quote follows (service shapes, Experiments)."""

    experiment_id: UUID
    previous_status: ExperimentStatus
    status: ExperimentStatus
    confirmed_at: Moment
    provider_invoice_url: Url | None = None


class ModifiedExperiment(Shape):
    """Whether a change was made (contract 4.2)."""

    id: UUID
    message: str = absent()
    updated: bool


class SequenceItem(Shape):
    """A sequence in a list."""

    id: UUID
    name: str | None = None
    aa_preview: str = Field(max_length=50, description="The first 50 letters.")
    length: Count = Field(description="Residues, chains added up.")
    experiment_id: UUID
    experiment_code: str
    is_control: bool
    created_at: Moment


class SequencePage(Page[SequenceItem]):
    """A page of sequences."""


class SequenceOwner(Shape):
    """The experiment that a sequence belongs to."""

    experiment_id: UUID
    experiment_code: str
    experiment_status: ExperimentStatus = absent()


class Sequence(Shape):
    """A sequence."""

    id: UUID
    aa_string: str = Field(description="Upper case; a colon between chains.")
    name: str | None = None
    length: Count
    is_control: bool
    metadata: Any = None
    created_at: Moment
    experiment: SequenceOwner


class AddedSequences(Shape):
    """What was added (contract 4.3)."""

    added_count: Count
    experiment_code: str
    experiment_id: UUID
    sequence_ids: list[str]


class PerSequence(Shape):
    """A price for every sequence."""

    type: Literal["per_sequence"]
    price_per_sequence_cents: Cents


class Lot(Shape):
    """A lot that is opened as a whole."""

    num_sequences: int = Field(ge=1)
    price_usdcent: Cents


class PerLot(Shape):
    """A price for every lot that is opened."""

    type: Literal["per_broken_lot"]
    lot_prices: list[Lot]


class TargetDetails(Shape):
    """What is known about a target."""

    model_config = ConfigDict(extra="allow")

    description: str = absent()
    organism: str = absent()
    molecular_weight: Any = absent()
    purity: float = absent("Percent.")
    sequence: str = absent()


class Target(Shape):
    """An antigen of the catalog. Without `pricing` it has no self-service price."""

    id: UUID
    name: str
    vendor_name: str
    catalog_number: str
    url: Url
    uniprot_id: str | None = None
    pricing: Annotated[PerSequence | PerLot, Field(discriminator="type")] | None = None
    details: TargetDetails | None = None


class TargetPage(Page[Target]):
    """A page of targets."""


class Update(Shape):
    """Something that happened to an experiment (contract 2.9)."""

    id: str
    experiment_id: UUID
    experiment_code: str
    name: str
    timestamp: Moment


class UpdatePage(Page[Update]):
    """A page of updates."""


class CustomTarget(Shape):
    """A request for a target that the catalog does not have."""

    id: UUID
    name: str
    product_id: str
    sequence: str | None
    pdb_id: str | None
    vendor: str | None
    note: str | None
    product_url: Url | None
    molecular_weight: float | str | None
    status: Literal["pending_review", "approved", "rejected"]
    reason: str | None
    """What staff wrote with their decision."""
    target_id: UUID | None
    """The catalog target that an approved request became."""
    created_at: Moment
    updated_at: Moment


class CustomTargetPage(Page[CustomTarget]):
    """A page of requests for custom targets."""
