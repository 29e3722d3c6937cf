"""The open money of an archive, from the logs of its orders: to be paid, to be billed, or to be decided.

An order is in the list until its log says that it came to nothing, or that it is paid and its results are archived.
The state of its runs does not count, nor whether they were deleted. `orders.open_money` adds what the service shows.
Amounts are US cents without VAT.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from enum import StrEnum
from typing import Final, assert_never

from pydantic import AwareDatetime

from prefect_assay.errors import ArchiveError, ArchiveUnavailable, ConfigurationError
from prefect_assay.orders.ledger.order_ledger import Ledgers, OrderLedger
from prefect_assay.orders.ledger.state import (
    NotBegun,
    NotOrdered,
    OrderState,
    Paid,
    PaymentInDoubt,
    PaymentRefused,
    PaymentSent,
    Unpaid,
)
from prefect_assay.service.models.base import StoredModel
from prefect_assay.service.models.billing import usd

_READERS: Final = 16  # logs are read at once: each record is a request where the archive is a bucket


class OpenKind(StrEnum):
    """Why money is open. The values are labels of a metric, so they never change."""

    TO_PAY = "to_pay"
    TO_DELIVER = "to_deliver"
    QUOTE = "quote"
    TO_REFUND = "to_refund"
    TO_VOID = "to_void"
    UNSURE = "unsure"


WORDS: Final = {
    OpenKind.TO_PAY: "ordered, not paid",
    OpenKind.TO_DELIVER: "paid, not delivered",
    OpenKind.QUOTE: "quote waits",
    OpenKind.TO_REFUND: "canceled and paid",
    OpenKind.TO_VOID: "billed, must not be paid",
    OpenKind.UNSURE: "outcome unknown",
}


class OpenItem(StoredModel):
    """One sum. `amount_cents` is in US cents without VAT; None is not known yet. `url` is where a person acts on it.

    `surplus` if it is an experiment that was made in addition to the order's own.
    """

    kind: OpenKind
    campaign_id: str
    order_key: str
    experiment_id: str | None = None
    experiment_code: str | None = None
    amount_cents: int | None = None
    since: AwareDatetime
    until: AwareDatetime | None = None  # when a quote expires
    url: str | None = None
    remark: str | None = None  # what else is known, and what to do
    surplus: bool = False

    @property
    def name(self) -> str:
        """The experiment's code or id, or the order's key."""
        return self.experiment_code or self.experiment_id or f"order {self.order_key}"


class OpenMoney(StoredModel):
    """A list of open sums. `notes` say what could not be read; without `complete` items may be missing."""

    items: tuple[OpenItem, ...] = ()
    notes: tuple[str, ...] = ()
    complete: bool = True
    paid: dict[str, int] = {}  # noqa: RUF012 - pydantic copies it; what was paid by campaign, in US cents

    def sum_cents(self, kind: OpenKind) -> int:
        """The sum of a kind, as far as its amounts are known."""
        return sum(item.amount_cents or 0 for item in self.items if item.kind is kind)

    def select_campaigns(self, campaigns: Iterable[str]) -> "OpenMoney":
        """The part of some campaigns."""
        campaign_ids = set(campaigns)
        items = tuple(item for item in self.items if item.campaign_id in campaign_ids)
        paid = {name: cents for name, cents in self.paid.items() if name in campaign_ids}
        return self.model_copy(update={"items": items, "paid": paid})

    @property
    def line(self) -> str:
        """All sums in one line; empty if nothing is open."""
        return "; ".join(self._format_sums())

    def _format_sums(self) -> Iterator[str]:
        for kind, words in WORDS.items():
            kind_items = [item for item in self.items if item.kind is kind]
            if not kind_items:
                continue
            vague = sum(1 for item in kind_items if item.amount_cents is None)
            if vague == len(kind_items):
                yield f"{vague} {words}"
            else:
                more = f" and {vague} without an amount" if vague else ""
                yield f"{usd(self.sum_cents(kind))}{more} {words}"


def merge_open_money(parts: Iterable[OpenMoney]) -> OpenMoney:
    """Several lists as one, the oldest first."""
    parts = list(parts)
    items = sorted((item for part in parts for item in part.items), key=lambda item: item.since)
    paid: Counter[str] = Counter()
    for part in parts:
        paid.update(part.paid)
    return OpenMoney(
        items=tuple(items),
        notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
        complete=all(part.complete for part in parts),
        paid=dict(paid),
    )


def read_logs(ledgers: Ledgers, campaign_id: str | None = None) -> tuple[list[OrderLedger], tuple[str, ...]]:
    """The logs of all orders, or of a campaign's, each read to its end, and a note for each that is damaged."""
    with ThreadPoolExecutor(_READERS) as pool:
        outcomes = list(pool.map(_read_order, ledgers.list_orders(campaign_id)))
    return [one for one in outcomes if isinstance(one, OrderLedger)], tuple(
        n for n in outcomes if isinstance(n, str)
    )


def _read_order(ledger: OrderLedger) -> OrderLedger | str:
    try:
        ledger.read()
    except ArchiveUnavailable:
        raise
    except (ArchiveError, ConfigurationError):
        return (
            f"the log of order {ledger.order_key} of campaign {ledger.campaign_id} cannot be read, so its money is not "
            "listed: prefect-assay archive verify says what is damaged"
        )
    return ledger


def of_logs(logs: Sequence[OrderLedger], notes: tuple[str, ...] = ()) -> OpenMoney:
    """The same, of logs that are read."""
    return OpenMoney(
        items=tuple(item for log in logs if (item := item_of(log))),
        notes=notes,
        complete=not notes,
        paid=paid_by_campaign(logs),
    )


def paid_by_campaign(logs: Iterable[OrderLedger]) -> dict[str, int]:
    """What was paid for the orders of each campaign, by their logs, in US cents."""
    paid: Counter[str] = Counter()
    for log in logs:
        if log.state.planned and log.state.settled:
            paid[log.state.planned.campaign_id] += log.state.amount_cents or 0
    return dict(paid)


def is_closed(state: OrderState) -> bool:
    """Return True if nothing can come of the order any more: it is paid, and its results are archived."""
    return isinstance(state, Paid) and state.delivered is not None and not state.surplus


def item_of(ledger: OrderLedger) -> OpenItem | None:  # noqa: PLR0911, C901 - one answer per state
    """What is open of an order by its log alone; None for nothing."""
    state = ledger.state
    match state:
        case NotBegun():
            return None
        case NotOrdered():
            if not state.open_attempts:
                return None
            remark = (
                "an order was sent, and its answer was lost: start the campaign again, which looks for it"
            )
            return _make_item(ledger, OpenKind.UNSURE, state.open_attempts[-1].at, remark)
        case Paid():
            if state.delivered is not None:
                return None
            return _make_item(ledger, OpenKind.TO_DELIVER, state.settled.at)
        case PaymentSent() | PaymentInDoubt():
            return _make_item(
                ledger, OpenKind.TO_PAY, state.payment.sent_at, "a payment was sent, and may have been made"
            )
        case PaymentRefused():
            return _make_item(ledger, OpenKind.TO_PAY, state.ordered.at, "its payment was refused")
        case Unpaid() if state.withdrawn:
            return None
        case Unpaid() if state.is_accepted:
            return _make_item(
                ledger, OpenKind.TO_PAY, state.invoiced.at if state.invoiced else state.ordered.at
            )
        case Unpaid():
            return _make_item(ledger, OpenKind.QUOTE, state.ordered.at)
        case _:
            assert_never(state)


def describe_status(state: OrderState) -> str:  # noqa: PLR0911 - one answer per state
    """Where an order stands by its log, in the words of the list of open money."""
    match state:
        case Paid():
            return "paid"
        case PaymentSent() | PaymentInDoubt():
            return "payment sent, outcome unknown"
        case PaymentRefused():
            return "payment refused, not paid"
        case Unpaid() | NotOrdered() if state.withdrawn:
            return "quote came to nothing"
        case Unpaid():
            return WORDS[OpenKind.TO_PAY if state.is_accepted else OpenKind.QUOTE]
        case NotOrdered() if state.open_attempts:
            return f"order sent, {WORDS[OpenKind.UNSURE]}"
        case NotOrdered() | NotBegun():
            return "not ordered"
        case _:
            assert_never(state)


def _make_item(ledger: OrderLedger, kind: OpenKind, since: datetime, remark: str | None = None) -> OpenItem:
    state = ledger.state
    return OpenItem(
        kind=kind,
        campaign_id=state.planned.campaign_id if state.planned else ledger.campaign_id,
        order_key=ledger.order_key,
        experiment_id=state.ordered.experiment_id if state.ordered else None,
        experiment_code=state.delivered.experiment_code if state.delivered else None,
        amount_cents=state.amount_cents,
        since=since,
        remark=remark,
    )
