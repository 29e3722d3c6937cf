"""Runs that no worker will ever start again: they are replaced by a run that can be started, or rescheduled.

The Prefect API cannot move a run to another deployment or work queue. The new run has the same parameters and tags and
goes on; the old one ends as Replaced and names it.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Final
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterName
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.client.schemas.responses import DeploymentResponse
from prefect.exceptions import ObjectNotFound
from prefect.states import Cancelled, Scheduled, Suspended

from prefect_assay.runs.children import deployment_name
from prefect_assay.runs.heartbeats import heartbeat_is_due, last_heartbeat
from prefect_assay.runs.queries import ASSAY_FLOWS, FLOW_NAMES, is_assay_run, read_run_pages, run_filter
from prefect_assay.runs.states import is_own_wait, reschedule, waits_for_input
from prefect_assay.runs.tags import INDEX_TAGS, REPLACED_TAG

# A served process takes a run within seconds, whatever the state of its queue.
_PICKED_UP_WITHIN: Final = timedelta(minutes=2)


class DeploymentIndex:
    """The deployments of the flows that wait, each read when it is first needed."""

    def __init__(self, client: SyncPrefectClient) -> None:
        self._client = client
        self._own: dict[UUID, DeploymentResponse | None] = {}

    @cached_property
    def _shipped(self) -> list[DeploymentResponse]:
        """One per flow at most, so always on the first page."""
        return self._client.read_deployments(
            flow_filter=ASSAY_FLOWS,
            deployment_filter=DeploymentFilter(
                name=DeploymentFilterName(any_=[deployment_name(flow) for flow in FLOW_NAMES])
            ),
        )

    def _read(self, deployment_id: UUID) -> DeploymentResponse | None:
        if deployment_id not in self._own:
            try:
                self._own[deployment_id] = self._client.read_deployment(deployment_id)
            except ObjectNotFound:
                self._own[deployment_id] = None
        return self._own[deployment_id]

    def replacement_for(self, run: FlowRun, *, overdue: bool = False) -> DeploymentResponse | None:
        """Return the deployment that can start a run; None without one, or without need.

        An overdue run of the pool that its deployment has left is started in the new pool: the old one may have no worker.
        """
        own = self._read(run.deployment_id) if run.deployment_id else None
        if own is None:
            return next((d for d in self._shipped if d.flow_id == run.flow_id), None)
        # Without a pool the deployment is served: its process fetches runs by their deployment.
        if own.work_pool_name is None or run.work_pool_name == own.work_pool_name:
            return None
        return own if overdue or run.work_pool_name is None else None


def replace_waiting_runs(client: SyncPrefectClient) -> list[FlowRun]:
    """Replace all waiting runs whose deployment or work pool was created again; returns the new runs."""
    waiting = run_filter(states=[StateType.PAUSED, StateType.SCHEDULED], deployed=True)
    deployments = DeploymentIndex(client)
    replaceable = [
        (run, home)
        for page in read_run_pages(client, waiting, ASSAY_FLOWS)
        for run in page
        if is_assay_run(run) and (home := deployments.replacement_for(run))
    ]
    return [replace_run(client, run, home) for run, home in replaceable]


def replace_unstarted_runs(
    client: SyncPrefectClient, runs: Iterable[FlowRun], now: datetime
) -> list[FlowRun]:
    """Replace the scheduled runs that are overdue and that no worker can start; returns the new runs."""
    deployments = DeploymentIndex(client)
    replaced = []
    for run in runs:
        if run.state is None or not run.state.is_scheduled():
            continue
        due = run.state.state_details.scheduled_time or run.state.timestamp
        overdue = now - max(due, run.state.timestamp) > _PICKED_UP_WITHIN
        if overdue and (home := deployments.replacement_for(run, overdue=True)):
            replaced.append(replace_run(client, run, home))
    return replaced


def replace_run(client: SyncPrefectClient, run: FlowRun, home: DeploymentResponse) -> FlowRun:
    """Replace a run by a new run of this deployment. Idempotent: a second call finds the same new run."""
    successor = client.create_flow_run_from_deployment(
        home.id,
        parameters=run.parameters,
        state=_same_wait(run),
        name=run.name,
        tags=run.tags,
        labels={label: value for label, value in run.labels.items() if label.startswith("assay.")},
        idempotency_key=f"assay-replaces-{run.id}",
    )
    # The tags first: by them a parent finds the successor, and the old run is neither woken nor reported as canceled.
    kept = [tag for tag in run.tags if not tag.startswith(INDEX_TAGS)]
    client.update_flow_run(run.id, tags=[*kept, f"{REPLACED_TAG}{successor.id}"])
    message = f"Its deployment or work pool was created again or changed; {successor.name} ({successor.id}) goes on."
    client.set_flow_run_state(run.id, Cancelled(name="Replaced", message=message))
    return successor


def reschedule_unpaused(client: SyncPrefectClient, runs: Iterable[FlowRun], now: datetime) -> list[UUID]:
    """Reschedule runs whose process ended while they were paused by hand; returns their ids."""
    message = "Rescheduled by the sweep: the run was paused by hand and resumed, and its process had ended."
    rescheduled = []
    for run in runs:
        state = run.state
        if state is None or not state.is_running() or not heartbeat_is_due(now - state.timestamp):
            continue
        if (
            last_heartbeat(client, run, state, now) is None
            and _was_paused(client, run.id)
            and reschedule(client, run.id, message)
        ):
            rescheduled.append(run.id)
    return rescheduled


def reschedule_expired(client: SyncPrefectClient, runs: Iterable[FlowRun]) -> list[UUID]:
    """Reschedule runs that were suspended or paused by hand and failed because they were not resumed in time."""
    message = "Rescheduled by the sweep: the run was suspended by hand, and was not resumed in time."
    return [
        run.id for run in runs if _last_pause_by_hand(client, run.id) and reschedule(client, run.id, message)
    ]


def _same_wait(run: FlowRun) -> State[Any] | None:
    """Return the run's wait for its successor; None for a run that has to start: a form belongs to its run."""
    if run.state is None:
        return None
    details = run.state.state_details
    if run.state.is_scheduled():
        return Scheduled(scheduled_time=details.scheduled_time)
    if not details.pause_reschedule or waits_for_input(run):
        return None
    return Suspended(
        pause_expiration_time=details.pause_timeout, pause_key=details.pause_key, message=run.state.message
    )


def _was_paused(client: SyncPrefectClient, run_id: UUID) -> bool:
    """Return True if the run was paused, and not suspended, right before its present state."""
    states = _history(client, run_id)
    return len(states) > 1 and states[-2].is_paused() and not states[-2].state_details.pause_reschedule


def _last_pause_by_hand(client: SyncPrefectClient, run_id: UUID) -> bool:
    pauses = [state for state in _history(client, run_id) if state.is_paused()]
    return bool(pauses) and not is_own_wait(pauses[-1])


def _history(client: SyncPrefectClient, run_id: UUID) -> list[State[Any]]:
    return sorted(client.read_flow_run_states(run_id), key=lambda state: state.timestamp)
