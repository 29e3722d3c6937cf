"""Why the runs of our deployments cannot start: what is paused, has no slot, no worker or no scheduler.

Read from the Prefect server at the moment of the question, because the sweep itself may be what cannot start.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import (
    DeploymentFilter,
    DeploymentFilterId,
    FlowRunFilter,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import StateType, Worker, WorkerStatus, WorkQueue
from prefect.client.schemas.responses import DeploymentResponse
from prefect.exceptions import ObjectNotFound

from prefect_assay.blocks.deployment_runs import deployment_of, find_deployment
from prefect_assay.blocks.request_rate import RATE_LIMIT

FLOWS: Final = ("campaign", "design-build-test", "sweep", "decide")
_SWEEP: Final = "sweep"
_RESUME: Final = "resume it in the Prefect UI"
# A server marks workers and served deployments as gone by a service of its own, which may be off.
_POLLED_WITHIN: Final = timedelta(minutes=3)
_BEATS: Final = 5
_DEFAULT_BEAT: Final = 30
_SCHEDULED_WITHIN: Final = timedelta(minutes=3)
_LIMITS: Final = 200


@dataclass(frozen=True)
class Obstacle:
    """One thing that keeps runs from starting, and how to remove it."""

    part: str  # deployment, pool, queue, worker, limit or schedule
    subject: str
    text: str
    next_step: str


def read_own_deployments(client: SyncPrefectClient) -> dict[str, DeploymentResponse | None]:
    """Our deployments by their flow; None for one that is not deployed."""
    return {flow: find_deployment(client, deployment_of(flow)) for flow in FLOWS}


def find_obstacles(
    client: SyncPrefectClient, deployments: dict[str, DeploymentResponse | None], now: datetime
) -> list[Obstacle]:
    """Everything that keeps runs of these deployments from starting; each thing once."""
    here = {flow: deployment for flow, deployment in deployments.items() if deployment is not None}
    obstacles = [
        obstacle for flow, deployment in here.items() for obstacle in _of_deployment(flow, deployment, now)
    ]
    pools: dict[str, list[str]] = {}
    queues: dict[str, dict[str, list[str]]] = {}
    for flow, deployment in here.items():
        if deployment.work_pool_name:
            pools.setdefault(deployment.work_pool_name, []).append(flow)
            of_pool = queues.setdefault(deployment.work_pool_name, {})
            of_pool.setdefault(deployment.work_queue_name or "default", []).append(flow)
    for pool, flows in pools.items():
        obstacles += _of_pool(client, pool, ", ".join(flows), now)
        obstacles += _of_queues(client, pool, queues[pool], now)
    obstacles += _of_limits(client, {tag for deployment in here.values() for tag in deployment.tags})
    sweep = here.get(_SWEEP)
    if sweep is not None:
        obstacles += _of_schedule(client, sweep, now)
    return obstacles


def _of_deployment(flow: str, deployment: DeploymentResponse, now: datetime) -> Iterator[Obstacle]:
    if deployment.paused:
        yield Obstacle("deployment", flow, f"{flow} is paused", _RESUME)
    limit = deployment.global_concurrency_limit
    if limit is not None and limit.active and limit.limit <= 0:
        text = f"the deployment of {flow} has the concurrency limit 0: no run of it starts"
        yield Obstacle("deployment", flow, text, "raise it in the Prefect UI, or remove it")
    if deployment.work_pool_name is None:
        ready = str(deployment.status).endswith("READY") and "NOT" not in str(deployment.status)
        polled = deployment.last_polled
        if not ready or (polled is not None and now - polled > _POLLED_WITHIN):
            text = f"{flow} is served, and its process is not there"
            yield Obstacle("worker", flow, text, "start prefect-assay deploy --serve, or prefect-assay up")


def _of_pool(client: SyncPrefectClient, name: str, flows: str, now: datetime) -> Iterator[Obstacle]:
    try:
        pool = client.read_work_pool(name)
    except ObjectNotFound:
        yield Obstacle(
            "pool", name, f"the work pool {name} of {flows} does not exist", "prefect-assay deploy"
        )
        return
    if pool.is_paused:
        text = f"the work pool {name} is paused: no run of {flows} starts"
        yield Obstacle("pool", name, text, f"prefect work-pool resume {name}")
    if pool.concurrency_limit == 0:
        text = f"the work pool {name} has the concurrency limit 0: no run of {flows} starts"
        yield Obstacle("pool", name, text, f"prefect work-pool clear-concurrency-limit {name}")
    if not pool.is_push_pool and not pool.is_managed_pool:
        workers = client.read_workers_for_work_pool(name)
        if not any(_is_online(worker, now) for worker in workers):
            text = f"no worker of the pool {name} is online: {flows} cannot start"
            yield Obstacle("worker", name, text, "start the worker that `prefect-assay deploy` names")


def _is_online(worker: Worker, now: datetime) -> bool:
    if worker.status != WorkerStatus.ONLINE:
        return False
    last = worker.last_heartbeat_time
    beat = worker.heartbeat_interval_seconds or _DEFAULT_BEAT
    return last is None or now - last < _BEATS * timedelta(seconds=beat)


def _of_queues(
    client: SyncPrefectClient, pool: str, flows_of: dict[str, list[str]], now: datetime
) -> Iterator[Obstacle]:
    queues: dict[str, WorkQueue] = {}
    for name in flows_of:
        with suppress(ObjectNotFound):  # of a pool that does not exist, which is named
            queues[name] = client.read_work_queue_by_name(name, work_pool_name=pool)
    polled = {
        name
        for name, work_queue in queues.items()
        if work_queue.last_polled and now - work_queue.last_polled <= _POLLED_WITHIN
    }
    for name, queue in queues.items():
        named, flows = f"{pool}/{name}", ", ".join(flows_of[name])
        of_pool = f"the work queue {name} of the pool {pool}"
        if queue.is_paused:
            text = f"{of_pool} is paused: no run of {flows} starts"
            yield Obstacle("queue", named, text, f"prefect work-queue resume {name} --pool {pool}")
        if queue.concurrency_limit == 0:
            text = f"{of_pool} has the concurrency limit 0: no run of {flows} starts"
            command = f"prefect work-queue clear-concurrency-limit {name} --pool {pool}"
            yield Obstacle("queue", named, text, command)
        if polled and name not in polled:  # polls of no queue at all: the server does not note them
            text = f"no worker serves {of_pool}: {flows} cannot start"
            yield Obstacle(
                "worker", named, text, "start the worker of this queue that `prefect-assay deploy` names"
            )


def _of_limits(client: SyncPrefectClient, tags: set[str]) -> Iterator[Obstacle]:
    """Limits of 0 by a tag of our runs, and on our requests: a run would start, and then wait or be aborted."""
    for limit in client.read_global_concurrency_limits(limit=_LIMITS):
        prefix, _, tag = limit.name.partition(":")
        ours = limit.name == RATE_LIMIT or (prefix == "tag" and (tag in tags or tag.startswith("assay")))
        if ours and limit.active and limit.limit <= 0:
            text = f"the concurrency limit {limit.name} is 0: runs cannot go on"
            yield Obstacle("limit", limit.name, text, "raise it in the Prefect UI, or delete it")


def _of_schedule(client: SyncPrefectClient, sweep: DeploymentResponse, now: datetime) -> Iterator[Obstacle]:
    if sweep.paused:
        return  # named as a deployment
    active = [schedule for schedule in sweep.schedules if schedule.active]
    if not active:
        text = "nothing starts the sweep: its deployment has no active schedule, so a lost webhook leaves its run asleep"
        yield Obstacle("schedule", _SWEEP, text, "give it a schedule of 300 seconds in the Prefect UI")
    elif all(_is_older(schedule, now) for schedule in active) and not _has_planned(client, sweep, now):
        text = "the sweep has an active schedule, and no run of it is planned: the server's scheduler does not run"
        next_step = (
            "start the server's services, with PREFECT_SERVER_SERVICES_SCHEDULER_ENABLED=true; several servers also "
            "need `prefect server services start`"
        )
        yield Obstacle("schedule", _SWEEP, text, next_step)


def _is_older(schedule: Any, now: datetime) -> bool:
    """The scheduler plans a new schedule within a minute."""
    changed = schedule.updated or schedule.created
    return changed is None or now - changed > _SCHEDULED_WITHIN


def _has_planned(client: SyncPrefectClient, sweep: DeploymentResponse, now: datetime) -> bool:
    planned = client.read_flow_runs(
        deployment_filter=DeploymentFilter(id=DeploymentFilterId(any_=[sweep.id])),
        flow_run_filter=FlowRunFilter(
            state=FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.SCHEDULED]))
        ),
        limit=_LIMITS,
    )
    # only late ones are left of a scheduler that has ended
    return any((run.expected_start_time or now) >= now - _SCHEDULED_WITHIN for run in planned)
