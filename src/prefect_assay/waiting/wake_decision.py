"""Whether a suspended run is worth waking, by what the service says of its experiment. Pure: no clock, no I/O.

A wake-up costs a process and seconds of CPU, and of an experiment's dozen updates two or three let its run go on.
The same `decide` that the run itself asks is asked here, so that a run which would go on is never left asleep;
where this module does not know what a run waits for, the run is woken and knows it itself.
"""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from prefect_assay.models.experiment import ExperimentSummary
from prefect_assay.models.vocabulary import ExperimentStatus
from prefect_assay.waiting.decide import Partial, Wait, decide


class WaitsFor(StrEnum):
    """What a run waits for: the first word of its suspension's key."""

    QUOTE = "quote"
    RESULTS = "results"
    MORE_RESULTS = "partial"  # the preliminary ones are archived


# With these a run that waits for a quote, or for something this version does not know, may go on.
_SETTLED: Final = frozenset(
    {ExperimentStatus.DONE, ExperimentStatus.CANCELED, ExperimentStatus.QUOTE_SENT, ExperimentStatus.DRAFT}
)


def waits_for(pause_key: str | None) -> str:
    """What a suspended run waits for, by its suspension's key; an unknown word where another version wrote it."""
    return (pause_key or "").partition("-")[0]


def is_worth_waking(
    kind: str, found: ExperimentSummary, *, patience: timedelta, now: datetime, news: bool
) -> bool:
    """Whether the run may go on.

    Args:
        kind: what it waits for, from `waits_for`.
        found: its experiment as the service lists it.
        patience: the run's own deadline, counted from the experiment's creation.
        now: the present, with a time zone.
        news: the service has published something about the experiment since it was last looked at.
    """
    decision = decide(found.status, found.results_status, now, found.created_at + patience)
    if kind == WaitsFor.RESULTS:
        return not isinstance(decision, Wait)
    if kind == WaitsFor.MORE_RESULTS:
        # The same preliminary results again are no reason; changed ones are told in an update.
        return not isinstance(decision, Wait) and (news or not isinstance(decision, Partial))
    if kind == WaitsFor.QUOTE:
        # Few updates come before the quote, and an invoice may: each is worth a look.
        known = isinstance(found.status, ExperimentStatus)
        return news or (known and found.status != ExperimentStatus.WAITING_FOR_CONFIRMATION)
    return news or found.status in _SETTLED or now >= found.created_at + patience
