"""What the ledger forbids as the next action of an order, stated apart from `next_action`."""

from prefect_assay.orders.job import OrderRoute
from prefect_assay.orders.next_action import (
    Approve,
    ConfirmQuote,
    Create,
    End,
    NotePartial,
    Pay,
    RejectQuote,
    Retrieve,
    Wait,
)
from prefect_assay.orders.stages import OVER


def find_violation(state, seen, action) -> str | None:
    """Why the action must not follow in this state; None if it may."""
    acts = isinstance(action, Create | ConfirmQuote | RejectQuote | Approve) or (
        isinstance(action, Pay) and action.limit_cents
    )
    approved_cents = state.approved.amount_cents if state.approved else None
    rules = {
        "a stopped or delivered order acts": acts and (state.stopped or state.delivered),
        "an order that was withdrawn before it was placed acts": acts
        and state.withdrawn
        and not state.ordered,
        "End is not the end": isinstance(action, End) and action.stage not in OVER,
        "Wait is the end": isinstance(action, Wait) and action.stage in OVER,
    }
    match action:
        case Create():
            costs = action.route is OrderRoute.SELF_SERVICE
            rules["it is ordered, or was not searched for"] = state.ordered or not seen.searched
            rules["its price is not approved"] = costs and (approved_cents or 0) < action.amount_cents
            rules["a quote has a price"] = not costs and action.amount_cents
        case ConfirmQuote():
            answered = state.confirmed and state.accepted
            rules["it is not ordered, or is paid"] = state.ordered is None or state.settled or state.payment
            rules["it was sent, and answered or not"] = seen.confirmed or answered
            rules["older experiments were not searched for"] = not seen.checked_again
            rules["its price is not approved"] = (approved_cents or 0) < action.amount_cents
        case Pay() if action.limit_cents:
            rules["it is not ordered, or is paid"] = state.ordered is None or state.settled
            rules["another amount was approved"] = approved_cents != action.limit_cents
            rules["the open amount was not read"] = seen.due_cents != action.limit_cents
        case Retrieve() | NotePartial():
            rules["it is not ordered"] = state.ordered is None
    return next((rule for rule, is_broken in rules.items() if is_broken), None)
