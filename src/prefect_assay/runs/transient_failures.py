"""Failures that may pass: the retry policies of tasks, and the tag with which a suspended run counts its attempts.

See docs/waiting.md. Every task reads the service first, so each may run twice and needs no cache.
"""

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import httpx
from prefect.cache_policies import NO_CACHE
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter
from prefect.client.schemas.objects import FlowRun, State, TaskRun
from prefect.tasks import Task

from prefect_assay.errors import (
    AccessError,
    ArchiveError,
    AssayError,
    BlockMissing,
    BlockUnfit,
    ConfigurationError,
    NotFound,
    OrderOutcomeUnknown,
    TransientError,
    UnexpectedAnswer,
)
from prefect_assay.runs.queries import suspended_filter
from prefect_assay.runs.states import suspension_key
from prefect_assay.runs.tags import (
    ASKS_TAG,
    EXPERIMENT_TAG,
    LOOPS_TAG,
    ORDER_TAG,
    RETRY_TAG,
    WAITS_TAG,
    drop_tags,
    set_tag,
    tag_values,
)
from prefect_assay.waiting.decide import WaitsFor

BUSY: Final = frozenset({408, 429})
RETRIES_MAX: Final = 5  # a higher count is stored as this one
RETRY_KEY: Final = f"{WaitsFor.RETRY}-"

_BLOCK: Final = re.compile(rf"{RETRY_KEY}(?P<why>block|unfit)-(?P<parameter>\w+)=(?P<block>[^:]+):")
_FIRST: Final = timedelta(minutes=5)
# The sweep runs every five minutes and some seconds; without this margin every second pause would be doubled.
_EARLY: Final = timedelta(minutes=1)


def is_temporary(error: BaseException) -> bool:
    """Return True if the same step may succeed later; a maintenance page with status 200 counts, too."""
    return isinstance(error, UnexpectedAnswer) or (isinstance(error, AssayError) and error.retriable)


def is_mendable(error: BaseException, tags: Iterable[str]) -> bool:
    """Return True if the step of a run that has ordered may succeed once what was there before is there again.

    That is an access, an archive, a block, a file or a disk; the run has these tags. What its experiment came to stays.
    """
    if isinstance(error, OrderOutcomeUnknown):  # the experiment is known, and these credentials do not see it
        return bool(tag_values(tags, EXPERIMENT_TAG))
    return is_temporary(error) or isinstance(
        error, AccessError | NotFound | ArchiveError | ConfigurationError | OSError
    )


def is_busy(error: BaseException | None) -> bool:
    """Return True if Prefect answered that it cannot serve the request now."""
    return isinstance(error, httpx.HTTPStatusError) and (
        error.response.is_server_error or error.response.status_code in BUSY
    )


def is_away(error: BaseException | None) -> bool:
    """Return True if Prefect is busy or did not answer."""
    return is_busy(error) or isinstance(error, httpx.TransportError)


def was_suspended(tags: Iterable[str]) -> bool:
    """Return True if a run with these tags was suspended or has ordered: a temporary failure must not end it."""
    return any(tag.startswith((RETRY_TAG, ASKS_TAG, EXPERIMENT_TAG, ORDER_TAG, WAITS_TAG)) for tag in tags)


def mark_retry(run_id: UUID) -> None:
    """Count a failed attempt in the run's tag; the sweep then wakes the run soon, with or without updates."""
    with get_client(sync_client=True) as client:
        retries = retry_count(client.read_flow_run(run_id))
    set_tag(run_id, RETRY_TAG, str(min(retries + 1, RETRIES_MAX)))


def clear_marks(run: FlowRun) -> None:
    """Remove the retry and question tags of a run that waits normally again; most runs have none."""
    if is_marked(run):
        drop_tags(run.id, (RETRY_TAG, ASKS_TAG))


def retry_count(run: FlowRun) -> int:
    """Return the failed attempts in a row; 0 without a tag or with an unreadable one."""
    for value in tag_values(run.tags, RETRY_TAG):
        with suppress(ValueError):
            return int(value)
    return 0


def pause_after(retries: int) -> timedelta:
    """Return the pause before the next attempt: 5, 10, 20, 40, then 60 minutes."""
    return min(_FIRST * (1 << min(max(retries, 1), RETRIES_MAX) - 1), timedelta(hours=1))


def is_due(run: FlowRun, now: datetime) -> bool:
    """Return True if a marked, suspended run without an open question should try again."""
    pause = pause_after(retry_count(run))
    return run.state is not None and now >= run.state.timestamp + pause - _EARLY


def retry_key(error: AssayError, step: str) -> str:
    """Return the suspension key of a run that tries again: it names the step, or the block that it needs."""
    if isinstance(error, BlockMissing):
        why = "unfit" if isinstance(error, BlockUnfit) else "block"
        return f"{RETRY_KEY}{why}-{error.parameter}={error.block}"
    return f"{RETRY_KEY}{step}"


@dataclass(frozen=True)
class NeededBlock:
    """The block, as `type/name`, that a suspended run waits for: a missing one, or another than the one that is saved."""

    parameter: str
    block: str
    missing: bool

    @property
    def fault(self) -> str:
        """What is wrong with it, for people."""
        return "which was deleted or is not valid" if self.missing else "which it cannot go on with as it is"


def needed_block(run: FlowRun) -> NeededBlock | None:
    """Return the block that a suspended run waits for; None for other waits."""
    found = _BLOCK.match(suspension_key(run))
    return NeededBlock(found["parameter"], found["block"], found["why"] == "block") if found else None


def lacks_retry_mark(run: FlowRun) -> bool:
    """Return True if a suspended run is to try again but could not be tagged."""
    return suspension_key(run).startswith(RETRY_KEY) and not tag_values(run.tags, RETRY_TAG)


def marked_filter() -> FlowRunFilter:
    """Build a filter for suspended runs that ask a person or try again, and for suspended loops."""
    retries = (f"{RETRY_TAG}{count}" for count in range(1, RETRIES_MAX + 1))
    return suspended_filter(any_tags=[ASKS_TAG, LOOPS_TAG, *retries])


def is_marked(run: FlowRun) -> bool:
    """Return True if a run has the tag of a question or of a failed attempt."""
    return any(tag.startswith((RETRY_TAG, ASKS_TAG)) for tag in run.tags)


def is_transient(task: Task[..., Any], task_run: TaskRun, state: State[Any]) -> bool:
    """Return True if the task failed with a `TransientError`; a wrong token or a bad sequence stays wrong."""
    del task, task_run
    try:
        state.result()
    except TransientError:
        return True
    except Exception:  # noqa: BLE001 - any other failure ends the task
        return False
    return False


# Reads may be repeated at will; the client has retried for some seconds already.
READ: Final[dict[str, Any]] = {
    "retries": 3,
    "retry_delay_seconds": [5, 20, 60],
    "retry_condition_fn": is_transient,
    "cache_policy": NO_CACHE,
    "persist_result": False,
}

# Prefect repeats nothing that may have taken effect already.
ONCE: Final[dict[str, Any]] = {
    "retries": 0,
    "retry_delay_seconds": 0,
    "cache_policy": NO_CACHE,
    "persist_result": False,
}
