"""Shapes of costs, quotes, invoices and payments (contract 2.5 to 2.8, 4.5; service shapes)."""

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import ConfigDict, Field

from assay_lab.api.shapes import Cents, Count, Error, Moment, NamedTarget, Page, Shape, Url, absent
from assay_lab.vocabulary import REPLICATES_MAX, REPLICATES_MIN, ExperimentType, InvoiceStatus

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


ListedStatus = Literal["draft", "pending", "accepted", "rejected", "expired"]


class ExperimentQuote(Shape):
    """The quote of an experiment."""

    experiment_id: UUID
    provider_quote_url: Url
    amount_total: Cents
    amount_subtotal: Cents
    currency: str
    status: AcceptanceStatus
    expires_at: Moment | None = None
    updated_at: Moment | None = None


class _Quote(Shape):
    id: str
    quote_number: str
    currency: str
    status: ListedStatus
    valid_until: Moment
    expires_at: Moment = Field(description="The same as valid_until.")
    created_at: Moment
    provider_quote_url: Url


class QuoteItem(_Quote):
    """A quote in a list (contract 2.7)."""

    organization: str
    amount_cents: Cents


class QuotePage(Page[QuoteItem]):
    """A page of quotes."""


class QuoteLine(Shape):
    """One line of a quote."""

    description: str
    quantity: Count
    unit_price_cents: Cents
    total_cents: Cents


class Quote(_Quote):
    """A quote."""

    organization_id: UUID
    organization_name: str
    line_items: list[QuoteLine]
    subtotal_cents: Cents
    tax_cents: Cents
    total_cents: Cents
    notes: str | None = None
    terms_and_conditions: str | None = None


class PaymentPointer(Shape):
    """Where and how to pay (contract 2.6)."""

    kind: Literal["hosted_invoice", "machine"]
    hosted_invoice_url: Url
    methods: list[Literal["x402-exact", "mpp-spt"]]
    pay_url: str = Field(description="Path of the pay call. For a hosted invoice it only reports the state.")


class ConfirmedQuote(Shape):
    """An accepted quote (contract 2.6)."""

    id: str
    status: AcceptanceStatus
    hosted_invoice_url: Url
    invoice_id: str
    payment: PaymentPointer = absent("Absent once it is settled.")


class RejectedQuote(Shape):
    """A rejected quote."""

    id: str
    status: Literal["rejected"]


class ExperimentInvoice(Shape):
    """The invoice of an experiment (contract 2.8)."""

    experiment_id: UUID
    status: InvoiceStatus | None
    provider_invoice_url: Url


class Invoice(Shape):
    """An invoice (service shapes, Quotes and invoices)."""

    id: str
    provider_invoice_id: str
    status: InvoiceStatus | None
    currency: str
    amount: Cents | None = None
    experiment_id: UUID
    quote_id: str
    provider_hosted_invoice_url: Url


class InvoicePage(Page[Invoice]):
    """A page of invoices."""


class PaidInvoice(Invoice):
    """The state of an invoice after a pay call. The settlement's reference is given once."""

    already_paid: bool
    settlement_reference: str = absent("Given once, with the settlement.")
    hosted_invoice_url: Url = absent("Where to pay, when the invoice is not for machines.")


class X402Resource(Shape):
    """What is paid for."""

    url: Url
    description: str
    mimeType: str  # noqa: N815 - x402's spelling


class X402Terms(Shape):
    """One way to pay that is accepted."""

    scheme: Literal["exact"]
    network: str = Field(description="CAIP-2 name of the chain.")
    asset: str
    amount: str = Field(pattern="^[0-9]+$", description="In the token's smallest unit.")
    payTo: str  # noqa: N815 - x402's spelling
    maxTimeoutSeconds: int  # noqa: N815 - x402's spelling
    extra: dict[str, Any]


class PaymentRequired(Error):
    """402: a challenge. Its terms are in a header; those of x402 also in the body, not encoded."""

    model_config = ConfigDict(extra="forbid")

    x402Version: Literal[2] = absent()  # noqa: N815 - x402's spelling
    resource: X402Resource = absent()
    accepts: list[X402Terms] = absent()
    type: str = absent()  # mpp-spt: which problem it is
