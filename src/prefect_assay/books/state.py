"""The state of an order: a fold over its records. Pure; a record that contradicts those before it is an error."""

from typing import Final, assert_never

from prefect_assay.books.records import (
    Approved,
    Confirming,
    InDoubt,
    NotSettled,
    Ordered,
    OrderRecord,
    Paying,
    Planned,
    Refused,
    Sending,
    Settled,
    Surplus,
    Withdrawn,
)
from prefect_assay.errors import ArchiveError
from prefect_assay.models.base import Model
from prefect_assay.models.job import PaymentState
from prefect_assay.models.vocabulary import PaymentMethod
from prefect_assay.payments.ledger import LedgerEntry

# The stage an order has reached: the last record that moves it. `Surplus` and `Approved` move nothing.
Stage = (
    Planned
    | Sending
    | Refused
    | Ordered
    | Confirming
    | Paying
    | InDoubt
    | NotSettled
    | Settled
    | Withdrawn
    | None
)
_UNSETTLED: Final = frozenset({PaymentState.SENT, PaymentState.UNKNOWN})


class OrderState(Model):
    """What the log of an order says.

    Attributes:
        count: number of records.
        stage: the last record that moved the order; None for an empty log.
        planned: the first record.
        open_attempts: creates that were sent and neither refused nor answered.
        attempts: creates that were sent, refused ones included.
        rail: the payment method of the last create.
        ordered: the experiment of this order; its id is the order from then on, whatever its name becomes.
        surplus: other experiments that carry the order's key.
        approved: what the order may cost, by the last approval.
        confirmed: a quote was confirmed, or was about to be.
        payment: the last payment attempt and how it stands.
        settled: the invoice is paid.
    """

    count: int = 0
    stage: Stage = None
    planned: Planned | None = None
    open_attempts: tuple[Sending, ...] = ()
    attempts: int = 0
    rail: PaymentMethod | None = None
    ordered: Ordered | None = None
    surplus: tuple[str, ...] = ()
    approved: Approved | None = None
    confirmed: bool = False
    payment: LedgerEntry | None = None
    settled: Settled | None = None

    @property
    def committed(self) -> bool:
        """Money may depend on the recorded experiment, so the order cannot move to another one."""
        return self.confirmed or self.payment is not None or self.settled is not None


def next_state(state: OrderState, record: OrderRecord) -> OrderState:  # noqa: C901, PLR0912 - one case per kind
    """The state after one more record.

    Raises:
        ArchiveError: the record contradicts the log.
    """
    changes: dict[str, object] = {"count": state.count + 1}
    stands = state.payment.state if state.payment else None
    _check((state.planned is None) == isinstance(record, Planned), state, record)
    match record:
        case Planned():
            changes |= {"planned": record}
        case Sending():
            _check(state.ordered is None and record.attempt == state.attempts + 1, state, record)
            sent = (*state.open_attempts, record)
            changes |= {"open_attempts": sent, "attempts": state.attempts + 1, "rail": record.rail}
        case Refused():
            left = tuple(sent for sent in state.open_attempts if sent.attempt != record.attempt)
            _check(len(left) < len(state.open_attempts), state, record)
            changes |= {"open_attempts": left}
        case Ordered():
            _check(state.ordered is None, state, record)
            changes |= {"ordered": record, "open_attempts": ()}
        case Surplus():
            changes |= {"surplus": (*state.surplus, record.experiment_id), **_moved(state, record)}
        case Approved():
            changes |= {"approved": record}
        case Confirming():
            _check(state.ordered is not None, state, record)
            changes |= {"confirmed": True}
        case Paying():
            mine = state.ordered and record.experiment_id in {None, state.ordered.experiment_id}
            _check(bool(mine) and state.settled is None, state, record)
            changes |= {"payment": _entry(record, state.payment)}
        case InDoubt():
            _check(stands in _UNSETTLED, state, record)
            changes |= _payment(state, record, PaymentState.UNKNOWN)
        case NotSettled():
            _check(stands is PaymentState.SENT, state, record)  # what is in doubt stays so
            changes |= _payment(state, record, PaymentState.FAILED)
        case Settled():
            _check(state.settled is None and state.ordered is not None, state, record)
            changes |= {"settled": record}
            if state.payment is not None:
                changes |= _payment(state, record, PaymentState.SETTLED)
        case Withdrawn():
            _check(state.settled is None and state.payment is None, state, record)
            changes |= {"confirmed": False}
        case _:
            assert_never(record)
    # The surplus of a create that came late, or an approval, leaves the order where it was.
    if not isinstance(record, Surplus | Approved):
        changes["stage"] = record
    return state.model_copy(update=changes)


def _moved(state: OrderState, record: Surplus) -> dict[str, object]:
    ordered = state.ordered
    if ordered is None or ordered.experiment_id != record.experiment_id:
        return {}
    _check(not state.committed and record.kept != record.experiment_id, state, record)
    return {
        "ordered": ordered.model_copy(
            update={"experiment_id": record.kept, "invoice_id": None, "adopted": True}
        )
    }


def _entry(record: Paying, before: LedgerEntry | None) -> LedgerEntry:
    # What is in doubt stays so: no later answer can prove that the first sending moved nothing.
    doubtful = before is not None and before.state in _UNSETTLED
    return LedgerEntry(
        **record.attempt(),
        id=record.id,
        state=PaymentState.UNKNOWN if doubtful else PaymentState.SENT,
        sent_at=record.at,
        remark=before.remark if before and doubtful else None,
    )


def _payment(
    state: OrderState, record: InDoubt | NotSettled | Settled, became: PaymentState
) -> dict[str, object]:
    payment = state.payment
    changes: dict[str, object] = {"state": became, "remark": record.remark or (payment and payment.remark)}
    if isinstance(record, Settled):
        changes["receipt"] = record.receipt
    return {"payment": payment.model_copy(update=changes) if payment else None}


def _check(holds: bool, state: OrderState, record: OrderRecord) -> None:  # noqa: FBT001 - an assertion
    if not holds:
        raise ArchiveError(
            f"record {state.count + 1} of an order's log, `{record.kind}` by {record.by}, contradicts the records "
            "before it; nothing is ordered or paid. Restore the log from a backup of the archive"
        )
