"""What an experiment's status means for a run that waits for its results. Pure: no clock, no I/O, no Prefect."""

from dataclasses import dataclass
from datetime import datetime

from prefect_assay.models.vocabulary import ExperimentStatus, ResultsStatus


@dataclass(frozen=True)
class Ready:
    """All results are released."""


@dataclass(frozen=True)
class Partial:
    """Preliminary results can be fetched; the wait goes on."""


@dataclass(frozen=True)
class Failed:
    """The experiment will give no more results."""

    status: str


@dataclass(frozen=True)
class PastDeadline:
    """The deadline has passed and the results are not complete."""


@dataclass(frozen=True)
class Wait:
    """Nothing to do yet."""


Decision = Ready | Partial | Failed | PastDeadline | Wait


def decide(status: str, results_status: str, now: datetime, deadline: datetime) -> Decision:
    """Decide from the service's words (contract 3); an unknown status means "not yet".

    Complete results win over the deadline, and the deadline wins over preliminary ones.
    """
    if status == ExperimentStatus.DONE and results_status == ResultsStatus.ALL:
        return Ready()
    if status == ExperimentStatus.CANCELED:
        return Failed(status)
    if now >= deadline:
        return PastDeadline()
    if results_status in {ResultsStatus.PARTIAL, ResultsStatus.ALL}:
        # `all` before Done is not final: InReview is the validation before release (contract 3).
        return Partial()
    return Wait()
