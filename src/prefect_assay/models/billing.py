"""Estimates, quotes and invoices (contract 2.5 to 2.8). Amounts are integer US cents, excluding VAT."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Self

from pydantic import (
    AliasChoices,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    StrictFloat,
    model_validator,
)

from prefect_assay.models.base import DECIDES, Moment, WireModel
from prefect_assay.models.identifiers import Identifier
from prefect_assay.models.vocabulary import AnyInvoiceStatus, AnyQuoteStatus, InvoiceStatus

# A whole number (contract 1): text, a boolean or a fraction may mean dollars.
Cents = Annotated[int, Field(strict=True, ge=0)]


def usd(cents: int | None) -> str:
    """`123450` becomes `1,234.50 USD`; None, an amount that is not known yet, becomes `unknown`."""
    if cents is None:
        return "unknown"
    whole, rest = divmod(abs(cents), 100)
    return f"{'-' if cents < 0 else ''}{whole:,}.{rest:02d} USD"


_TOTALS: Final = ("total", "amount_total", "total_cents", "amount_cents", "total_amount_cents", "amount")


class LineItem(WireModel):
    """One position of a quote."""

    description: str | None = None
    quantity: StrictFloat | None = None
    unit_price_cents: Cents | None = None
    total_cents: Cents | None = None


class Quote(WireModel):
    """A quote, as its experiment shows it, as a row of the list, or in full by its own id."""

    experiment_id: Identifier | None = None
    id: Identifier | None = None
    amount_total: Cents | None = Field(
        default=None, validation_alias=AliasChoices("amount_total", "total_cents", "amount_cents")
    )
    totals: dict[str, Any] | None = None
    amount_subtotal: Cents | None = Field(
        default=None, validation_alias=AliasChoices("amount_subtotal", "subtotal_cents")
    )
    currency: str | None = None
    status: AnyQuoteStatus | None = None
    expires_at: Moment | None = Field(
        default=None, validation_alias=AliasChoices("expires_at", "valid_until")
    )
    provider_quote_url: str | None = None
    quote_number: str | None = None
    organization: str | None = None
    organization_id: Identifier | None = None
    organization_name: str | None = None
    line_items: tuple[LineItem, ...] | None = None
    tax_cents: Cents | None = None
    created_at: Moment | None = None
    updated_at: Moment | None = None
    notes: str | None = None
    terms_and_conditions: str | None = None

    _total: int | None = PrivateAttr(default=None)

    @property
    def total(self) -> int | None:
        """The total in US cents, wherever a quote has it (contract 2.7 names no field); None where it is not certain.

        It is certain where every field that may be it has the same whole number.
        """
        return self._total

    @model_validator(mode="wrap")
    @classmethod
    def _with_total(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if not isinstance(data, Mapping):
            return handler(data)
        inside = data.get("totals")
        places = (data, inside) if isinstance(inside, Mapping) else (data,)
        said = {
            str(one).strip().lower(): one for place in places if (one := place.get("currency")) is not None
        }
        made = handler({**data, "currency": ", ".join(map(str, said.values()))} if said else data)
        values = [value for place in places for name in _TOTALS if (value := place.get(name)) is not None]
        if values and all(type(value) is int and value == values[0] >= 0 for value in values):
            made._total = values[0]  # noqa: SLF001  its own model
        return made


class ExperimentInvoice(WireModel):
    """The invoice as its experiment shows it (contract 2.8)."""

    experiment_id: Identifier | None = None
    status: AnyInvoiceStatus | None = None
    provider_invoice_url: str | None = None
    id: Identifier | None = Field(default=None, validation_alias=AliasChoices("id", "invoice_id"))


class Invoice(WireModel):
    """The invoice itself, by its own id."""

    id: Identifier
    provider_invoice_id: Identifier | None = None
    status: AnyInvoiceStatus | None = None
    currency: str | None = None
    amount: Annotated[Cents | None, DECIDES] = Field(
        default=None, validation_alias=AliasChoices("amount", "amount_cents")
    )
    experiment_id: Identifier | None = None
    quote_id: Identifier | None = None
    created_at: Moment | None = None
    provider_hosted_invoice_url: str | None = Field(
        default=None, validation_alias=AliasChoices("provider_hosted_invoice_url", "hosted_invoice_url")
    )

    @property
    def ended(self) -> bool:
        """Whether no payment is due any more; a status of the service's own is one of an invoice that waits."""
        return self.status in {InvoiceStatus.PAID, InvoiceStatus.VOID, InvoiceStatus.UNCOLLECTIBLE}


class UnlistedInvoice(Invoice):
    """An invoice that only its experiment shows (contract 2.8): its `id` is for people, and no call takes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PayAnswer:
    """The answer of the pay path, whatever its status (contract 4.5).

    `headers` have lower-case names; `body` is empty if it is no JSON object.
    """

    status_code: int
    headers: Mapping[str, str]
    body: dict[str, Any] = field(repr=False)


class AssayCost(WireModel):
    """The assay part. Two published field sets exist; both are read."""

    name: str | None = None
    base_cents: Cents | None = None
    replicate_addon_cents: Cents | None = None
    subtotal_cents: Cents | None = None


class MaterialsCost(WireModel):
    """The materials part; absent for assays without a target."""

    target: dict[str, Any] | None = None
    price_per_sequence_cents: Cents | None = None
    subtotal_cents: Cents | None = None


class Breakdown(WireModel):
    """A complete estimate; only its total decides."""

    pricing_version: str | None = None
    assay: AssayCost | None = None
    materials: MaterialsCost | None = None
    total_cents: Cents


class MaterialsUnavailable(WireModel):
    """Why there is no price: the target has no self-service pricing."""

    target: dict[str, Any] | None = None
    reason: str | None = None


class Incomplete(WireModel):
    """An estimate without a price for the materials. Never a price (contract 2.5)."""

    pricing_version: str | None = None
    assay: AssayCost | None = None
    materials_unavailable: MaterialsUnavailable | None = None


class CostEstimate(WireModel):
    """Either `breakdown` or `incomplete` is set."""

    breakdown: Annotated[Breakdown | None, DECIDES] = None
    incomplete: Incomplete | None = None
    warnings: tuple[Any, ...] = ()

    @property
    def total_cents(self) -> int | None:
        """The price in US cents, or None when the estimate is incomplete: a person has to quote."""
        return self.breakdown.total_cents if self.breakdown else None

    @property
    def reason(self) -> str:
        """Why there is no price, for people."""
        lacks = self.incomplete.materials_unavailable if self.incomplete else None
        return (lacks and lacks.reason) or "the service names no reason"
