"""Limits how often a run may crash, and reschedules crashed runs. Prefect's automations reschedule without counting.

A run that has begun stops itself after too many crashes; the sweep looks after runs that never began.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import httpx
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import TERMINAL_STATES, State, StateType
from prefect.exceptions import Abort
from prefect.runtime import flow_run as current_run
from prefect.states import Cancelled, Failed

from prefect_assay.errors import CrashedTooOften
from prefect_assay.runs.queries import recoverable_runs
from prefect_assay.runs.states import LOST_AFTER, reschedule, set_state
from prefect_assay.runs.transient_failures import is_busy

CRASHES_MAX: Final = 5
CRASHES_AUTOMATION: Final = "assay-crashes"
# Messages of states that no person has requested: the automation's, and the beginning of the sweep's.
RESCHEDULED_BY_AUTOMATION: Final = "It crashed, and goes on where the service says it is."
_RESCHEDULED_BY_SWEEP: Final = "Rescheduled by the sweep: "

# How long a crashed run is left to the automation, where there is one; four times as long after each further crash, so
# that a worker that cannot start anything is tried for half a day.
_PATIENCE: Final = timedelta(minutes=2)
_GROWTH: Final = 4
# A start takes seconds. One that takes longer, as with a large image, may be executed twice: the order's log lets one order.
_STARTS_WITHIN: Final = timedelta(minutes=4)
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
_CANCELED: Final = "It was canceled in the moment in which it was rescheduled after a crash."


def crashes_in_a_row(states: Iterable[State]) -> int:
    """Count the crashes since the run was last suspended or ended otherwise.

    The worker reports a killed process twice; a second report while the next one is starting does not count.
    """
    count = 0
    before: StateType | None = None
    began = False
    for state in _in_order(states):
        if state.type == StateType.CRASHED:
            # Nothing was started since the first report, so this is the second one of the same crash.
            again = before == StateType.SCHEDULED and count > 0
            count += before != StateType.CRASHED and not again
            began = before == StateType.RUNNING or again
        elif state.type == StateType.RUNNING and before == StateType.CRASHED and not began:
            count -= 1
        elif state.type in _ENDS_A_SERIES:
            count = 0
        before = state.type
    return count


def is_unwanted(states: Iterable[State]) -> bool:
    """Return True if the run was canceled, and then started again by who had seen its crash before.

    Prefect accepts that of a deployed run: neither the automation nor the sweep can read and set a state at once.
    """
    unwanted = False
    before: StateType | None = None
    for state in _in_order(states):
        if state.type == StateType.SCHEDULED and before in TERMINAL_STATES:
            unwanted = _is_automatic(state) and (unwanted or before == StateType.CANCELLED)
        elif state.type == StateType.PAUSED:
            unwanted = False
        before = state.type
    return unwanted


def _in_order(states: Iterable[State]) -> list[State]:
    return sorted(states, key=lambda state: state.timestamp)


def _is_automatic(state: State) -> bool:
    return (state.message or "").startswith((RESCHEDULED_BY_AUTOMATION, _RESCHEDULED_BY_SWEEP))


def stop_crash_loop() -> None:
    """End a run that keeps crashing, or was canceled after a crash; every flow calls this first.

    Raises:
        CrashedTooOften: more than five crashes since the run was last suspended.
        Abort: the run was canceled, and is again.
    """
    if current_run.id is None or current_run.run_count <= 1:
        return  # the first execution has no history
    with get_client(sync_client=True) as client:
        states = client.read_flow_run_states(current_run.id)
        if is_unwanted(states):
            set_state(client, UUID(str(current_run.id)), Cancelled(message=_CANCELED))
            raise Abort(_CANCELED)
    count = crashes_in_a_row(states)
    if count > CRASHES_MAX:
        raise CrashedTooOften(_TOO_OFTEN.format(count=count))


def reschedule_crashed(client: SyncPrefectClient, now: datetime, problems: list[str]) -> list[UUID]:
    """Reschedule runs that crashed or never began and that no automation rescheduled; returns their ids.

    A run that crashed too often is set to Failed, with a line in `problems`.
    """
    message = f"{_RESCHEDULED_BY_SWEEP}the run crashed, or its start was never finished."
    rescheduled: list[UUID] = []
    runs = recoverable_runs(client, StateType.CRASHED, StateType.PENDING)
    automated = bool(runs) and _has_automation(client)
    for run in runs:
        if run.state is None:
            continue
        age, pending = now - run.state.timestamp, run.state.is_pending()
        if not (age > _STARTS_WITHIN if pending else age < LOST_AFTER):
            continue
        states = _in_order(client.read_flow_run_states(run.id))
        if not states or states[-1].type != run.state.type:
            continue  # it was canceled or goes on since it was listed
        count = crashes_in_a_row(states)
        if count > CRASHES_MAX:
            client.set_flow_run_state(run.id, Failed(message=_TOO_OFTEN.format(count=count)))
            problems.append(f"run {run.name} has crashed {count} times in a row and is not started again")
            continue
        # Forced, because Prefect refuses to take back a start that has begun otherwise.
        at_once = pending or (count <= 1 and not automated)
        if (at_once or age > _PATIENCE * _GROWTH ** (count - 1)) and reschedule(
            client, run.id, message, force=pending
        ):
            rescheduled.append(run.id)
    return rescheduled


def _has_automation(client: SyncPrefectClient) -> bool:
    try:
        return any(found.enabled for found in client.read_automations_by_name(CRASHES_AUTOMATION))
    except httpx.HTTPStatusError as error:
        if is_busy(error):
            raise
        return False  # a server without automations
