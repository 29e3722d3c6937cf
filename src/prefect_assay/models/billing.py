"""Quotes and invoices (contract 2.6 to 2.8). Amounts are integer US cents, excluding VAT."""

from datetime import datetime

from pydantic import AliasChoices, Field

from prefect_assay.models.base import WireModel
from prefect_assay.models.vocabulary import AnyInvoiceStatus, AnyQuoteStatus


class Quote(WireModel):
    """The quote of an experiment."""

    experiment_id: str | None = None
    id: str | None = None
    amount_total: int | None = Field(
        default=None, validation_alias=AliasChoices("amount_total", "total_cents", "amount_cents")
    )
    amount_subtotal: int | None = None
    currency: str | None = None
    status: AnyQuoteStatus
    expires_at: datetime | None = Field(
        default=None, validation_alias=AliasChoices("expires_at", "valid_until")
    )
    provider_quote_url: str | None = None


class ExperimentInvoice(WireModel):
    """The invoice as its experiment shows it (contract 2.8)."""

    experiment_id: str
    status: AnyInvoiceStatus | None = None
    provider_invoice_url: str | None = None
    id: str | None = Field(default=None, validation_alias=AliasChoices("id", "invoice_id"))


class Invoice(WireModel):
    """The invoice itself, by its own id."""

    id: str
    provider_invoice_id: str | None = None
    status: AnyInvoiceStatus | None = None
    currency: str | None = None
    amount: int | None = Field(default=None, validation_alias=AliasChoices("amount", "amount_cents"))
    experiment_id: str | None = None
    quote_id: str | None = None
    provider_hosted_invoice_url: str | None = Field(
        default=None, validation_alias=AliasChoices("provider_hosted_invoice_url", "hosted_invoice_url")
    )
