"""How often a run may crash, and taking crashed runs up again. Every crash is counted from the run's own history.

Prefect's automations schedule a crashed run again without counting. The run stops itself, once it has begun; the
sweep takes up what never began, or what no automation has taken up. No counter is kept anywhere.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas import OrchestrationResult
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterDeploymentId,
    FlowRunFilterState,
    FlowRunFilterStateType,
    FlowRunFilterTags,
)
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.client.schemas.responses import SetStateStatus
from prefect.runtime import flow_run as current_run
from prefect.states import Failed, Scheduled

from prefect_assay.errors import CrashedTooOften
from prefect_assay.runs.ownership import OUR_FLOWS, OUR_TAG
from prefect_assay.runs.queries import LOST_AFTER, runs_with

CRASHES_MAX: Final = 5

# How long a crashed run is left to the automation, which is faster by far; four times as long after each crash, so
# that a worker that cannot start anything is tried for half a day.
_PATIENCE: Final = timedelta(minutes=2)
_GROWTH: Final = 4
# From here a start takes longer than anything but a worker that has gone.
_STARTS_WITHIN: Final = timedelta(minutes=30)
# These end a series: the run has got through to a wait, or a person has looked at it.
_ENDS_A_SERIES: Final = frozenset(
    {StateType.PAUSED, StateType.FAILED, StateType.COMPLETED, StateType.CANCELLED}
)


def crashes_in_a_row(states: Iterable[State]) -> int:
    """How often a run has crashed since it was last suspended, or has last ended otherwise.

    Prefect's worker reports each killed process twice, the second time when the next one may be starting already:
    that start then succeeds from the state Crashed, and the report counts for nothing.
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
    """End a run that crashes again and again; the first thing that a flow calls.

    Raises:
        CrashedTooOften: more than five crashes since the run was last suspended.
    """
    if current_run.id is None or current_run.run_count <= 1:
        return  # the first execution has no history
    with get_client(sync_client=True) as client:
        count = crashes_in_a_row(client.read_flow_run_states(current_run.id))
    if count > CRASHES_MAX:
        raise CrashedTooOften(_why(count))


def take_up_crashed(client: SyncPrefectClient, now: datetime, problems: list[str]) -> list[str]:
    """Schedule runs again that have crashed, or never began, and that nobody has taken up; returns their ids.

    A run that has crashed too often ends as Failed. Runs that crashed more than a week ago are left alone.

    Args:
        client: the Prefect API.
        now: the present, with a time zone.
        problems: gets a line for every run that was ended here.
    """
    taken: list[str] = []
    for run, state, age in _stranded(client, now):
        count = crashes_in_a_row(client.read_flow_run_states(run.id))
        if count > CRASHES_MAX:
            client.set_flow_run_state(run.id, Failed(message=_why(count)))
            problems.append(f"run {run.name} has crashed {count} times in a row and is not started again")
        elif _is_due(state, age, count) and _scheduled_again(client, run, state):
            taken.append(str(run.id))
    return taken


def recoverable_runs(client: SyncPrefectClient, *states: StateType) -> list[FlowRun]:
    """Our runs in one of these states that a worker can start again."""
    wanted = FlowRunFilter(
        tags=FlowRunFilterTags(all_=[OUR_TAG]),
        state=FlowRunFilterState(type=FlowRunFilterStateType(any_=list(states))),
        # A run without a deployment cannot be started by anybody else.
        deployment_id=FlowRunFilterDeploymentId(is_null_=False),
    )
    return runs_with(client, wanted, OUR_FLOWS)


def _why(count: int) -> str:
    return (
        f"this run has crashed {count} times in a row and is not started again. Nothing is lost, and nothing is "
        "ordered or paid twice: what it has ordered stands at the service. Look into its log and the worker's for "
        "the cause (memory, a killed worker, a broken environment), then press Retry in the Prefect UI, or start the "
        "same campaign again: it goes on from where the service is"
    )


def _stranded(client: SyncPrefectClient, now: datetime) -> list[tuple[FlowRun, State, timedelta]]:
    """Our crashed runs, and those whose start a worker has begun and never finished; with their state and its age."""
    runs = recoverable_runs(client, StateType.CRASHED, StateType.PENDING)
    aged = [(run, run.state, now - run.state.timestamp) for run in runs if run.state is not None]
    return [(run, state, age) for run, state, age in aged if _is_stranded(state, age)]


def _is_stranded(state: State, age: timedelta) -> bool:
    if state.type == StateType.PENDING:
        return age > _STARTS_WITHIN
    return _PATIENCE < age < LOST_AFTER


def _is_due(state: State, age: timedelta, count: int) -> bool:
    return state.type == StateType.PENDING or age > _PATIENCE * _GROWTH ** (count - 1)


def _scheduled_again(client: SyncPrefectClient, run: FlowRun, state: State) -> bool:
    message = "The sweep takes it up again: it has crashed, or its start was never finished."
    # Forced, because a start that has begun may not be taken back otherwise.
    result: OrchestrationResult[Any] = client.set_flow_run_state(
        run.id, Scheduled(name="AwaitingRetry", message=message), force=state.type == StateType.PENDING
    )
    return result.status == SetStateStatus.ACCEPT
