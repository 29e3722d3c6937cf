"""Decides what an experiment's status means for a run that waits, and whether to wake the run.

Pure: no clock, no I/O, no Prefect. A run and the sweep decide by the same `decide`, so that a run which would go on is
never left suspended.
"""

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final, assert_never

from prefect_assay.orders.job import OutcomeKind
from prefect_assay.service.models.experiment import ExperimentSummary
from prefect_assay.service.models.vocabulary import ExperimentStatus, ResultsStatus

PARTIAL_WAIT: Final = timedelta(days=7)  # for the rest of results that are released as partial


class NotYet(StrEnum):
    """The wait goes on."""

    NOTHING = "nothing"
    PARTIAL = "partial"  # preliminary results can be fetched


Decision = OutcomeKind | NotYet


def decide_wait(status: str, results_status: str, now: datetime, deadline: datetime) -> Decision:
    """Decide from the service's words (contract 3); an unknown status means "not yet".

    Complete results win over the deadline, and the deadline wins over preliminary ones.
    """
    if status == ExperimentStatus.DONE and results_status == ResultsStatus.ALL:
        return OutcomeKind.DONE
    if status == ExperimentStatus.CANCELED:
        return OutcomeKind.CANCELED
    if now >= deadline:
        return OutcomeKind.OVERDUE
    unknown = results_status not in {"", *ResultsStatus}
    if results_status in {ResultsStatus.PARTIAL, ResultsStatus.ALL} or (
        status == ExperimentStatus.DONE and unknown
    ):
        # `all` before Done is not final: InReview is the validation before release (contract 3). Nor is an unknown word.
        return NotYet.PARTIAL
    return NotYet.NOTHING


def deadline_of(created: datetime, patience: timedelta) -> datetime:
    """When an experiment is overdue; the last moment there is for a time too late to count from."""
    try:
        return created + patience
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)


class WaitsFor(StrEnum):
    """What a run waits for: the first word of its suspension key. Suspended runs depend on these texts."""

    QUOTE = "quote"
    RESULTS = "results"
    MORE_RESULTS = "partial"  # the preliminary ones are archived
    CHILDREN = "children"
    APPROVAL = "approve"
    PAYMENT_ANSWER = "doubt"  # a person's answer about an uncertain payment
    DESIGNS = "designs"  # a loop: the next design file
    DESIGNER = "designer"  # a loop: the run of its designer
    RETRY = "again"  # the next attempt after a temporary failure, or a block that was deleted


# With these statuses a run that waits for a quote, or for a reason unknown to this version, may go on.
_SETTLED: Final = frozenset(
    {ExperimentStatus.DONE, ExperimentStatus.CANCELED, ExperimentStatus.QUOTE_SENT, ExperimentStatus.DRAFT}
)


def waits_for(suspension_key: str | None) -> WaitsFor | None:
    """Read what a run waits for from its suspension key; None for a word of another version and for other pauses."""
    word = (suspension_key or "").partition("-")[0]
    return WaitsFor(word) if word in set(WaitsFor) else None


def is_worth_waking(
    kind: WaitsFor | None,
    found: ExperimentSummary,
    *,
    patience: timedelta,
    now: datetime,
    news: bool,
    since: datetime | None = None,
) -> bool:
    """Decide whether a run may go on, by its experiment as the service lists it.

    `patience` is the deadline, counted from the experiment's creation; `news`: it has updates since the last look; `since`:
    when the run was suspended.
    """
    decision = decide_wait(found.status, found.results_status, now, deadline_of(found.created_at, patience))
    match kind:
        case WaitsFor.RESULTS:
            return decision is not NotYet.NOTHING
        case WaitsFor.MORE_RESULTS:
            # The same preliminary results are not a reason to wake; changed ones come with an update.
            over = found.status == ExperimentStatus.DONE and since is not None and now >= since + PARTIAL_WAIT
            return decision is not NotYet.NOTHING and (news or over or decision is not NotYet.PARTIAL)
        case WaitsFor.QUOTE:
            # Few updates come before the quote, and an invoice may: each is worth a look.
            known = isinstance(found.status, ExperimentStatus)
            return news or (known and found.status != ExperimentStatus.WAITING_FOR_CONFIRMATION)
        case (
            WaitsFor.CHILDREN
            | WaitsFor.APPROVAL
            | WaitsFor.PAYMENT_ANSWER
            | WaitsFor.DESIGNS
            | WaitsFor.DESIGNER
            | WaitsFor.RETRY
            | None
        ):
            return news or found.status in _SETTLED or now >= deadline_of(found.created_at, patience)
        case _:
            assert_never(kind)
