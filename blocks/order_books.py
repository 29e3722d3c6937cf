"""Open the books of a run: the log of its service account in its archive.

Earlier versions kept orders and payments in Prefect variables. Those of an order are imported once, when its log is
created; their reservations once, when the archive's budget is created.
"""

import json
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final, assert_never

from prefect.client.orchestration import SyncPrefectClient, get_client

from prefect_assay.blocks import Archive, AssayCredentials
from prefect_assay.books import Books, OrderBook, OrderLedger, OrderState
from prefect_assay.books.budget import Reservation
from prefect_assay.books.log import (
    Approved,
    InDoubt,
    NotSettled,
    Paying,
    Sending,
    Settled,
)
from prefect_assay.client import AssayClient
from prefect_assay.errors import NotFound, ServiceUnavailable
from prefect_assay.models.job import OrderRoute, PaymentState
from prefect_assay.models.vocabulary import PaymentMethod
from prefect_assay.payments.interfaces import RollingCap, address
from prefect_assay.runs.variables import read_variables

_ORDERS: Final = "assay_order_"
_PAYMENTS: Final = "assay_payment_"

_Imported = Approved | Sending | Paying | Settled | NotSettled | InDoubt


def open_books(credentials: AssayCredentials, archive: Archive) -> Books:
    """The books of the organisation behind the token, in this archive.

    Raises:
        AccessError: the token may not say whose it is.
        ServiceUnavailable: the answer is not the service's; try again later.
        ArchiveError: the archive cannot be used.
    """
    with credentials.get_client() as client:
        account = _account(client)
    base_url = address(credentials.base_url)
    return Books(archive.get_store(), archive.prefix, account, lambda: _reservations(base_url))


def _account(client: AssayClient) -> str:
    """The organisation's id, which does not depend on the service's address; else the address.

    An answer that is not the service's decides nothing: in other books, an order that was sent or paid is unknown.
    """
    try:
        identity = client.whoami()
    except NotFound as absent:  # contract: not shown, so a service need not have it
        if not absent.genuine:
            raise ServiceUnavailable(
                f"{absent.message} The order's log is that of the token's organisation, so this waits for an answer of the "
                "service",
                status_code=absent.status_code,
            ) from None
        return address(client.base_url)
    active = [o.id for o in identity.organizations if o.active] or [o.id for o in identity.organizations]
    account = identity.active_organization_id or next(iter(active), None)
    if account is None and identity.user_id is None:
        raise ServiceUnavailable(
            "GET /whoami: the answer names neither a user nor an organisation, so it is not the service's"
        )
    return account or address(client.base_url)


def import_variables(book: OrderBook, base_url: str, invoice_id: str | None = None) -> None:
    """Import an earlier version's records of this order into its log; with the invoice's id, also its payment."""
    where = address(base_url)
    with get_client(sync_client=True) as client:
        state = book.read()
        if state.ordered is None and not state.attempts:
            intent = _value(client, _intent_name(book.campaign_id, where) + book.order_key)
            for record in _of_intent(intent) if intent else ():
                _import(book, [record])
        if invoice_id is not None and book.state.payment is None and book.state.settled is None:
            payment = _value(client, _PAYMENTS + _payment_key(where, invoice_id))
            if payment and payment["sent_at"]:  # an intended payment was never sent
                _import(book, _of_payment(payment))
                if payment["state"] != PaymentState.FAILED:
                    _count_once(book, payment)


def _import(book: OrderBook, records: Iterable[_Imported]) -> None:
    """Write the records in turn, up to the first that the log does not need."""
    for record in records:
        own = book.record(lambda state, new=record: new if _is_missing(state, new) else None)  # type: ignore[misc]
        if own is None:
            return


def _count_once(book: OrderBook, entry: dict[str, Any]) -> None:
    """Count the payment with its order; the budget imported it by its invoice."""
    everything = RollingCap(max_cents=sys.maxsize, since=datetime.now(UTC))
    OrderLedger(book).reserve(entry["amount_cents"], everything)
    book.books.budget.release(_reserved_as(entry))


def _is_missing(state: OrderState, record: _Imported) -> bool:
    match record:
        case Sending():
            return state.ordered is None and not state.attempts
        case Approved():
            return state.approved is None
        case Paying():
            return state.ordered is not None and state.payment is None and state.settled is None
        case Settled() | NotSettled() | InDoubt():
            return state.payment is not None and state.payment.state is PaymentState.SENT
        case never:
            assert_never(never)


def _of_intent(intent: dict[str, Any]) -> Iterator[_Imported]:
    if intent["amount_cents"]:
        yield Approved(amount_cents=intent["amount_cents"], approver="an earlier version")
    if intent["sent_at"]:
        # With an amount the create may have accepted its quote; the rail was not recorded.
        route = OrderRoute.SELF_SERVICE if intent["amount_cents"] else OrderRoute.QUOTED
        yield Sending(attempt=1, route=route, rail=PaymentMethod.ASYNC_INVOICE, at=intent["sent_at"])


def _of_payment(entry: dict[str, Any]) -> Iterator[_Imported]:
    yield Paying.model_validate(
        {**entry, "experiment_id": None, "id": entry["claim_id"], "at": entry["sent_at"]}
    )
    match PaymentState(entry["state"]):
        case PaymentState.SETTLED:
            yield Settled(
                invoice_id=entry["invoice_id"], amount_cents=entry["amount_cents"], receipt=entry["receipt"]
            )
        case PaymentState.FAILED:
            yield NotSettled(remark=entry["remark"])
        case PaymentState.INTENDED | PaymentState.SENT | PaymentState.UNKNOWN:
            yield InDoubt(remark=entry["remark"])
        case never:
            assert_never(never)


def _reservations(base_url: str) -> Iterator[Reservation]:
    """The reservations of an earlier version's orders and machine payments, on the current Prefect server."""
    with get_client(sync_client=True) as client:
        for name, intent in _values(client, _ORDERS):
            if name.startswith(_intent_name(intent["campaign_id"], base_url)):
                yield Reservation(
                    order_key=intent["order_key"],
                    campaign_id=intent["campaign_id"],
                    cents=intent["amount_cents"],
                )
        for _, entry in _values(client, _PAYMENTS):
            sent = entry["sent_at"] and entry["state"] != PaymentState.FAILED
            if entry["base_url"] == base_url and sent:
                yield Reservation(
                    order_key=_reserved_as(entry),
                    campaign_id=None,
                    cents=entry["amount_cents"],
                    paid_at=entry["recorded_at"],
                )


def _reserved_as(entry: dict[str, Any]) -> str:
    return f"invoice-{entry['invoice_id']}"


def _intent_name(campaign_id: str, base_url: str) -> str:
    digest = sha256(f"{len(campaign_id)}:{campaign_id}{base_url}".encode()).hexdigest()[:16]
    return f"{_ORDERS}{digest}_"


def _payment_key(base_url: str, invoice_id: str) -> str:
    return sha256(f"{len(base_url)}:{base_url}{invoice_id}".encode()).hexdigest()[:40]


def _value(client: SyncPrefectClient, name: str) -> dict[str, Any] | None:
    variable = client.read_variable_by_name(name)
    return None if variable is None else dict(json.loads(str(variable.value)))


def _values(client: SyncPrefectClient, prefix: str) -> Iterator[tuple[str, dict[str, Any]]]:
    return ((name, json.loads(text)) for name, text in read_variables(client, prefix))
