"""Reads the state of a run, and asks Prefect to change it."""

from collections.abc import Iterable
from typing import Any, Final
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas import OrchestrationResult
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.client.schemas.responses import SetStateStatus

# The states between a wake-up and the first line of the flow.
_WOKEN: Final = frozenset({"Resuming", "Late", "Pending", "Submitting", "InfrastructurePending", "Running"})
# Prefect's message for the runs that `serve` executes when it ends
_RUNNER_STOPS: Final = "Runner is shutting down."
# The beginning of Prefect's messages for a run that an operator's limit of its deployment refuses (`CANCEL_NEW`)
_LIMIT_REACHED: Final = "Deployment concurrency "
REPLACED: Final = "Another run of its campaign goes on."  # the message of a run that the sweep has replaced


def waits_for_input(run: FlowRun) -> bool:
    """Return True if the run asks a person; only the person's answer may wake it."""
    return bool(run.state and run.state.state_details.run_input_keyset)


def suspension_key(run: FlowRun) -> str:
    """Return the key under which a suspended run waits; empty for any other run."""
    return (run.state.state_details.pause_key or "") if run.state else ""


def last_wait(states: Iterable[State[Any]]) -> State[Any] | None:
    """Return the suspension that a run was woken from; None if anything but the wake-up has happened since."""
    for state in sorted(states, key=lambda state: state.timestamp, reverse=True):
        if state.is_paused():
            return state
        if state.name not in _WOKEN:
            return None
    return None


def has_ended(run: FlowRun) -> bool:
    """Return True if the run is in a final state; its campaign may go on in another."""
    return run.state is not None and run.state.is_final()


def lost_its_deployment(run: FlowRun) -> bool:
    """Return True if a worker canceled the run because its deployment was deleted."""
    message = f"Deployment {run.deployment_id} no longer exists"
    return run.state is not None and run.state.is_cancelled() and message in (run.state.message or "")


def was_stopped_with_its_runner(state: State[Any]) -> bool:
    """Return True if no person has canceled the run: a process that serves flows cancels those that it executes at its end."""
    return state.type in {StateType.CANCELLING, StateType.CANCELLED} and state.message == _RUNNER_STOPS


def is_canceling_by_person(run: FlowRun) -> bool:
    """Return True if a person has canceled a run whose process has not ended yet."""
    state = run.state
    return state is not None and state.is_cancelling() and not was_stopped_with_its_runner(state)


def is_canceled_by_person(run: FlowRun) -> bool:
    """Return True if a run is Cancelled, neither by its runner's end nor because of its deployment nor in favour of another."""
    state = run.state
    if state is None or not state.is_cancelled() or state.message == REPLACED:
        return False
    if (state.message or "").startswith(_LIMIT_REACHED):
        return False
    return not was_stopped_with_its_runner(state) and not lost_its_deployment(run)


def resume_run(client: SyncPrefectClient, run_id: UUID, answer: dict[str, Any] | None = None) -> bool:
    """Resume a suspended run, with the values of its form if it has one; True if this call did it."""
    return client.resume_flow_run(run_id, run_input=answer).status == SetStateStatus.ACCEPT


def cancel_run(client: SyncPrefectClient, run: FlowRun) -> None:
    """Cancel a run. One in a final state, such as Crashed, has no process, and Prefect refuses Cancelling for it."""
    kind = StateType.CANCELLED if has_ended(run) else StateType.CANCELLING
    set_state(client, run.id, State(type=kind))


def set_state(client: SyncPrefectClient, run_id: UUID, state: State[Any]) -> bool:
    """Propose a state; True if Prefect accepts it."""
    result: OrchestrationResult[Any] = client.set_flow_run_state(run_id, state)
    return result.status == SetStateStatus.ACCEPT
