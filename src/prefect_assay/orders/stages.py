"""Where an order is, in words for people, and which stages are the end of it."""

from collections.abc import Collection
from enum import StrEnum
from typing import Final

from prefect_assay.orders.ledger import OrderState


class Stage(StrEnum):
    """Where an order is. The stages from `MEASURED` on are in `OVER`."""

    NOT_ORDERED = "not ordered yet"
    ASKS = "waits for your decision"
    ORDERED = "ordered, not shown by the service yet"
    QUOTE = "waits for its quote"
    PAYMENT = "waits for its payment"
    LABORATORY = "in the laboratory"
    PARTLY_MEASURED = "partly measured"
    OVERDUE = "overdue, looked at daily"
    MEASURED = "measured"
    INCOMPLETE = "measured in part, and the rest was not released"
    UNREAD = "archived, and not readable"
    CANCELED = "canceled by the laboratory"
    NO_QUOTE = "ended without an accepted quote"
    REFUSED = "not ordered"
    STOPPED = "canceled"  # by a person, whom the campaign names


OVER: Final = frozenset(
    {
        Stage.MEASURED,
        Stage.INCOMPLETE,
        Stage.UNREAD,
        Stage.CANCELED,
        Stage.NO_QUOTE,
        Stage.REFUSED,
        Stage.STOPPED,
    }
)


def stage_of(state: OrderState, *, asks: bool = False) -> Stage:  # noqa: PLR0911 - one return per case
    """The stage by the ledger alone, for views that ask no service; `asks` if a question about the order is open."""
    if state.delivered is not None:
        return Stage.MEASURED
    if state.stopped is not None:
        return Stage.STOPPED
    if asks:
        return Stage.ASKS
    if state.withdrawn:
        return Stage.REFUSED if state.ordered is None else Stage.NO_QUOTE
    if state.ordered is None:
        return Stage.NOT_ORDERED
    if state.partial is not None:
        return Stage.PARTLY_MEASURED
    if state.settled is not None:
        return Stage.LABORATORY
    return Stage.PAYMENT if state.is_accepted else Stage.QUOTE


def count_stages(stages: Collection[Stage]) -> str:
    """One line such as `3 in the laboratory, 1 measured`, in the order of the stages."""
    listed = list(stages)
    return ", ".join(f"{listed.count(stage)} {stage}" for stage in Stage if stage in listed)
