"""How often a run may crash, and rescheduling crashed runs, which Prefect's automations do without counting.

A run that has begun stops itself after too many crashes; the sweep looks after runs that never began.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import State, StateType
from prefect.runtime import flow_run as current_run
from prefect.states import Failed

from prefect_assay.errors import CrashedTooOften
from prefect_assay.runs.queries import recoverable_runs
from prefect_assay.runs.states import LOST_AFTER, reschedule

CRASHES_MAX: Final = 5

# How long a crashed run is left to the automation, which is much faster; four times as long after each crash, so that
# a worker that cannot start anything is tried for half a day.
_PATIENCE: Final = timedelta(minutes=2)
_GROWTH: Final = 4
# No start takes longer; its worker is gone.
_STARTS_WITHIN: Final = timedelta(minutes=30)
# These end a series of crashes: the run reached a wait, or a person has looked at it.
_ENDS_A_SERIES: Final = frozenset(
    {StateType.PAUSED, StateType.FAILED, StateType.COMPLETED, StateType.CANCELLED}
)
_TOO_OFTEN: Final = (
    "this run has crashed {count} times in a row and is not started again. Nothing is lost, and nothing is ordered or "
    "paid twice: the service keeps what the run has ordered. Look into its log and the worker's for the cause (memory, a "
    "killed worker, a broken environment), then press Retry in the Prefect UI, or start the same campaign again: it goes "
    "on from where the service is"
)


def crashes_in_a_row(states: Iterable[State]) -> int:
    """Count the crashes since the run was last suspended or ended otherwise.

    The worker reports a killed process twice; a second report while the next one is starting does not count.
    """
    count = 0
    before: StateType | None = None
    began = False
    for state in sorted(states, key=lambda state: state.timestamp):
        if state.type == StateType.CRASHED:
            count += before != StateType.CRASHED
            began = before == StateType.RUNNING
        elif state.type == StateType.RUNNING and before == StateType.CRASHED and not began:
            count -= 1
        elif state.type in _ENDS_A_SERIES:
            count = 0
        before = state.type
    return count


def stop_crash_loop() -> None:
    """End a run that keeps crashing; every flow calls this first.

    Raises:
        CrashedTooOften: more than five crashes since the run was last suspended.
    """
    if current_run.id is None or current_run.run_count <= 1:
        return  # the first execution has no history
    with get_client(sync_client=True) as client:
        count = crashes_in_a_row(client.read_flow_run_states(current_run.id))
    if count > CRASHES_MAX:
        raise CrashedTooOften(_TOO_OFTEN.format(count=count))


def reschedule_crashed(client: SyncPrefectClient, now: datetime, problems: list[str]) -> list[str]:
    """Reschedule runs that crashed or never began and that no automation rescheduled; returns their ids.

    A run that crashed too often is set to Failed, with a line in `problems`.
    """
    message = "Rescheduled by the sweep: the run crashed, or its start was never finished."
    rescheduled: list[str] = []
    for run in recoverable_runs(client, StateType.CRASHED, StateType.PENDING):
        if run.state is None:
            continue
        age, pending = now - run.state.timestamp, run.state.is_pending()
        if not (age > _STARTS_WITHIN if pending else _PATIENCE < age < LOST_AFTER):
            continue
        count = crashes_in_a_row(client.read_flow_run_states(run.id))
        if count > CRASHES_MAX:
            client.set_flow_run_state(run.id, Failed(message=_TOO_OFTEN.format(count=count)))
            problems.append(f"run {run.name} has crashed {count} times in a row and is not started again")
        # Forced, because Prefect refuses to take back a start that has begun otherwise.
        elif (pending or age > _PATIENCE * _GROWTH ** (count - 1)) and reschedule(
            client, run.id, message, force=pending
        ):
            rescheduled.append(str(run.id))
    return rescheduled
