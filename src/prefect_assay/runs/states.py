"""Reads the state of a run, and asks Prefect to change it."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas import OrchestrationResult
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.client.schemas.responses import SetStateStatus
from prefect.states import Scheduled

from prefect_assay.events import EVENTS_LABEL, RunReference
from prefect_assay.runs.tags import ORDER_TAG, REPLACED_TAG, tag_values

# A crashed run is rescheduled for this long; afterwards it counts as ended. Longer than an installation is switched off:
# the laboratory delivers meanwhile.
LOST_AFTER: Final = timedelta(days=60)

# The states between a wake-up and the first line of the flow.
_WOKEN: Final = frozenset({"Resuming", "Late", "Pending", "Submitting", "InfrastructurePending", "Running"})
_EXPIRED: Final = "and never resumed"  # Prefect's message for a suspension that timed out
# Prefect's message for the runs that `serve` executes when it ends
_RUNNER_STOPS: Final = "Runner is shutting down."
REPLACED: Final = "Another run of its campaign goes on."  # the message of a run that the sweep has replaced
_GOES_ON: Final = "Its runner was stopped, and it goes on where the service says it is."
_EXPIRED_FOR: Final = timedelta(hours=1)  # by then the sweep has rescheduled the run or never will


def waits_for_input(run: FlowRun) -> bool:
    """Return True if the run asks a person; only the person's answer may wake it."""
    return bool(run.state and run.state.state_details.run_input_keyset)


def suspension_key(run: FlowRun) -> str:
    """Return the key under which a suspended run waits; empty for any other run."""
    return (run.state.state_details.pause_key or "") if run.state else ""


def event_reference(run: FlowRun) -> RunReference:
    """What an event about the run names, and what the run has sent."""
    campaign_id = run.parameters.get("campaign_id")
    return RunReference(
        run.id,
        run.name,
        deployment_id=run.deployment_id,
        campaign_id=campaign_id if isinstance(campaign_id, str) else None,
        order_key=next(iter(tag_values(run.tags, ORDER_TAG)), None),
        sent=str(run.labels.get(EVENTS_LABEL) or ""),
    )


def is_own_wait(state: State[Any]) -> bool:
    """Return True if the run suspended itself: its key names what it waits for, or it has a form."""
    return bool(state.state_details.run_input_keyset) or ":" in (state.state_details.pause_key or "")


def last_wait(states: Iterable[State[Any]]) -> State[Any] | None:
    """Return the suspension that a run was woken from; None if anything but the wake-up has happened since."""
    for state in sorted(states, key=lambda state: state.timestamp, reverse=True):
        if state.is_paused():
            return state if is_own_wait(state) else None
        if state.name not in _WOKEN:
            return None
    return None


def has_ended(run: FlowRun) -> bool:
    """Return True if neither Prefect nor the sweep will start the run again."""
    if run.state is None or not run.state.is_final():
        return False
    if tag_values(run.tags, REPLACED_TAG):
        return False  # its successor goes on
    age = datetime.now(UTC) - run.state.timestamp
    if run.state.is_crashed() or lost_its_deployment(run) or was_stopped_with_its_runner(run.state):
        return age > LOST_AFTER
    return not has_expired(run) or age > _EXPIRED_FOR


def is_open(run: FlowRun) -> bool:
    """Return True if the run goes on or will be started again, as a crashed run is, and is not being canceled."""
    return run.state is not None and not run.state.is_cancelling() and not has_ended(run)


def has_expired(run: FlowRun) -> bool:
    """Return True if the run failed because its suspension timed out."""
    return run.state is not None and run.state.is_failed() and _EXPIRED in (run.state.message or "")


def lost_its_deployment(run: FlowRun) -> bool:
    """Return True if a worker canceled the run because its deployment was deleted."""
    message = f"Deployment {run.deployment_id} no longer exists"
    return run.state is not None and run.state.is_cancelled() and message in (run.state.message or "")


def was_stopped_with_its_runner(state: State[Any]) -> bool:
    """Return True if no person has canceled the run: a process that serves flows cancels those that it executes at its end."""
    return state.type in {StateType.CANCELLING, StateType.CANCELLED} and state.message == _RUNNER_STOPS


def is_canceled_by_person(run: FlowRun) -> bool:
    """Return True if a run is Cancelled, neither by its runner's end nor because of its deployment nor in favour of another."""
    state = run.state
    if state is None or not state.is_cancelled() or state.message == REPLACED:
        return False
    return not was_stopped_with_its_runner(state) and not lost_its_deployment(run)


def go_on_without_its_runner(client: SyncPrefectClient, run: FlowRun) -> None:
    """Schedule a run again that was stopped with its runner; one that had ended by then gets its end back."""
    states = sorted(client.read_flow_run_states(run.id), key=lambda state: state.timestamp)
    before = next((s for s in reversed(states) if not was_stopped_with_its_runner(s)), None)
    if before is not None and before.is_final():
        set_state(
            client,
            run.id,
            State(type=before.type, name=before.name, message=before.message, data=before.data),
            force=True,
        )
    else:
        reschedule(client, run.id, _GOES_ON)


def successor_of(client: SyncPrefectClient, run: FlowRun) -> FlowRun:
    """Follow `assay-replaced` tags to the run that goes on; the run itself if it was not replaced."""
    while ids := tag_values(run.tags, REPLACED_TAG):
        run = client.read_flow_run(UUID(ids[0]))
    return run


def resume(client: SyncPrefectClient, run_id: UUID, answer: dict[str, Any] | None = None) -> bool:
    """Resume a suspended run, with the values of its form if it has one; True if this call did it."""
    return client.resume_flow_run(run_id, run_input=answer).status == SetStateStatus.ACCEPT


def reschedule(client: SyncPrefectClient, run_id: UUID, message: str, *, force: bool = False) -> bool:
    """Schedule another execution of a run; True if Prefect accepts. `force` also takes back a begun start."""
    return set_state(client, run_id, Scheduled(name="AwaitingRetry", message=message), force=force)


def cancel(client: SyncPrefectClient, run: FlowRun) -> None:
    """Cancel a run. One in a final state, such as Crashed, has no process, and Prefect refuses Cancelling for it."""
    final = run.state is not None and run.state.is_final()
    set_state(client, run.id, State(type=StateType.CANCELLED if final else StateType.CANCELLING))


def set_state(client: SyncPrefectClient, run_id: UUID, state: State[Any], *, force: bool = False) -> bool:
    """Propose a state; True if Prefect accepts it."""
    result: OrchestrationResult[Any] = client.set_flow_run_state(run_id, state, force=force)
    return result.status == SetStateStatus.ACCEPT
