"""`wait_until`: the one primitive that waits. Level-triggered, so that no wake-up has to arrive exactly once.

Check, suspend with a fresh key, check again, and close the race by resuming oneself: if the thing waited for
happens between the first check and the suspension, its wake-up finds a run that is not suspended yet and does
nothing; the second check sees it. `outlast` gives the same patience to every other step of a run that waits.

It must not know what is waited for: `ready` and `step` are the only things it calls.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NoReturn, TypeVar
from uuid import uuid4

from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import FlowRun
from prefect.context import FlowRunContext
from prefect.exceptions import Abort, Pause
from prefect.flow_runs import suspend_flow_run
from prefect.logging import get_run_logger

from prefect_assay.errors import AssayError, Overdue
from prefect_assay.runs.queries import resume
from prefect_assay.runs.transient_failures import again_key, clear_marks, is_passing, note_trouble

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
        ready: the check; harmless to call at any time. An error that passes (`is_passing`) means "not known": the
            wait goes on, and a suspended run is woken soon to look again.
        key: what is waited for, for the run's history; made unique, because a key that fired once would let
            the run pass.
        timeout: how long to wait at most.
        poll: back-off of a run that cannot suspend.
        sleep: how to pass the time between polls.

    Raises:
        Overdue: a polling run reached the timeout.
    """
    value, trouble = _checked(ready)
    if value is not None:
        return value
    if can_suspend():
        _suspend(key, timeout, trouble=trouble, ready=ready)
    deadline = time.monotonic() + timeout.total_seconds()
    attempt = 0
    while value is None:
        if time.monotonic() >= deadline:
            raise Overdue(f"waited {timeout} for {key} in vain; run the same flow again to go on waiting")
        sleep((poll or PollPolicy()).pause(attempt))
        attempt += 1
        value, _ = _checked(ready)
    return value


def outlast(
    step: Callable[[], T],
    *,
    key: str,
    timeout: timedelta,
    poll: PollPolicy | None = None,
    passing: Callable[[AssayError], bool] = is_passing,
    sleep: Callable[[float], None] = time.sleep,
) -> T:
    """Return `step()`'s value, however long its service or store is away.

    After an error that passes, a deployed run suspends and runs again from the top when the sweep wakes it;
    anything else repeats the step in its process. So the step must be safe to repeat.

    Args:
        step: what to do.
        key: names the step, for the run's history.
        timeout: how long to try at most.
        poll: pauses of a run that cannot suspend.
        passing: which errors pass by themselves.
        sleep: how to pass the time.

    Raises:
        AssayError: an error that does not pass, or the last one at the timeout.
    """
    end = time.monotonic() + timeout.total_seconds()
    attempt = 0
    while True:
        try:
            return step()
        except AssayError as error:
            if not passing(error) or time.monotonic() >= end:
                raise
            get_run_logger().warning("Could not go on, will look again: %s", error)
            if can_suspend():
                _suspend(again_key(error, key), timeout, trouble=True)
        sleep((poll or PollPolicy()).pause(attempt))
        attempt += 1


def _checked(ready: Callable[[], T | None]) -> tuple[T | None, bool]:
    """One check, and whether it failed. A service that is away for a moment must not end a wait of days."""
    try:
        return ready(), False
    except AssayError as error:
        if not is_passing(error):
            raise
        get_run_logger().warning("Could not check, will check again: %s", error)
        return None, True


def _suspend(
    key: str, timeout: timedelta, *, trouble: bool, ready: Callable[[], object] | None = None
) -> NoReturn:
    run = this_run()
    if trouble:
        _mark(run)
    else:
        clear_marks(run)
    try:
        suspend(run, key=f"{key}:{uuid4()}", timeout=int(timeout.total_seconds()))
    except Pause:
        # The server already has the run as Suspended: whatever happened until now found it awake.
        if ready is not None and not trouble:
            _close_race(run, ready)
        raise
    # Reached only when the server let the run pass; running again checks again.
    raise RuntimeError(f"the suspension for {key} did not take effect")


def suspend(run: FlowRun, **options: Any) -> None:
    """Prefect's `suspend_flow_run`, but a process whose run is not its own any more ends without a word.

    Raises:
        Pause: the run is suspended.
        Abort: another execution of it goes on.
        RuntimeError: Prefect has refused for another reason.
    """
    try:
        suspend_flow_run(**options)
    except RuntimeError:
        # The process was declared dead (no heartbeat, a late report about an earlier one), and the run is scheduled
        # again: an error from here would end it under the other execution.
        with get_client(sync_client=True) as client:
            state = client.read_flow_run(run.id).state
        if state is not None and not state.is_running():
            raise Abort(f"the run is {state.name}: another execution of it goes on") from None
        raise


def _close_race(run: FlowRun, ready: Callable[[], object]) -> None:
    """Resume oneself if it has become ready; whoever cannot look now is woken to look again.

    The run is suspended by now, so no error may leave this function: Prefect would take it for the run's own, and
    end it.
    """
    try:
        value, trouble = _checked(ready)
        if value is not None:
            with get_client(sync_client=True) as client:
                resume(client, run.id)
    except Exception:  # noqa: BLE001 - see above; the next execution meets the same error where it may end the run
        get_run_logger().warning("Could not check after the suspension, will check again", exc_info=True)
        trouble = True
    if trouble:
        _mark(run)


def _mark(run: FlowRun) -> None:
    """Best effort: the sweep finds a run that cannot be marked by its updates and by what it waits for."""
    try:
        note_trouble(run.id)
    except Exception:  # noqa: BLE001 - whatever Prefect's client raises
        get_run_logger().warning("Could not mark the run as one to look at soon", exc_info=True)


def this_run() -> FlowRun:
    """The run that this code is executed in; only where `can_suspend()`."""
    context = FlowRunContext.get()
    assert context is not None  # noqa: S101 - can_suspend() has just looked
    assert context.flow_run is not None  # noqa: S101
    return context.flow_run
