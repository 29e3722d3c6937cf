"""Compares the ledger of an order with the budget of its archive: one of them may come from an older backup.

Before each action, its record's id is noted in the budget. So a log that has lost the record, and a budget that has lost
the reservation, are both found out before more money moves.
"""

from typing import TYPE_CHECKING

from prefect_assay.orders.ledger.budget import Reservation
from prefect_assay.orders.question import REJECT, Question, QuestionKind
from prefect_assay.service.models.billing import usd

if TYPE_CHECKING:
    from prefect_assay.orders.ledger.order_ledger import OrderLedger


def find_contradiction(ledger: "OrderLedger") -> tuple[Question, bool] | None:
    """The question about records that contradict each other, and whether it is about a payment; None if they agree."""
    orders = contradicting_orders(ledger)
    if not orders:
        return None
    reservation = ledger.ledgers.budget.read().reservations.get(ledger.order_key)
    lost = reservation is not None and reservation.action not in {"", *ledger.actions}
    is_payment = (
        lost and reservation is not None and reservation.paid_at is not None and ledger.state.settled is None
    )
    facts = {f"order {one.order_key}": usd(make_reservation(one).cents) for one in orders}
    if reservation is not None:
        facts["reserved in the budget"] = usd(reservation.cents)
    which = "has lost records that its budget knows" if lost else "has orders that its budget does not know"
    return (
        Question.of(
            QuestionKind.LEDGER,
            subject=f"The archive {which}: order {ledger.order_key} of campaign {ledger.campaign_id}.",
            reason="A part of the archive probably comes from an older backup, so an order or a payment may be missing in it. "
            "Restore the newest backup, or compare the orders in the portal with these records before you continue.",
            facts=facts,
            choices={
                "continue": "the orders and payments in the logs are complete; the budget is made again from them",
                REJECT: "nothing is ordered, confirmed or paid",
            },
        ),
        is_payment,
    )


def contradicting_orders(ledger: "OrderLedger") -> tuple["OrderLedger", ...]:
    """The orders whose logs and the budget contradict each other.

    All of the order's campaign are compared, because they count against one cap, and every order if the budget is gone.
    """
    ledgers = ledger.ledgers
    ledger.read()
    state = ledgers.budget.read()
    reservation = state.reservations.get(ledger.order_key)
    if reservation is not None and reservation.action not in {"", *ledger.actions}:
        return (ledger,)
    lost = []
    for other in ledgers.list_orders(ledger.campaign_id if state.last else None):
        if other.order_key in state.reservations:
            continue  # a damaged log of another order stops only that order
        other.read()
        if other.actions and other.order_key not in ledgers.budget.read().reservations:
            lost.append(other)
    return tuple(lost)


def make_reservation(ledger: "OrderLedger") -> Reservation:
    """The reservation that an order's log asks for."""
    state = ledger.read()
    payment = state.payment
    paid = state.settled is not None or (payment is not None and payment.in_doubt)
    return Reservation(
        order_key=ledger.order_key,
        campaign_id=state.planned.campaign_id if state.planned else ledger.campaign_id,
        cents=(state.amount_cents or 0) if state.placed else 0,
        paid_at=payment.sent_at if payment is not None and paid else None,
        action=ledger.actions[-1] if ledger.actions else "",
    )
