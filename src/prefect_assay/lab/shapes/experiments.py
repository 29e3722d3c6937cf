"""Experiments (contract 2.1 and 4.2)."""

from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from prefect_assay.lab.shapes.base import Moment, Page, Shape, Url, absent
from prefect_assay.lab.shapes.costs import Costs
from prefect_assay.models.vocabulary import (
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
