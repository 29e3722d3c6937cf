"""Estimates, quotes and invoices (contract 2.5 to 2.8). Amounts are integer US cents, excluding VAT.

`read_money` reads every amount and currency. What it cannot read, or what contradicts itself, is not an amount anywhere.
"""

from collections.abc import Collection, Iterable, Mapping
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

from prefect_assay.service.models.base import DECIDES, Moment, WireModel
from prefect_assay.service.models.identifiers import Identifier
from prefect_assay.service.models.status_questions import is_invoice_closed
from prefect_assay.service.models.vocabulary import AnyInvoiceStatus, AnyQuoteStatus

CURRENCY: Final = "usd"
# A price of less than this share of what was approved is a question: another unit, or the price of another order.
LOWEST_PERCENT: Final = 80
# A whole number (contract 1): text, a boolean or a fraction may mean dollars.
Cents = Annotated[int, Field(strict=True, ge=0)]


def usd(cents: int | None) -> str:
    """`123450` becomes `1,234.50 USD`; None, an amount that is not known yet, becomes `unknown`."""
    if cents is None:
        return "unknown"
    whole, rest = divmod(abs(cents), 100)
    return f"{'-' if cents < 0 else ''}{whole:,}.{rest:02d} USD"


_TOTALS: Final = ("total", "amount_total", "total_cents", "amount_cents", "total_amount_cents", "amount")
_SUBTOTALS: Final = ("amount_subtotal", "subtotal_cents")
_AMOUNTS: Final = ("amount", "amount_cents")  # of an invoice
_SHOWN_MAX: Final = 60


@dataclass(frozen=True, slots=True)
class Money:
    """One amount as a record states it: `cents` is None where it has none, or none that is certain.

    `stated` are the fields as they came, for people. `unreadable` says why the amount is not certain, and `currency` names
    a currency that is not the US dollar or cannot be read.
    """

    cents: int | None = None
    stated: tuple[tuple[str, str], ...] = ()
    unreadable: str | None = None
    currency: str | None = None

    @property
    def problem(self) -> str | None:
        """Why nothing can be compared with this amount; None if it is readable, or simply absent."""
        return self.currency or self.unreadable


def read_money(names: Collection[str], *records: Mapping[str, Any]) -> Money:
    """Read the one amount that the named fields of the records state, in US cents.

    Every field that is there holds the same whole number, and every `currency` is the US dollar. Null is absent.
    """
    values = [(name, one[name]) for one in records for name in names if one.get(name) is not None]
    odd = [
        f"{name} is {_shown(value)}, no whole number of cents"
        for name, value in values
        if not _is_cents(value)
    ]
    if not odd and len({value for _, value in values}) > 1:
        odd = [f"its amounts differ: {', '.join(f'{name} {value}' for name, value in values)}"]
    foreign = [
        f"its currency is {_shown(value)}, not USD"
        for one in records
        if (value := one.get("currency")) is not None
        and not (isinstance(value, str) and value.lower() == CURRENCY)
    ]
    return Money(
        cents=values[0][1] if values and not (odd or foreign) else None,
        stated=tuple((name, _shown(value)) for name, value in values),
        unreadable="; ".join(odd) or None,
        currency="; ".join(dict.fromkeys(foreign)) or None,
    )


def is_far_below(cents: int, expected_cents: int) -> bool:
    """Return True for a price that a person has to look at, because it is nothing, or far less than was expected."""
    return cents == 0 or cents * 100 < expected_cents * LOWEST_PERCENT


def _is_cents(value: Any) -> bool:
    return type(value) is int and value >= 0


def _shown(value: Any) -> str:
    text = ascii(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[: _SHOWN_MAX - 3]}..."


def _sum_problem(whole: str, total: int, parts: str, sums: Iterable[int]) -> str | None:
    """What is wrong where a total differs from every sum that its parts allow."""
    allowed = list(dict.fromkeys(sums))
    if total in allowed:
        return None
    return f"{whole} is {total} cents, and {parts} {' or '.join(map(str, allowed))} cents"


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

    _money: Money = PrivateAttr(default=Money())

    @property
    def money(self) -> Money:
        """The amount without tax, as far as it can be read, and what was read."""
        return self._money

    @property
    def total(self) -> int | None:
        """The amount without tax in US cents (contract 1); None where it is not certain.

        The contract names no field of it (2.7). It is certain where all fields that may be it agree, and the sums are right.
        """
        return self._money.cents

    @model_validator(mode="wrap")
    @classmethod
    def _with_money(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        made = handler(data)
        if isinstance(data, Mapping):
            made._money = _money_of_quote(data)  # noqa: SLF001  its own model
        return made


def _money_of_quote(data: Mapping[str, Any]) -> Money:
    inside = data.get("totals")
    places = (data, inside) if isinstance(inside, Mapping) else (data,)
    total, subtotal, tax = (read_money(names, *places) for names in (_TOTALS, _SUBTOTALS, ("tax_cents",)))
    rows = data.get("line_items")
    lines = [
        read_money(("total_cents",), row)
        for row in (rows if isinstance(rows, list | tuple) else ())
        if isinstance(row, Mapping)
    ]
    problem = next((one.unreadable for one in (total, subtotal, tax, *lines) if one.unreadable), None)
    net = total.cents if subtotal.cents is None else subtotal.cents
    if problem is None and total.cents is not None and net is not None:
        with_tax = net + (tax.cents or 0)
        problem = _sum_problem("its total", total.cents, "its subtotal with and without tax", (with_tax, net))
        items = [line.cents for line in lines if line.cents is not None]
        if problem is None and items and len(items) == len(lines):
            problem = _sum_problem("its sum", sum(items), "its total says", (net, total.cents))
    currency = next((one.currency for one in (total, *lines) if one.currency), None)
    certain = problem is None and currency is None and total.cents is not None
    return Money(
        cents=net if certain else None,
        stated=(*total.stated, *subtotal.stated, *tax.stated),
        unreadable=problem,
        currency=currency,
    )


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
    amount: Cents | None = Field(default=None, validation_alias=AliasChoices("amount", "amount_cents"))
    experiment_id: Identifier | None = None
    quote_id: Identifier | None = None
    created_at: Moment | None = None
    provider_hosted_invoice_url: str | None = Field(
        default=None, validation_alias=AliasChoices("provider_hosted_invoice_url", "hosted_invoice_url")
    )

    _money: Money = PrivateAttr(default=Money())

    @property
    def money(self) -> Money:
        """What the invoice states about its amount; with a `problem`, it has no `amount`, and must not be paid."""
        return self._money

    @model_validator(mode="wrap")
    @classmethod
    def _with_money(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if not isinstance(data, Mapping):
            return handler(data)
        money = read_money(_AMOUNTS, data)
        rest = {name: value for name, value in data.items() if name not in _AMOUNTS}
        made = handler({**rest, "amount": money.cents})
        made._money = money  # noqa: SLF001  its own model
        return made

    @property
    def ended(self) -> bool:
        """Whether no payment is due any more; a status of the service's own is one of an invoice that waits."""
        return is_invoice_closed(self.status)


class UnlistedInvoice(Invoice):
    """An invoice that only its experiment shows (contract 2.8): its `id` is for people, and no call takes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PayAnswer:
    """The answer of the pay path, whatever its status (contract 4.5).

    `headers` have lower-case names; `body` is empty if it is not a JSON object.
    """

    status_code: int
    headers: Mapping[str, str]
    body: dict[str, Any] = field(repr=False)


class AssayCost(WireModel):
    """The assay part. Two published field sets exist; both are read.

    The contract doesn't say how `subtotal_cents` follows from base and replicates (2.5).
    """

    name: str | None = None
    base_cents: Annotated[Cents | None, DECIDES] = None
    replicate_addon_cents: Annotated[Cents | None, DECIDES] = None
    sequence_count: int | None = None
    subtotal_cents: Annotated[Cents | None, DECIDES] = None


class Lot(WireModel):
    """Lots of one size."""

    lot_price_cents: Cents
    quantity: Annotated[int, Field(strict=True, ge=0)]


class MaterialsCost(WireModel):
    """The materials part; absent for assays without a target."""

    type: str | None = None  # per_sequence or per_broken_lot, where the published shape is used
    target: dict[str, Any] | None = None
    price_per_sequence_cents: Annotated[Cents | None, DECIDES] = None
    sequence_count: int | None = None
    lots: Annotated[tuple[Lot, ...] | None, DECIDES] = None
    subtotal_cents: Annotated[Cents | None, DECIDES] = None

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        if self.subtotal_cents is None:
            return self
        if self.lots:
            added = sum(lot.lot_price_cents * lot.quantity for lot in self.lots)
            _require(_sum_problem("subtotal_cents", self.subtotal_cents, "the lots add up to", (added,)))
        elif self.type == "per_sequence" and None not in (self.price_per_sequence_cents, self.sequence_count):
            added = (self.price_per_sequence_cents or 0) * (self.sequence_count or 0)
            _require(_sum_problem("subtotal_cents", self.subtotal_cents, "the sequences add up to", (added,)))
        return self


def _require(problem: str | None) -> None:
    if problem:
        raise ValueError(f"{problem}: an estimate that contradicts itself is not a price")


class Breakdown(WireModel):
    """A complete estimate. Its total decides, if it is in US dollars and the sum of the parts that it shows."""

    pricing_version: str | None = None
    assay: Annotated[AssayCost | None, DECIDES] = None
    materials: Annotated[MaterialsCost | None, DECIDES] = None
    total_cents: Cents

    @model_validator(mode="before")
    @classmethod
    def _in_dollars(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        _require(read_money((), data).currency)
        return data

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        parts = [part.subtotal_cents for part in (self.assay, self.materials) if part is not None]
        if parts and None not in parts and self.assay is not None:
            added = sum(part or 0 for part in parts)
            _require(_sum_problem("total_cents", self.total_cents, "its parts add up to", (added,)))
        return self


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
