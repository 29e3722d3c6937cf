"""What a run that waits does about trouble that passes: it goes on waiting, and is looked at again soon.

A service, a network or a store that is away must not end a run that has waited for ten days. Such a run suspends
with a tag that counts how often in a row it could not look; the sweep wakes it after a pause that grows with it.
It must not know what the run was doing.
"""

import re
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterTags
from prefect.client.schemas.objects import FlowRun, StateType

from prefect_assay.errors import AssayError, BlockMissing, UnexpectedAnswer
from prefect_assay.runs.queries import (
    AGAIN_TAG,
    ASKS_TAG,
    EXPERIMENT_TAG,
    WAITS_TAG,
    drop_tags,
    in_state,
    set_tag,
    tag_values,
)

TIMES_MAX: Final = 5  # further ones count as the fifth
AGAIN_KEY: Final = "again-"  # begins the suspension's key of a run that looks again, in its history
_BLOCK: Final = re.compile(rf"{AGAIN_KEY}block-(?P<parameter>\w+)=(?P<block>[^:]+):")
_FIRST: Final = timedelta(minutes=5)
# The sweep comes every five minutes and some seconds; without it every second pause would be twice as long.
_EARLY: Final = timedelta(minutes=1)


def is_passing(error: BaseException) -> bool:
    """Whether the same step may succeed later without anybody changing anything.

    An answer that is no answer (a maintenance page with status 200) is among them.
    """
    return isinstance(error, UnexpectedAnswer) or (isinstance(error, AssayError) and error.retriable)


def was_suspended(tags: Iterable[str]) -> bool:
    """Whether a run with these tags has been suspended: by then it waits, and trouble that passes must not end it."""
    return any(tag.startswith((AGAIN_TAG, ASKS_TAG, EXPERIMENT_TAG, WAITS_TAG)) for tag in tags)


def note_trouble(run_id: UUID) -> None:
    """Mark a run as one that could not look: the sweep wakes it soon, whether there is news or not."""
    with get_client(sync_client=True) as client:
        times = times_in_a_row(client.read_flow_run(run_id))
    set_tag(run_id, AGAIN_TAG, str(min(times + 1, TIMES_MAX)))


def clear_marks(run: FlowRun) -> None:
    """Take the marks from a run that has looked and goes on waiting; most runs have none, which costs nothing."""
    if any(tag.startswith((AGAIN_TAG, ASKS_TAG)) for tag in run.tags):
        drop_tags(run.id, (AGAIN_TAG, ASKS_TAG))


def times_in_a_row(run: FlowRun) -> int:
    """How often in a row a run could not look; 0 for one without trouble, and for a mark nobody can read."""
    for value in tag_values(run, AGAIN_TAG):
        with suppress(ValueError):
            return int(value)
    return 0


def pause_after(times: int) -> timedelta:
    """How long a run is left asleep: 5, 10, 20, 40 and then 60 minutes."""
    return min(_FIRST * (1 << min(max(times, 1), TIMES_MAX) - 1), timedelta(hours=1))


def is_due(run: FlowRun, now: datetime) -> bool:
    """Whether a marked, suspended run that asks nobody should look again.

    One that bears the mark of a question only could not be marked: without trouble it would have lost that one.
    """
    pause = pause_after(max(times_in_a_row(run), 1))
    return run.state is not None and now >= run.state.timestamp + pause - _EARLY


def again_key(error: AssayError, step: str) -> str:
    """The suspension's key of a run that looks again: it names the step, or the block that the run waits for."""
    if isinstance(error, BlockMissing):
        return f"{AGAIN_KEY}block-{error.parameter}={error.block}"
    return f"{AGAIN_KEY}{step}"


def missing_block(run: FlowRun) -> tuple[str, str] | None:
    """The parameter and the block, as `type/name`, that a suspended run waits for; None if it waits for none."""
    found = _BLOCK.match(str(run.state.state_details.pause_key)) if run.state else None
    return (found["parameter"], found["block"]) if found else None


def could_not_be_marked(run: FlowRun) -> bool:
    """Whether a suspended run is to look again, and has no mark that says so."""
    key = str(run.state.state_details.pause_key) if run.state else ""
    return key.startswith(AGAIN_KEY) and not tag_values(run, AGAIN_TAG)


def marked_filter() -> FlowRunFilter:
    """Suspended runs that ask a person or could not look."""
    tags = [ASKS_TAG, *(f"{AGAIN_TAG}{times}" for times in range(1, TIMES_MAX + 1))]
    return FlowRunFilter(tags=FlowRunFilterTags(any_=tags), state=in_state(StateType.PAUSED))
