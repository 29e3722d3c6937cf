"""The ledgers of one service account in one archive, that of one order in them, and the order's payments.

Layout: `<prefix>/LEDGERS/<log>/<campaign>/<order key>/000001.json` and `<prefix>/LEDGERS/<log>/BUDGET/`. Which log belongs
to a service's address is recorded at its first use (`identity`).
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import cached_property
from typing import Final, assert_never
from uuid import uuid4

from pydantic import TypeAdapter, ValidationError

from prefect_assay.archive.formats import RECORD_FORMAT, refuse_newer
from prefect_assay.archive.layout import (
    LEDGERS_FOLDER,
    NO_LEDGERS,
    safe_name,
    safe_prefix,
)
from prefect_assay.archive.store import Store, join_key
from prefect_assay.errors import (
    ArchiveError,
    AssayError,
    DecisionNeeded,
    OrderNotVisible,
    OrderStopped,
    PaymentOutcomeUnknown,
)
from prefect_assay.orders.job import PaymentState
from prefect_assay.orders.ledger.agreement import contradicting_orders, find_contradiction, make_reservation
from prefect_assay.orders.ledger.archive_identity import Bound, Identity
from prefect_assay.orders.ledger.budget import Budget, Reservation
from prefect_assay.orders.ledger.log import (
    ACTIONS,
    Delivered,
    InDoubt,
    Invoiced,
    Log,
    NotSettled,
    Ordered,
    OrderRecord,
    Partial,
    Paying,
    Planned,
    Reopened,
    Settled,
    Stopped,
)
from prefect_assay.orders.ledger.state import NotBegun, OrderState
from prefect_assay.orders.payments.interfaces import (
    CLOCKS_DIFFER,
    AttemptEnd,
    LedgerEntry,
    PaymentAttempt,
    RollingCap,
)
from prefect_assay.service.models.base import StoredModel

_RECORDS: Final[TypeAdapter[OrderRecord]] = TypeAdapter(OrderRecord)
_BUDGET: Final = "BUDGET"
ARCHIVE_NAME: Final = "ARCHIVE.json"


class _ArchiveIdentity(StoredModel):
    record_schema: int = RECORD_FORMAT
    archive_id: str


class OrderLedger:
    """The log of one order. `read` first; each action at the service follows a record of this run."""

    def __init__(
        self, ledgers: "Ledgers", campaign_id: str, order_key: str, *, folder: str | None = None
    ) -> None:
        self.ledgers = ledgers
        self.campaign_id = campaign_id
        self.order_key = order_key
        self.state: OrderState = NotBegun()
        self.actions: tuple[str, ...] = ()  # ids of the records that preceded an action
        where = join_key(ledgers.folder, folder or safe_name(campaign_id), order_key)
        self._log: Log[OrderRecord] = Log(ledgers.store, where, _RECORDS)

    @property
    def location(self) -> str:
        """The log's address, for people."""
        return self._log.store.location(self._log.folder)

    def read(self) -> OrderState:
        """The state after all records that exist now; ArchiveError for a damaged log or one of another archive."""
        state = self.state
        actions = self.actions
        for record in self.records(state.count + 1):
            state = state.next(record)
            actions = (*actions, record.id) if isinstance(record, ACTIONS) else actions
        self.state, self.actions = state, actions
        return state

    def records(self, first: int = 1) -> Iterator[OrderRecord]:
        """The records from a number on."""
        for record in self._log.read(first, all_of_it=first == 1):
            if isinstance(record, Planned) and record.archive_id != self.ledgers.archive_id:
                raise ArchiveError(
                    f"{self.location} was written in another archive; nothing is ordered or paid. Use the archive "
                    "in which the campaign was begun"
                )
            yield record

    def stop(self, person: str, how: str) -> None:
        """Record that a person has canceled the order, once; also before anything was sent. No action follows."""
        stopped = Stopped(person=person, how=how)
        self.record(lambda state: None if state.stopped else stopped)

    def reopen(self, person: str) -> None:
        """Record that a person has opened a stopped order again, or one that was refused before it was ordered."""
        reopened = Reopened(person=person)
        self.record(
            lambda state: reopened if state.stopped or (state.withdrawn and state.ordered is None) else None
        )

    def allow_retry(self, why: str) -> None:
        """Let an order that was refused before it was ordered be tried again, unless a person has canceled it."""
        again = Reopened(person=why)
        if not self.read().withdrawn:
            return  # such as an order whose log is empty, and stays so
        self.record(
            lambda state: (
                again if state.withdrawn and state.ordered is None and state.stopped is None else None
            )
        )

    def require_not_stopped(self) -> None:
        """Raise OrderStopped if a person has canceled the order by now.

        Asked where an action has consequences before its record is written; the record asks again.
        """
        self._refuse_if_stopped(self.read())

    def _refuse_if_stopped(self, state: OrderState) -> None:
        if state.stopped is not None:
            raise OrderStopped(
                f"order {self.order_key} of campaign {self.campaign_id} was canceled by {state.stopped.person} on "
                f"{state.stopped.at:%Y-%m-%d %H:%M} UTC ({state.stopped.how}), so nothing more is ordered, accepted or paid for "
                "it. To go on with it, start the campaign again with --reopen"
            )

    def see_partial(self, seen: datetime) -> None:
        """Record when the service's clock first showed partial results of the finished experiment, once."""
        partial = Partial(seen=seen)
        self.record(lambda state: None if state.partial or state.ordered is None else partial)

    def saw_invoice(self, invoice_id: str, amount_cents: int | None) -> None:
        """Record an unpaid invoice, once: the order may lose its runs before a person pays it."""
        seen = Invoiced(invoice_id=invoice_id, amount_cents=amount_cents)

        def decide(state: OrderState) -> Invoiced | None:
            before = state.invoiced
            same = before and (before.invoice_id, before.amount_cents) == (invoice_id, amount_cents)
            return None if state.settled or same or state.ordered is None else seen

        self.record(decide)

    def reserve_billed(self, cents: int) -> None:
        """Count what an invoice bills against the caps of later orders; no cap stops what is billed already.

        A quote that a person has accepted on its page was never reserved.
        """
        known = self.ledgers.budget.read().reservations.get(self.order_key)
        planned = self.read().planned
        if known is None and self.actions:
            return  # the budget has lost this order: `require_agreement` asks about it
        if cents > (known.cents if known else 0):
            # A log that was listed has the name of its folder.
            campaign_id = planned.campaign_id if planned else self.campaign_id
            self.ledgers.budget.reserve(self.order_key, campaign_id, cents)

    def deliver(self, experiment_code: str) -> None:
        """Record that all results are archived, once."""
        self.record(lambda state: None if state.delivered else Delivered(experiment_code=experiment_code))

    def require_only_log(self) -> None:
        """Raise OrderNotVisible if the order is in another log of this archive, where it is or may be placed.

        Asked before an experiment is created or adopted, and before money is committed to it.
        """
        for ledgers in Ledgers.list_all(self.ledgers.store, self.ledgers.prefix):
            ledger = ledgers.open_order(self.campaign_id, self.order_key)
            if ledgers.folder != self.ledgers.folder and ledger.read().placed:
                raise OrderNotVisible(
                    f"order {self.order_key} is in another log of this archive, {ledger.location}: for another "
                    "organization, or under another address of the service; nothing is ordered or paid again. Put the "
                    "earlier token and address back into the credentials block and run it again"
                )

    def require_agreement(self) -> None:
        """Compare the order's log with the budget, before money moves: one of them may come from an older backup.

        Raises:
            PaymentOutcomeUnknown: the log has lost a payment that the budget knows; nothing is paid.
            DecisionNeeded: they contradict each other otherwise; a person decides, and `accept_records` records it.
        """
        contradiction = find_contradiction(self)
        if contradiction is None:
            return
        question, is_payment = contradiction
        if is_payment:
            raise PaymentOutcomeUnknown(
                f"{question.text} No other payment is sent; restore the archive, or pay the invoice at its page"
            )
        raise DecisionNeeded(question)

    def accept_records(self) -> None:
        """Write the budget again from the logs, as a person has decided after comparing them with the service."""
        known = self.ledgers.budget.read().reservations
        for ledger in contradicting_orders(self):
            new = make_reservation(ledger)
            had = known.get(ledger.order_key)  # what a log has lost still counts against the caps
            self.ledgers.budget.restore(had.model_copy(update={"action": new.action}) if had else new)

    def record(self, decide: Callable[[OrderState], OrderRecord | None]) -> OrderRecord | None:
        """Append the record that `decide` makes of the state, or nothing when it makes None.

        Another writer's record leads to another decision, so the result is this call's own record or None.

        Raises:
            OrderStopped: the record precedes an action, and a person has canceled the order; nothing was recorded.
        """
        state = self.state if self.state.count else self.read()  # if it is old, its next number is taken
        while True:
            record = decide(state) if state.planned else self._make_plan()
            try:
                following = None if record is None else self._apply_record(state, record)
            except AssayError:
                seen, state = state, self.read()
                if state is seen:
                    raise
                continue
            if record is not None and following is not None:
                read_back = isinstance(record, (*ACTIONS, Ordered, Stopped))
                if self._log.append(state.count + 1, record, read_back=read_back):
                    state = self.state = following
                    if isinstance(record, Planned):
                        continue
                    if isinstance(record, ACTIONS):
                        self.actions = (*self.actions, record.id)
                        self.ledgers.budget.note_action(self.order_key, self.campaign_id, record.id)
                    return record
            seen, state = state, self.read()
            if record is None and state is seen:
                return None

    def _apply_record(self, state: OrderState, record: OrderRecord) -> OrderState:
        """The state after the record; an error for what is never written: it contradicts the log, or the order is stopped."""
        if isinstance(record, ACTIONS):
            self._refuse_if_stopped(state)
        return state.next(record)

    def _make_plan(self) -> Planned:
        return Planned(archive_id=self.ledgers.archive_id, campaign_id=self.campaign_id)


class Ledgers:
    """All logs of one organization, the `account`, in one archive.

    `open` finds the account that a service's address has in an archive.
    """

    @classmethod
    def list_all(cls, store: Store, prefix: str) -> "list[Ledgers]":
        """The ledgers of every organization in an archive."""
        root = join_key(safe_prefix(prefix), LEDGERS_FOLDER)
        names = sorted(name for name in store.folders(root) if name not in NO_LEDGERS)
        return [cls(store, prefix, name, log=name) for name in names]

    @classmethod
    def open(
        cls,
        store: Store,
        prefix: str,
        service: str,
        organisation: str | None,
        organisation_name: str | None = None,
    ) -> "Ledgers":
        """The ledgers of a service's address, with the organization that the service names, or None if it names none.

        Raises:
            OtherOrganization: the address was first used for another organization.
        """
        account = organisation or service
        identity = Identity(store, join_key(safe_prefix(prefix), LEDGERS_FOLDER))
        # Read again: another first user may have recorded it, and begun its log.
        if not identity.read() and cls.list_all(store, prefix) and not identity.read():
            raise ArchiveError(
                f"{identity.location} is missing, which says whose logs {store.location(prefix)} has; nothing is ordered or "
                "paid. Restore it from a backup of the archive"
            )
        bound = identity.bind_address(service, organisation, _hash_text(account), organisation_name)
        return cls(
            store,
            prefix,
            account,
            log=bound.log,
            organisation=bound.organisation,
            organisation_name=organisation_name or bound.organisation_name,
        )

    @classmethod
    def find_recorded(cls, store: Store, prefix: str, service: str) -> "Ledgers | None":
        """The ledgers of a service's address as its first use recorded them; None before that."""
        bound = Identity(store, join_key(safe_prefix(prefix), LEDGERS_FOLDER)).find_recorded(service)
        if bound is None:
            return None
        account = bound.organisation or service
        return cls(
            store,
            prefix,
            account,
            log=bound.log,
            organisation=bound.organisation,
            organisation_name=bound.organisation_name,
        )

    def __init__(
        self,
        store: Store,
        prefix: str,
        account: str,
        *,
        log: str | None = None,
        organisation: str | None = None,
        organisation_name: str | None = None,
    ) -> None:
        self.store = store
        self.prefix = prefix
        self._root = join_key(safe_prefix(prefix), LEDGERS_FOLDER)
        self.organisation = organisation  # its id; None if the service names none
        self.organisation_name = organisation_name  # for people only
        self.is_simulated: bool | None = None  # None: the service did not answer when the ledgers were opened
        self.log = log or _hash_text(account)
        self.folder = join_key(self._root, self.log)
        self.budget = Budget(store, join_key(self.folder, _BUDGET))

    def list_owners(self) -> list[Bound]:
        """What the archive has recorded of the services' addresses, oldest first."""
        return Identity(self.store, self._root).read()

    @cached_property
    def archive_id(self) -> str:
        """The archive's id, created at its first use."""
        key = join_key(self._root, ARCHIVE_NAME)
        body = self.store.find(key)
        if body is None:
            made = _ArchiveIdentity(archive_id=uuid4().hex)
            self.store.put_if_absent(key, made.model_dump_json().encode(), "application/json")
            body = self.store.read(key)
        return _archive_id(body, self.store.location(key))

    def derive_scope(self, base_url: str) -> str:
        """A digest that differs between services, logs and archives."""
        return _hash_text(json.dumps([base_url, self.log, self.archive_id]))

    def open_order(self, campaign_id: str, order_key: str) -> OrderLedger:
        """The log of one order."""
        return OrderLedger(self, campaign_id, order_key)

    def list_orders(self, campaign_id: str | None = None) -> Iterator[OrderLedger]:
        """The logs of all orders, or of a campaign's, for reports; a listing decides nothing."""
        seen = set()
        where = join_key(self.folder, safe_name(campaign_id)) if campaign_id else self.folder
        for key in self.store.keys(where):
            campaign, _, rest = key.removeprefix(f"{self.folder}/").partition("/")
            order_key = rest.partition("/")[0]
            if campaign != _BUDGET and (campaign, order_key) not in seen:
                seen.add((campaign, order_key))
                yield OrderLedger(self, campaign, order_key, folder=campaign)


def known_archive_id(store: Store, prefix: str) -> str | None:
    """The id of an archive; None for a folder that nothing was ordered in, which stays as it is."""
    key = join_key(safe_prefix(prefix), LEDGERS_FOLDER, ARCHIVE_NAME)
    body = store.find(key)
    return None if body is None else _archive_id(body, store.location(key))


def _archive_id(body: bytes, location: str) -> str:
    refuse_newer(body, location)
    try:
        return _ArchiveIdentity.model_validate_json(body).archive_id
    except ValidationError:
        raise ArchiveError(f"{location} is damaged; restore it from a backup") from None


def _hash_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class PaymentLedger:
    """The `Ledger` of one order, recorded in the order's log and the budget; see there."""

    def __init__(self, ledger: OrderLedger) -> None:
        self._ledger = ledger
        self._run = uuid4().hex
        self._counted: tuple[Reservation, ...] = ()  # before the time was asked for

    def get(self) -> LedgerEntry | None:
        """See `Ledger`."""
        self._counted = tuple(self._ledger.ledgers.budget.read().reservations.values())
        return self._ledger.read().payment

    def reserve(self, cents: int, cap: RollingCap) -> None:
        """See `Ledger`."""
        ledger = self._ledger
        ledger.require_not_stopped()  # before a token is issued
        ledger.require_only_log()
        ledger.require_agreement()
        ledger.ledgers.budget.redate_payments(self._counted, cap.at + 2 * CLOCKS_DIFFER)
        had = ledger.ledgers.budget.read().reservations.get(ledger.order_key)
        ledger.ledgers.budget.reserve(
            ledger.order_key,
            ledger.campaign_id,
            max(cents, had.cents if had else 0),
            campaign_cap_cents=cap.campaign_cents,
            rolling=cap,
            run=self._run,
        )

    def release(self) -> None:
        """See `Ledger`."""
        self._ledger.ledgers.budget.release(self._ledger.order_key, payment_only=True, run=self._run)

    def begin(self, attempt: PaymentAttempt, *, previous: LedgerEntry | None) -> LedgerEntry | None:
        """See `Ledger`; None when another run came first, the order is settled, or it is another experiment now.

        Raises:
            OrderStopped: a person has canceled the order.
        """

        def decide(state: OrderState) -> Paying | None:
            ordered = state.ordered and state.ordered.experiment_id
            changed = state.settled or _key_entry(state.payment) != _key_entry(previous)
            moved = attempt.experiment_id not in {None, ordered}
            return None if changed or moved else Paying(**attempt.attempt())

        try:
            written = self._ledger.record(decide)
        except OrderStopped:
            self.release()
            raise
        if written is None:
            self.release()
            return None
        return self._ledger.state.payment

    def record_outcome(self, entry: LedgerEntry, state: AttemptEnd, *, remark: str | None = None) -> bool:
        """Record that a payment's outcome is unknown, or that it failed and its reservation is released.

        False if nothing was recorded.
        """
        match state:
            case PaymentState.UNKNOWN:
                return self._record_end(entry, InDoubt(remark=remark))
            case PaymentState.FAILED:
                if entry.state is not PaymentState.SENT:
                    return False  # an unknown outcome stays unknown
                failed = self._record_end(entry, NotSettled(remark=remark))
                if failed:
                    self.release()
                return failed
            case _:
                assert_never(state)

    def _record_end(self, entry: LedgerEntry, end: InDoubt | NotSettled) -> bool:
        written = self._ledger.record(
            lambda now: None if now.settled or _key_entry(now.payment) != _key_entry(entry) else end
        )
        return written is not None

    def record_paid(
        self,
        invoice_id: str,
        amount_cents: int | None,
        *,
        receipt: dict[str, str] | None = None,
        remark: str | None = None,
    ) -> bool:
        """Record the settled invoice of the order, and release its payment's reservation if no payment has an unknown outcome.

        False if nothing was recorded.
        """
        in_doubt = False

        def make_settled_record(state: OrderState) -> Settled | None:
            nonlocal in_doubt
            in_doubt = state.payment is not None and state.payment.in_doubt
            if state.settled or state.ordered is None:
                return None
            return Settled(invoice_id=invoice_id, amount_cents=amount_cents, receipt=receipt, remark=remark)

        written = self._ledger.record(make_settled_record)
        if written and not in_doubt:
            self._ledger.ledgers.budget.release(self._ledger.order_key, payment_only=True)
        return written is not None


def _key_entry(entry: LedgerEntry | None) -> tuple[str, PaymentState] | None:
    return (entry.id, entry.state) if entry else None
