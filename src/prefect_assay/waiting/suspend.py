"""`wait_until`: the one primitive that waits. Level-triggered, so that no wake-up has to arrive exactly once.

Check, suspend with a fresh key, check again, and close the race by resuming oneself: if the thing waited for
happens between the first check and the suspension, its wake-up finds a run that is not suspended yet and does
nothing; the second check sees it.

It must not know what is waited for: `ready` is the only thing it calls.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar
from uuid import uuid4

from prefect.client.orchestration import get_client
from prefect.context import FlowRunContext
from prefect.exceptions import Pause
from prefect.flow_runs import suspend_flow_run
from prefect.logging import get_run_logger

from prefect_assay.errors import Overdue, TransientError
from prefect_assay.waiting.runs import resume

T = TypeVar("T")


@dataclass(frozen=True)
class PollPolicy:
    """How a run that cannot suspend polls: exponential back-off with jitter, in seconds."""

    first_seconds: float = 2.0
    factor: float = 1.5
    longest_seconds: float = 300.0
    jitter: float = 0.2

    def pause(self, attempt: int) -> float:
        """Seconds to sleep after the given attempt, counted from 0."""
        # Beyond 60 steps the power would overflow; the cap is reached long before.
        seconds = min(self.first_seconds * self.factor ** min(attempt, 60), self.longest_seconds)
        return seconds * random.uniform(1 - self.jitter, 1 + self.jitter)  # noqa: S311 - spreads load, no secret


def can_suspend() -> bool:
    """True inside a deployed, top-level flow run: only there does Prefect allow a suspension."""
    context = FlowRunContext.get()
    return bool(
        context
        and context.flow_run
        and context.flow_run.deployment_id
        and not context.flow_run.parent_task_run_id
    )


def wait_until(
    ready: Callable[[], T | None],
    *,
    key: str,
    timeout: timedelta,
    poll: PollPolicy | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> T:
    """Return `ready()`'s value as soon as it is not None.

    A deployed run does not return: it leaves its process and runs again from the top when it is woken, and
    then its check at this point succeeds. Anything else polls in its process.

    Args:
        ready: the check; harmless to call at any time. A `TransientError` from it means "not yet".
        key: what is waited for, for the run's history; made unique, because a key that fired once would let
            the run pass.
        timeout: how long to wait at most.
        poll: back-off of a run that cannot suspend.
        sleep: how to pass the time between polls.

    Raises:
        Overdue: a polling run reached the timeout.
    """
    value = _checked(ready)
    if value is not None:
        return value
    if can_suspend():
        return _suspend(ready, key, timeout)
    return _poll(ready, key, timeout, poll or PollPolicy(), sleep)


def _checked(ready: Callable[[], T | None]) -> T | None:
    """One check. A service that is away for a moment must not end a wait of days."""
    try:
        return ready()
    except TransientError as error:
        get_run_logger().warning("Could not check, will check again: %s", error)
        return None


def _suspend(ready: Callable[[], T | None], key: str, timeout: timedelta) -> T:
    context = FlowRunContext.get()
    assert context is not None  # noqa: S101 - can_suspend() has just looked
    assert context.flow_run is not None  # noqa: S101
    try:
        suspend_flow_run(key=f"{key}:{uuid4()}", timeout=int(timeout.total_seconds()))
    except Pause:
        # The server already has the run as Suspended: whatever happened until now found it awake.
        if _checked(ready) is not None:
            with get_client(sync_client=True) as client:
                resume(client, context.flow_run.id)
        raise
    # Reached only when the server let the run pass; the caller's loop checks again.
    raise RuntimeError(f"the suspension for {key} did not take effect")


def _poll(
    ready: Callable[[], T | None],
    key: str,
    timeout: timedelta,
    poll: PollPolicy,
    sleep: Callable[[float], None],
) -> T:
    deadline = time.monotonic() + timeout.total_seconds()
    attempt = 0
    while time.monotonic() < deadline:
        sleep(poll.pause(attempt))
        attempt += 1
        value = _checked(ready)
        if value is not None:
            return value
    raise Overdue(f"waited {timeout} for {key} in vain; run the same flow again to go on waiting")
