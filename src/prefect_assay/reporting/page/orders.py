"""What was ordered and paid, from the log of orders in the archive, in words and US cents. Writes nothing."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final, assert_never

from prefect_assay.archive.layout import BOOKS_FOLDER, safe_name, safe_prefix
from prefect_assay.archive.store import Store, join_key
from prefect_assay.books import Books, OrderBook, OrderState
from prefect_assay.books.books import ARCHIVE_NAME
from prefect_assay.books.state import (
    NotBegun,
    NotOrdered,
    Paid,
    PaymentInDoubt,
    PaymentRefused,
    PaymentSent,
    Unpaid,
)
from prefect_assay.errors import ArchiveError, ArchiveUnavailable, ConfigurationError
from prefect_assay.models.base import Model
from prefect_assay.models.vocabulary import PaymentMethod

RAILS: Final = {
    PaymentMethod.ASYNC_INVOICE: "hosted invoice, paid by a person",
    PaymentMethod.X402_EXACT: "stablecoin transfer (x402-exact)",
    PaymentMethod.MPP_SPT: "shared payment token (mpp-spt)",
}
PAID: Final = "paid"
WITHDRAWN: Final = "quote came to nothing"


class OrderFacts(Model):
    """One order. `amount_cents` is what was paid or is due, or else what was approved, without VAT; None is unknown."""

    order_key: str | None
    experiment_id: str | None = None
    status: str
    amount_cents: int | None = None
    approved_by: str | None = None
    ordered_at: datetime | None = None
    paid_at: datetime | None = None
    rail: str | None = None
    invoice_id: str | None = None
    receipt: dict[str, str] = {}  # noqa: RUF012  pydantic copies it
    remark: str | None = None
    surplus: tuple[str, ...] = ()

    @property
    def is_paid(self) -> bool:
        """The log says that the invoice is paid."""
        return self.status == PAID

    @property
    def is_due(self) -> bool:
        """The experiment was ordered, and its invoice is not paid or will come."""
        return self.experiment_id is not None and self.status not in {PAID, WITHDRAWN}


def orders_of(store: Store, prefix: str, campaign_id: str) -> tuple[dict[str, OrderFacts], tuple[str, ...]]:
    """The orders of a campaign by order key, and a note for each log that cannot be read."""
    found: dict[str, OrderFacts] = {}
    notes = []
    for book in _logs(store, prefix, campaign_id):
        try:
            facts = _facts(book.order_key, book.read())
        except ArchiveUnavailable:
            raise
        except (ArchiveError, ConfigurationError):
            notes.append(
                f"The log of order {book.order_key} cannot be read, so its price and payment are not shown. "
                "`prefect-assay archive verify` says what is damaged"
            )
            continue
        if book.order_key not in found or facts.experiment_id:
            found[book.order_key] = facts
    return found, tuple(notes)


def _logs(store: Store, prefix: str, campaign_id: str) -> Iterator[OrderBook]:
    root = join_key(safe_prefix(prefix), BOOKS_FOLDER)
    if store.find(join_key(root, ARCHIVE_NAME)) is None:
        return  # reading a log would make another id
    for books in Books.every(store, prefix):
        folder = join_key(books.folder, safe_name(campaign_id))
        keys = {key.removeprefix(f"{folder}/").partition("/")[0] for key in store.keys(folder)}
        for order_key in sorted(keys):
            yield books.order(campaign_id, order_key)


def _facts(order_key: str, state: OrderState) -> OrderFacts:
    payment, settled, approved = state.payment, state.settled, state.approved
    rail = payment.rail if payment else state.rail
    return OrderFacts(
        order_key=order_key,
        experiment_id=state.ordered.experiment_id if state.ordered else None,
        status=_status(state),
        amount_cents=state.amount_cents,
        approved_by=approved.approver if approved else None,
        ordered_at=state.ordered.at if state.ordered else None,
        paid_at=settled.at if settled else None,
        rail=RAILS.get(rail, str(rail)) if rail else None,
        invoice_id=state.invoice_id,
        receipt=(settled and settled.receipt) or (payment and payment.receipt) or {},
        remark=(settled and settled.remark) or (payment and payment.remark) or None,
        surplus=state.surplus,
    )


def _status(state: OrderState) -> str:
    match state:
        case Paid():
            return PAID
        case PaymentSent() | PaymentInDoubt():
            return "payment sent, outcome unknown"
        case PaymentRefused():
            return "payment refused, nothing paid"
        case Unpaid() | NotOrdered() if state.withdrawn:
            return WITHDRAWN
        case Unpaid():
            return "ordered, not recorded as paid"
        case NotOrdered() | NotBegun():
            return "not ordered"
        case _:
            assert_never(state)
