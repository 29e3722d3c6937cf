"""The state of an order: one class per state, and `next` for the state after one more record. Pure.

`OrderState` is the union of the states. They share all fields, so that `state.ordered` can be read in any state, and
each narrows the fields that it guarantees. A record that contradicts those before it is an ArchiveError, and so is an
action after `stopped`.

    NotBegun -> NotOrdered -> Unpaid -> PaymentSent -> PaymentInDoubt -> Paid
                                |            v  ^                         ^
                                |       PaymentRefused ------------------+
                                +-----------------------------------------+  paid by other means
"""

from typing import Any, Self, TypeVar, assert_never

from pydantic import BaseModel

from prefect_assay.errors import ArchiveError
from prefect_assay.orders.job import OrderRoute, PaymentState
from prefect_assay.orders.ledger.log import (
    Accepted,
    Approved,
    Confirming,
    Delivered,
    InDoubt,
    Invoiced,
    Named,
    NotSettled,
    Ordered,
    OrderRecord,
    Partial,
    Paying,
    Planned,
    Refused,
    Reopened,
    Sending,
    Settled,
    Stopped,
    Surplus,
    Withdrawn,
)
from prefect_assay.orders.payments.interfaces import LedgerEntry
from prefect_assay.service.models.vocabulary import PaymentMethod

S = TypeVar("S", bound="_State")


class _State(BaseModel, frozen=True, extra="forbid"):
    """What the log of an order holds."""

    planned: Planned | None
    ordered: Ordered | None
    payment: LedgerEntry | None
    settled: Settled | None
    count: int = 0  # of records
    open_attempts: tuple[Sending, ...] = ()  # creates that were sent and neither refused nor answered
    attempts: int = 0  # creates that were sent, refused ones included
    refused: int = 0  # those of them that were refused
    rail: PaymentMethod | None = None  # of the last create
    named: tuple[str, ...] = ()  # experiments that answers to the order's creates have named
    surplus: tuple[str, ...] = ()  # other experiments with the order's key
    others: tuple[str, ...] = ()  # experiments with the key that are not the order's, as a person has said
    approved: Approved | None = None
    approved_before: Approved | None = None  # what the last approval has replaced
    accepted: Accepted | None = None  # the last acceptance that answered an own request
    confirmed: bool = False  # a quote was confirmed, or was about to be
    is_confirmation_answered: bool = False  # with success; the quote may still read as open
    route: OrderRoute | None = None  # of the last create
    invoiced: Invoiced | None = None  # the invoice, as last seen
    partial: Partial | None = None  # a part of the results was released when the experiment was finished
    delivered: Delivered | None = None  # all results are in the archive
    stopped: Stopped | None = None  # a person has canceled the order, and nobody has opened it again
    withdrawn: bool = False  # the quote came to nothing, and only notes have followed

    @property
    def committed(self) -> bool:
        """Money may depend on the recorded experiment, so the order cannot move to another one."""
        return self.confirmed or self.payment is not None or self.settled is not None

    @property
    def placed(self) -> bool:
        """The service has the order, or may have it: an unanswered create may be one. A withdrawn order is not."""
        return bool(self.open_attempts) or (self.ordered is not None and not self.withdrawn)

    @property
    def is_accepted(self) -> bool:
        """The order is accepted: by its create, by a confirmed quote, or because its invoice was seen."""
        if self.ordered is None or self.withdrawn:
            return False
        at_once = self.route is OrderRoute.SELF_SERVICE and not self.ordered.adopted
        return at_once or self.committed or self.invoiced is not None

    @property
    def amount_cents(self) -> int | None:
        """What was paid, is billed or is to be paid, or else what was approved, without VAT; None is unknown."""
        records = (self.settled, self.payment, self.invoiced, self.approved)
        return next((one.amount_cents for one in records if one and one.amount_cents is not None), None)

    @property
    def invoice_id(self) -> str | None:
        """The invoice that was paid, or else the one of the last payment, or the one that was seen."""
        records = (self.settled, self.payment, self.invoiced)
        return next((one.invoice_id for one in records if one and one.invoice_id), None)

    def _move_to(self, state: type[S], **changes: Any) -> S:
        """The state after a record that moves the order."""
        return state(**{**dict(self), "count": self.count + 1, "withdrawn": False, **changes})

    def tied_invoice(self, page: str | None = None) -> str | None:
        """The id of the invoice that is certainly the recorded experiment's; None if that is not certain.

        It answered the order's own request, and there was no other one and no other experiment with the key; or the
        experiment shows the same hosted page, whose digest is given. Where both show a page and these differ, the
        answer is about another invoice.
        """
        answer = self.accepted
        if self.ordered is None or answer is None:
            return None
        if None not in {page, answer.page} and page != answer.page:
            return None
        same_experiment = answer.experiment_id == self.ordered.experiment_id
        only = answer.experiment_id is None and not self.surplus and self.attempts - self.refused == 1
        return (
            answer.invoice_id
            if same_experiment or only or (page is not None and page == answer.page)
            else None
        )

    def _keep_state(
        self,
        record: Approved | Accepted | Named | Surplus | Partial | Delivered | Stopped | Reopened,
    ) -> Self:
        """The same state, after a record that leaves the order where it was."""
        match record:
            case Approved():
                noted: dict[str, object] = {"approved": record, "approved_before": self.approved}
            case Accepted():  # also of the create
                noted = {"accepted": record, "is_confirmation_answered": self.confirmed}
            case Partial() | Delivered() | Stopped():
                noted = {record.kind: record}  # the field has the name of the kind
            case Named():
                noted = {"named": (*self.named, record.experiment_id)}
            case Surplus() if not record.kept:
                noted = {"others": (*self.others, record.experiment_id)}
            case Surplus():
                noted = {"surplus": (*self.surplus, record.experiment_id)}
            case Reopened():
                noted = {"stopped": None, "withdrawn": self.withdrawn and self.ordered is not None}
            case _:
                assert_never(record)
        return self.model_copy(update={"count": self.count + 1, **noted})

    def _describe_contradiction(self, record: OrderRecord) -> ArchiveError:
        return ArchiveError(
            f"record {self.count + 1} of an order's log, `{record.kind}` by {record.by}, contradicts the records "
            "before it; nothing is ordered or paid. Restore the log from a backup of the archive"
        )


class NotBegun(_State, frozen=True):
    """The log is empty."""

    planned: None = None
    ordered: None = None
    payment: None = None
    settled: None = None

    def next(self, record: OrderRecord) -> "OrderState":
        """The state after one more record, which must be the plan; ArchiveError when it contradicts the log."""
        if isinstance(record, Planned):
            return self._move_to(NotOrdered, planned=record)
        raise self._describe_contradiction(record)


class NotOrdered(_State, frozen=True):
    """No experiment of the order is known; creates may be under way."""

    planned: Planned
    ordered: None
    payment: None
    settled: None

    def next(self, record: OrderRecord) -> "OrderState":
        """See `NotBegun`."""
        match record:
            case Sending() if record.attempt == self.attempts + 1 and not self.stopped:
                sent = (*self.open_attempts, record)
                changes = {"attempts": record.attempt, "rail": record.rail, "route": record.route}
                return self._move_to(NotOrdered, open_attempts=sent, **changes)
            case Refused() if record.attempt in {sent.attempt for sent in self.open_attempts}:
                left = tuple(sent for sent in self.open_attempts if sent.attempt != record.attempt)
                return self._move_to(NotOrdered, open_attempts=left, refused=self.refused + 1)
            case Ordered():
                return self._move_to(Unpaid, ordered=record, open_attempts=())
            case Withdrawn():
                return self._move_to(NotOrdered, withdrawn=True)
            case Surplus() | Approved() | Accepted() | Named() | Stopped() | Reopened():
                return self._keep_state(record)
            case Planned() | Sending() | Refused() | Confirming() | Paying() | InDoubt() | NotSettled():
                raise self._describe_contradiction(record)
            case Settled() | Invoiced() | Partial() | Delivered():
                raise self._describe_contradiction(record)
            case _:
                assert_never(record)


class _Placed(_State, frozen=True):
    """The experiment of the order is known."""

    planned: Planned
    ordered: Ordered

    def _apply_shared_rules(self, record: OrderRecord) -> "Self | Paid":
        """The next state by the rules that all states with an experiment share."""
        match record:
            case Approved() | Accepted() | Named() | Partial() | Delivered():
                return self._keep_state(record)
            case Stopped() | Reopened():
                return self._keep_state(record)
            case Invoiced():
                return self._move_to(type(self), invoiced=record)
            case Surplus() if record.experiment_id != self.ordered.experiment_id:
                return self._keep_state(record)
            case Confirming() if not self.stopped:
                return self._move_to(type(self), confirmed=True, is_confirmation_answered=False)
            case Settled():
                return self._mark_paid(record)
            case Planned() | Sending() | Refused() | Ordered() | Surplus() | Withdrawn():
                raise self._describe_contradiction(record)
            case Confirming() | Paying() | InDoubt() | NotSettled():
                raise self._describe_contradiction(record)
            case _:
                assert_never(record)

    def _is_payment_of(self, record: Paying) -> bool:
        return record.experiment_id in {None, self.ordered.experiment_id} and not self.stopped

    def _begin_payment(self, record: Paying) -> "PaymentSent":
        sent = LedgerEntry(**record.attempt(), id=record.id, state=PaymentState.SENT, sent_at=record.at)
        return self._move_to(PaymentSent, payment=sent)

    def _mark_paid(self, record: Settled) -> "Paid":
        payment = self.payment and _update_payment(
            self.payment, PaymentState.SETTLED, record.remark, record.receipt
        )
        return self._move_to(Paid, settled=record, payment=payment)


class Unpaid(_Placed, frozen=True):
    """The order is an experiment, and no payment of it was sent."""

    payment: None
    settled: None

    def next(self, record: OrderRecord) -> "OrderState":
        """See `NotBegun`."""
        match record:
            case Paying() if self._is_payment_of(record):
                return self._begin_payment(record)
            case Withdrawn():
                return self._move_to(Unpaid, confirmed=False, is_confirmation_answered=False, withdrawn=True)
            case Surplus() if self._may_move_to(record):
                # What was read or answered about the other experiment says nothing about the older one.
                less = {"accepted": None, "invoiced": None, "partial": None}
                older = {"ordered": self._move_to_older(record), **less}
                return self._keep_state(record).model_copy(update=older)
            case _:
                return self._apply_shared_rules(record)

    def _may_move_to(self, record: Surplus) -> bool:
        """An older experiment has come to light, and nothing is committed to the present one."""
        moved = record.experiment_id == self.ordered.experiment_id != record.kept
        return moved and not self.committed

    def _move_to_older(self, record: Surplus) -> Ordered:
        return self.ordered.model_copy(
            update={"experiment_id": record.kept, "invoice_id": None, "adopted": True}
        )


class _InPayment(_Placed, frozen=True):
    """A credential was sent, and the invoice is not known to be paid."""

    payment: LedgerEntry
    settled: None

    def _mark_unknown(self, payment: LedgerEntry, remark: str | None) -> "PaymentInDoubt":
        return self._move_to(PaymentInDoubt, payment=_update_payment(payment, PaymentState.UNKNOWN, remark))

    def _apply_while_unknown(self, record: OrderRecord) -> "Self | PaymentInDoubt | Paid":
        """The next state while the credential may have moved money."""
        match record:
            case Paying() if self._is_payment_of(record):
                # An unknown outcome stays unknown: no later answer can prove that the first sending moved nothing.
                return self._mark_unknown(self._begin_payment(record).payment, self.payment.remark)
            case InDoubt():
                return self._mark_unknown(self.payment, record.remark)
            case _:
                return self._apply_shared_rules(record)


class PaymentSent(_InPayment, frozen=True):
    """One credential has left; its outcome is not recorded."""

    def next(self, record: OrderRecord) -> "OrderState":
        """See `NotBegun`."""
        if isinstance(record, NotSettled):
            refused = _update_payment(self.payment, PaymentState.FAILED, record.remark)
            return self._move_to(PaymentRefused, payment=refused)
        return self._apply_while_unknown(record)


class PaymentInDoubt(_InPayment, frozen=True):
    """A credential may have moved money. No refusal ends that, only the paid invoice does."""

    def next(self, record: OrderRecord) -> "OrderState":
        """See `NotBegun`."""
        return self._apply_while_unknown(record)


class PaymentRefused(_InPayment, frozen=True):
    """The last payment was refused for certain and moved nothing."""

    def next(self, record: OrderRecord) -> "OrderState":
        """See `NotBegun`."""
        if isinstance(record, Paying) and self._is_payment_of(record):
            return self._begin_payment(record)
        return self._apply_shared_rules(record)


class Paid(_Placed, frozen=True):
    """The invoice is paid, by the last payment or, without one, by other means."""

    settled: Settled

    def next(self, record: OrderRecord) -> "OrderState":
        """See `NotBegun`."""
        if isinstance(record, Settled):
            raise self._describe_contradiction(record)
        return self._apply_shared_rules(record)


def _update_payment(
    payment: LedgerEntry, state: PaymentState, remark: str | None, receipt: dict[str, str] | None = None
) -> LedgerEntry:
    changes = {"state": state, "remark": remark or payment.remark, "receipt": receipt}
    return payment.model_copy(update=changes)


OrderState = NotBegun | NotOrdered | Unpaid | PaymentSent | PaymentInDoubt | PaymentRefused | Paid
