"""What an experiment costs: the estimate (contract 2.5), and `costs` of an experiment (service shapes)."""

from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from prefect_assay.lab.shapes.base import Cents, Count, Moment, NamedTarget, Shape, Url, absent
from prefect_assay.models.vocabulary import REPLICATES_MAX, REPLICATES_MIN, ExperimentType, InvoiceStatus

Version = Annotated[str, Field(pattern=r"^v[0-9]+_", description="The pricing rules that were applied.")]
AcceptanceStatus = Literal["draft", "open", "accepted", "canceled", "stale"]


class AssayCost(Shape):
    """The assay's part of the price, in both published sets of fields."""

    name: str
    experiment_type: ExperimentType
    unit_price_cents: Cents = Field(description="One sequence, one replicate.")
    replicate_price_cents: Cents = Field(description="One sequence, each further replicate.")
    n_replicates: int = Field(ge=REPLICATES_MIN, le=REPLICATES_MAX)
    sequence_count: Count
    base_cents: Cents
    replicate_addon_cents: Cents
    subtotal_cents: Cents


class _OfTarget(Shape):
    """The target, as an object and in fields of its own."""

    target: NamedTarget
    target_id: UUID
    target_name: str


class MaterialsPerSequence(_OfTarget):
    """The target's part of the price, by the sequence."""

    type: Literal["per_sequence"]
    price_per_sequence_cents: Cents
    sequence_count: Count
    subtotal_cents: Cents


class OpenedLot(Shape):
    """Lots of one size that have to be opened."""

    lot_size_ug: Count
    lot_price_cents: Cents
    quantity: Count


class MaterialsPerLot(_OfTarget):
    """The target's part of the price, by the lot."""

    type: Literal["per_broken_lot"]
    lots: list[OpenedLot]
    price_per_sequence_cents: Cents = Field(description="On average, rounded up.")
    sequence_count: Count
    subtotal_cents: Cents


MaterialsCost = Annotated[MaterialsPerSequence | MaterialsPerLot, Field(discriminator="type")]


class Breakdown(Shape):
    """A complete price. Assays without a target have no `materials`."""

    pricing_version: Version
    assay: AssayCost
    materials: MaterialsCost = absent()
    total_cents: Cents


class MaterialsUnavailable(_OfTarget):
    """The target without a self-service price, and why that leaves the price open."""

    reason: str


class Incomplete(Shape):
    """Part of a price, which is no price: submit the experiment to get a quote."""

    pricing_version: Version
    assay: AssayCost
    materials_unavailable: MaterialsUnavailable


class CostEstimate(Shape):
    """Either `breakdown` or `incomplete` is set (contract 2.5)."""

    breakdown: Breakdown | None
    incomplete: Incomplete | None
    warnings: list[str]


class Estimated(Shape):
    """Before there is a quote."""

    type: Literal["estimate"]
    breakdown: Breakdown


class IncompletelyEstimated(Incomplete):
    """Before there is a quote, where only a quote can name the price."""

    type: Literal["incomplete_estimate"]
    total_cents: None


class Quoted(Shape):
    """From the quote on."""

    type: Literal["quoted"]
    amount_cents: Cents
    currency: str
    status: AcceptanceStatus
    provider_quote_url: Url
    expires_at: Moment | None = None


class Invoiced(Shape):
    """From the invoice on."""

    type: Literal["invoiced"]
    amount_cents: Cents
    currency: str
    status: InvoiceStatus | None
    provider_invoice_url: Url | None = None


Costs = Annotated[Estimated | IncompletelyEstimated | Quoted | Invoiced, Field(discriminator="type")]
