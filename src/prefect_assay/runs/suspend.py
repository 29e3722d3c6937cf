"""`wait_until` suspends a run until something is ready; `outlast` retries any other step (docs/waiting.md).

This module does not know what a run waits for: it only calls `ready` and `step`.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, NoReturn, TypeVar
from uuid import uuid4

from prefect.artifacts import create_markdown_artifact
from prefect.client.orchestration import get_client
from prefect.client.schemas import OrchestrationResult
from prefect.client.schemas.objects import FlowRun, State
from prefect.client.schemas.responses import SetStateStatus
from prefect.context import FlowRunContext
from prefect.exceptions import Abort, Pause
from prefect.logging import get_run_logger
from prefect.states import Suspended

from prefect_assay.errors import AssayError, BlockUnfit, ConfigurationError, Overdue, shorten
from prefect_assay.runs.crashes import crashes_in_a_row
from prefect_assay.runs.states import resume, suspension_key
from prefect_assay.runs.tags import BLOCK_LABEL
from prefect_assay.runs.transient_failures import (
    RETRY_KEY,
    clear_marks,
    is_mendable,
    is_temporary,
    mark_retry,
    retry_count,
    retry_key,
    was_suspended,
)

T = TypeVar("T")

_MENDED_WITHIN: Final = timedelta(days=365)  # Prefect's time-out; the sweep schedules the run again after it
_REASON_LENGTH: Final = 300


@dataclass(frozen=True)
class PollPolicy:
    """Exponential back-off with jitter, in seconds, for a run that cannot suspend."""

    first_seconds: float = 2.0
    factor: float = 1.5
    longest_seconds: float = 300.0
    jitter: float = 0.2

    def pause(self, attempt: int) -> float:
        """Return the seconds to sleep after an attempt, counted from 0."""
        # Beyond 60 steps the power would overflow; the cap is reached long before.
        seconds = min(self.first_seconds * self.factor ** min(attempt, 60), self.longest_seconds)
        return seconds * random.uniform(1 - self.jitter, 1 + self.jitter)  # noqa: S311 - spreads load, no secret


def can_suspend() -> bool:
    """Return True inside a deployed, top-level flow run: only there does Prefect allow a suspension."""
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
    describe: Callable[[], str | None] | None = None,
) -> T:
    """Return `ready()`'s value as soon as it is not None; after a temporary error the wait goes on.

    A deployed run does not return: its process ends, and the run starts again from the top when it is woken. Any other
    run polls in its process. `key` begins with a word of `WaitsFor`; `describe` gives the suspended state's message.

    Raises:
        Overdue: a polling run reached the timeout.
    """
    value, failed = _checked(ready)
    if value is not None:
        return value
    if can_suspend():
        _suspend(key, timeout, failed=failed, ready=ready, describe=describe)
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
    retry_on: Callable[[AssayError], bool] = is_temporary,
) -> T:
    """Return `step()`'s value, however long its service or store is away; the step must be safe to repeat.

    After a temporary error (`retry_on`), a deployed run suspends and starts again from the top when the sweep wakes it;
    any other run repeats the step in its process. `key` names the step in the history. A deployed run that has waited
    also waits after an error that blames one of its blocks: somebody has changed the block, or what it leads to.

    Raises:
        AssayError: a permanent error, or the last one at the timeout.
    """
    end = time.monotonic() + timeout.total_seconds()
    attempt = 0
    while True:
        try:
            return step()
        except AssayError as error:
            failure = _unfit_block(error) or error
            if not retry_on(failure) or time.monotonic() >= end:
                raise
            get_run_logger().warning("Could not go on, will look again: %s", failure)
            if can_suspend():
                _suspend(retry_key(failure, key), timeout, failed=failure)
        time.sleep((poll or PollPolicy()).pause(attempt))
        attempt += 1


def _unfit_block(error: AssayError) -> BlockUnfit | None:
    """The block that a waiting run cannot go on with, shown in an artifact; None for other errors and other runs."""
    if error.blames is None or not can_suspend():
        return None
    with get_client(sync_client=True) as client:
        run = client.read_flow_run(this_run().id)  # with the tags and labels of this execution
    block = run.labels.get(BLOCK_LABEL + error.blames)
    if not isinstance(block, str) or not was_suspended(run.tags):
        return None
    failure = BlockUnfit(
        f"{error} The run waits: correct the block {block} of its parameter {error.blames}, or what it leads to. It goes on "
        "when the block is saved, and looks again within an hour in any case",
        parameter=error.blames,
        block=block,
    )
    if not retry_count(run):
        create_markdown_artifact(
            key=f"assay-block-{error.blames}",
            markdown=str(failure),
            description="A block that this run cannot go on with",
        )
    return failure


def outlive(error: Exception) -> None:
    """Suspend a deployed run that has ordered, or may have, if `error` ends when something is there again.

    It is the last resort of every flow: a failure outside of the steps that `outlast` repeats. Returns for all others.
    """
    if not isinstance(error, AssayError | OSError) or not can_suspend():
        return
    run = this_run()
    with get_client(sync_client=True) as client:
        tags = client.read_flow_run(run.id).tags
        begun = was_suspended(tags) or crashes_in_a_row(client.read_flow_run_states(run.id)) > 0
    if begun and is_mendable(error, tags):
        failure = (isinstance(error, AssayError) and _unfit_block(error)) or error
        get_run_logger().warning("Could not go on, will look again: %s", failure)
        key = retry_key(failure, "flow") if isinstance(failure, AssayError) else f"{RETRY_KEY}flow"
        _suspend(key, _MENDED_WITHIN, failed=failure)


def _checked(ready: Callable[[], T | None]) -> tuple[T | None, AssayError | None]:
    try:
        return ready(), None
    except AssayError as error:
        if not is_temporary(error):
            raise
        get_run_logger().warning("Could not check, will check again: %s", error)
        return None, error


def _suspend(
    key: str,
    timeout: timedelta,
    *,
    failed: Exception | None,
    ready: Callable[[], object] | None = None,
    describe: Callable[[], str | None] | None = None,
) -> NoReturn:
    run = this_run()
    if failed is not None:
        _mark(run)
    else:
        clear_marks(run)
    message = describe() if describe is not None and failed is None else None
    if failed is not None:
        message = f"will look again, because of: {' '.join(str(failed).split())[:_REASON_LENGTH]}"
    # Unique, because Prefect lets a run pass a key that fired once.
    unique = f"{key}:{uuid4()}"
    try:
        suspend(
            run, Suspended(timeout_seconds=int(timeout.total_seconds()), pause_key=unique, message=message)
        )
    except Pause:
        # The server has the run as Suspended now; any earlier wake-up found it running.
        if ready is not None and failed is None:
            _close_race(run, ready)
        raise


def suspend(run: FlowRun, state: State[Any]) -> NoReturn:
    """Propose a `Suspended` state; a process that no longer executes the run ends quietly.

    Raises:
        Pause: the run is suspended.
        Abort: another execution of the run goes on.
        RuntimeError: Prefect refused for another reason.
    """
    with get_client(sync_client=True) as client:
        result: OrchestrationResult[Any] = client.set_flow_run_state(run.id, state)
        if result.status == SetStateStatus.ACCEPT:
            raise Pause(state=state)
        found = client.read_flow_run(run.id)
    if suspension_key(found) == state.state_details.pause_key:
        raise Pause(state=state)  # the answer to the first attempt was lost
    if state.state_details.pause_key in (found.empirical_policy.pause_keys or ()):
        raise Abort("the run was suspended and woken since: another execution of it goes on")
    if found.state is not None and not found.state.is_running():
        # The process was taken for dead (no heartbeat, a late report about an earlier one), and the run was rescheduled:
        # an error raised here would end it under the other execution.
        raise Abort(f"the run is {found.state.name}: another execution of it goes on")
    raise RuntimeError(f"Prefect refused the suspension: {getattr(result.details, 'reason', None)}")


def _close_race(run: FlowRun, ready: Callable[[], object]) -> None:
    """Resume this run if it has become ready. An error that left this function would end the suspended run."""
    failed: Exception | None
    try:
        value, failed = _checked(ready)
        if value is not None:
            with get_client(sync_client=True) as client:
                resume(client, run.id)
    except Exception as error:  # noqa: BLE001 - see above; the next execution meets the same error where it may end the run
        get_run_logger().warning(
            "Could not check after the suspension, will check again", exc_info=shorten(error)
        )
        failed = error
    if failed is not None:
        _mark(run)


def _mark(run: FlowRun) -> None:
    try:
        mark_retry(run.id)
    except Exception as error:  # noqa: BLE001 - the sweep finds an unmarked run by its updates and by its suspension key
        get_run_logger().warning("Could not mark the run as one to look at soon", exc_info=shorten(error))


def this_run() -> FlowRun:
    """Return the run that this code is executed in.

    Raises:
        ConfigurationError: there is no run.
    """
    context = FlowRunContext.get()
    if context is None or context.flow_run is None:
        raise ConfigurationError("this step works within a flow run only")
    return context.flow_run
