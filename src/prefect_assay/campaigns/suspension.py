"""How a run waits: a deployed run suspends and starts again from the top; any other run polls in its process.

The state names the next look (`campaigns.runs.looks`), so that the sweep wakes the run then. After suspending, the run looks once
more: a wake-up that came while it was still running had no effect.
"""

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NoReturn

from prefect.client.orchestration import get_client
from prefect.client.schemas import OrchestrationResult
from prefect.client.schemas.objects import FlowRun, State
from prefect.client.schemas.responses import SetStateStatus
from prefect.exceptions import Abort, Pause
from prefect.logging import get_run_logger
from prefect.states import Suspended

from prefect_assay.campaigns.runs.looks import Look, look_of_state
from prefect_assay.campaigns.runs.states import last_wait, resume_run, suspension_key
from prefect_assay.errors import shorten
from prefect_assay.tasks.current_run import this_run

# Prefect's own time-out of a suspension. It only backs up the sweep, which looks long before.
_BACKUP: Final = timedelta(days=730)
_MESSAGE_MAX: Final = 900
# Each suspension adds its key and two states to the run, which Prefect reads with it.
_SUSPENSIONS_MAX: Final = 200


class RunContinues(Exception):
    """This run has been suspended so often that it ends, and the sweep starts another one in its place."""


@dataclass(frozen=True)
class PollPolicy:
    """Exponential back-off with jitter, in seconds, for a run that cannot suspend."""

    first_seconds: float = 2.0
    factor: float = 1.5
    longest_seconds: float = 300.0
    jitter: float = 0.2

    def pause_seconds(self, attempt: int) -> float:
        """The seconds to sleep after an attempt, counted from 0."""
        # Beyond 60 steps the power would overflow; the cap is reached long before.
        seconds = min(self.first_seconds * self.factor ** min(attempt, 60), self.longest_seconds)
        return seconds * random.uniform(1 - self.jitter, 1 + self.jitter)  # noqa: S311 - spreads load, no secret


def suspend_until_news(message: str, *, look: Look, has_news: Callable[[], bool]) -> NoReturn:
    """Suspend this run until it is woken; `message` is for people, `has_news` looks once more afterwards.

    Raises:
        Pause: the run is suspended.
        Abort: another execution of the run goes on.
        RunContinues: it was suspended often enough, and ends.
    """
    run = this_run()
    if len(run.empirical_policy.pause_keys or ()) >= _SUSPENSIONS_MAX:
        raise RunContinues(
            f"suspended {_SUSPENSIONS_MAX} times; another run goes on: {message[:_MESSAGE_MAX]}"
        )
    state: State[Any] = Suspended(
        timeout_seconds=int(_BACKUP.total_seconds()),
        pause_key=look.new_key(),
        message=message[:_MESSAGE_MAX],
    )
    try:
        suspend_run(run, state)
    except Pause:
        _resume_on_news(run, look, has_news)
        raise


def suspend_run(run: FlowRun, state: State[Any]) -> NoReturn:
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
        now = client.read_flow_run(run.id)
    if suspension_key(now) == state.state_details.pause_key:
        raise Pause(state=state)  # the answer to the first attempt was lost
    if state.state_details.pause_key in (now.empirical_policy.pause_keys or ()):
        raise Abort("the run was suspended and woken since: another execution of it goes on")
    if now.state is not None and not now.state.is_running():
        # The process was taken for dead, and the run has another state: an error raised here would end it under that.
        raise Abort(f"the run is {now.state.name}: this execution is over")
    raise RuntimeError(f"Prefect refused the suspension: {getattr(result.details, 'reason', None)}")


def _resume_on_news(run: FlowRun, look: Look, has_news: Callable[[], bool]) -> None:
    """Resume this run if there is news. An error that left this function would end the suspended run.

    The sweep takes each suspended run for one that has looked. So this run is also resumed if it could not: its next
    execution meets a lasting failure where it is reported, and looks again soon. After a failure it looks again soon anyway.
    """
    try:
        if has_news():
            _resume(run)
    except Exception as error:  # noqa: BLE001 - see above
        get_run_logger().warning("Could not look again after suspending", exc_info=shorten(error))
        if not look.failures:
            with suppress(Exception):
                _resume(run)


def _resume(run: FlowRun) -> None:
    with get_client(sync_client=True) as client:
        resume_run(client, run.id)


def failures_before() -> int:
    """How many executions of this run in a row have failed to read something; 0 in the first."""
    with get_client(sync_client=True) as client:
        before = last_wait(client.read_flow_run_states(this_run().id))
    look = look_of_state(before)
    return look.failures if look else 0


def was_retried() -> bool:
    """Whether this run had failed: only a person's retry takes a run out of that state."""
    with get_client(sync_client=True) as client:
        return any(state.is_failed() for state in client.read_flow_run_states(this_run().id))


def utc_now() -> datetime:
    """This machine's time, for the pause between two looks."""
    return datetime.now(UTC)
