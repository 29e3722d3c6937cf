"""Runs that nobody will ever start again, and their replacement by a run that somebody does.

A run belongs to its deployment and its work queue for good: the Prefect API cannot change either. A deployment that was
deleted and made again is another one, and a run whose work pool was deleted has no queue. Such a run is replaced: a new
run with its parameters and tags finds the order in the log and goes on; the old one ends as Replaced and names it.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Final
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas import OrchestrationResult
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.client.schemas.responses import DeploymentResponse, SetStateStatus
from prefect.states import Cancelled, Scheduled, Suspended

from prefect_assay.runs.children import DEPLOYMENT_NAME
from prefect_assay.runs.heartbeats import heartbeat_is_due, last_heartbeat
from prefect_assay.runs.ownership import ASSAY_FLOWS, is_assay_run
from prefect_assay.runs.queries import read_run_pages, run_filter
from prefect_assay.runs.states import is_own_wait, lost_its_deployment, waits_for_input
from prefect_assay.runs.tags import INDEX_TAGS, REPLACED_TAG

# A served process takes a run within seconds, whatever its queue says.
_PICKED_UP_WITHIN: Final = timedelta(minutes=2)
_PAGE: Final = 200


class Homes:
    """The deployments of the flows that wait, read when they are first needed."""

    def __init__(self, client: SyncPrefectClient) -> None:
        self._client = client

    @cached_property
    def _deployments(self) -> list[DeploymentResponse]:
        return self._client.read_deployments(flow_filter=ASSAY_FLOWS, limit=_PAGE)

    def better(self, run: FlowRun) -> DeploymentResponse | None:
        """The deployment that can start a run which its own cannot; None where there is none, or no need."""
        own = next((d for d in self._deployments if d.id == run.deployment_id), None)
        if own is None:
            same = (d for d in self._deployments if d.flow_id == run.flow_id and d.name == DEPLOYMENT_NAME)
            return next(same, None)
        # Without a pool the deployment is served: its process asks for runs by their deployment.
        return own if run.work_pool_name is None and own.work_pool_name is not None else None


def move_waiting(client: SyncPrefectClient) -> list[FlowRun]:
    """Replace every waiting run whose deployment or work pool was deleted and made again; returns the new runs."""
    waiting = run_filter(states=[StateType.PAUSED, StateType.SCHEDULED], deployed=True)
    homes = Homes(client)
    moving = [
        (run, home)
        for page in read_run_pages(client, waiting, ASSAY_FLOWS)
        for run in page
        if is_assay_run(run) and (home := homes.better(run))
    ]
    return [replace(client, run, home) for run, home in moving]


def move_stranded(client: SyncPrefectClient, runs: Iterable[FlowRun], now: datetime) -> list[FlowRun]:
    """Replace those of the scheduled runs that should have started, and that nobody can start."""
    homes = Homes(client)
    moved = []
    for run in runs:
        if run.state is None or not run.state.is_scheduled():
            continue
        due = run.state.state_details.scheduled_time or run.state.timestamp
        if now - max(due, run.state.timestamp) > _PICKED_UP_WITHIN and (home := homes.better(run)):
            moved.append(replace(client, run, home))
    return moved


def replace(client: SyncPrefectClient, run: FlowRun, home: DeploymentResponse) -> FlowRun:
    """Put a new run of this deployment in the place of a run. Done twice, it is the same new run."""
    successor = client.create_flow_run_from_deployment(
        home.id,
        parameters=run.parameters,
        state=_same_wait(run),
        name=run.name,
        tags=run.tags,
        labels={label: value for label, value in run.labels.items() if label.startswith("assay.")},
        idempotency_key=f"assay-replaces-{run.id}",
    )
    # The tags first: by them a parent finds the successor, and nobody wakes the run or says what remains of it.
    kept = [tag for tag in run.tags if not tag.startswith(INDEX_TAGS)]
    client.update_flow_run(run.id, tags=[*kept, f"{REPLACED_TAG}{successor.id}"])
    message = (
        f"Its deployment or work pool was deleted and made again; {successor.name} ({successor.id}) goes on."
    )
    client.set_flow_run_state(run.id, Cancelled(name="Replaced", message=message))
    return successor


def _same_wait(run: FlowRun) -> State[Any] | None:
    """The suspension to go on with; None for a run that has to run: it asks anew, because a form belongs to its run."""
    if run.state is None or not run.state.state_details.pause_reschedule or waits_for_input(run):
        return None
    details = run.state.state_details
    return Suspended(
        pause_expiration_time=details.pause_timeout, pause_key=details.pause_key, message=run.state.message
    )


def replace_canceled(client: SyncPrefectClient, run: FlowRun, homes: Homes) -> bool:
    """Replace a run that a worker has canceled, because its deployment is not there; False if there is no other."""
    home = homes.better(run) if lost_its_deployment(run) else None
    if home is not None:
        replace(client, run, home)
    return home is not None


def take_up_unpaused(client: SyncPrefectClient, runs: Iterable[FlowRun], now: datetime) -> list[UUID]:
    """Schedule runs again whose process has ended while they were paused by hand; returns their ids.

    Prefect's Pause expects the process to stay, and Resume makes the run Running. A process of ours that comes to its
    next suspension meanwhile ends.
    """
    taken = []
    for run in runs:
        state = run.state
        if state is None or not state.is_running() or not heartbeat_is_due(now - state.timestamp):
            continue
        if last_heartbeat(client, run, state, now) is None and _was_paused(client, run.id):
            message = (
                "It was paused by hand and resumed, and its process had ended. The sweep takes it up again."
            )
            if _scheduled(client, run.id, message):
                taken.append(run.id)
    return taken


def take_up_expired(client: SyncPrefectClient, runs: Iterable[FlowRun]) -> list[UUID]:
    """Schedule runs again that were suspended or paused by hand, and failed because nobody resumed them in time."""
    message = "It was suspended by hand, and nobody resumed it in time. The sweep takes it up again."
    return [
        run.id for run in runs if _last_pause_by_hand(client, run.id) and _scheduled(client, run.id, message)
    ]


def _scheduled(client: SyncPrefectClient, run_id: UUID, message: str) -> bool:
    result: OrchestrationResult[Any] = client.set_flow_run_state(
        run_id, Scheduled(name="AwaitingRetry", message=message)
    )
    return result.status == SetStateStatus.ACCEPT


def _was_paused(client: SyncPrefectClient, run_id: UUID) -> bool:
    """Return True if the run was paused, and not suspended, right before its present state."""
    states = _history(client, run_id)
    return len(states) > 1 and states[-2].is_paused() and not states[-2].state_details.pause_reschedule


def _last_pause_by_hand(client: SyncPrefectClient, run_id: UUID) -> bool:
    pauses = [state for state in _history(client, run_id) if state.is_paused()]
    return bool(pauses) and not is_own_wait(pauses[-1])


def _history(client: SyncPrefectClient, run_id: UUID) -> list[State[Any]]:
    return sorted(client.read_flow_run_states(run_id), key=lambda state: state.timestamp)
