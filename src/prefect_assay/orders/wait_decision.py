"""Decides what an experiment's status means for a run that waits. Pure: no clock, no I/O, no Prefect."""

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final

from prefect_assay.orders.job import OutcomeKind
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
