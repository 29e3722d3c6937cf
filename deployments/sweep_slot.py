"""Frees the slot of the sweep when no sweep holds it. A lost slot would cancel every later sweep.

Prefect counts slots in its database and keeps their leases elsewhere. A power loss, or a restored copy of the database,
can leave a slot without its lease, and Prefect then never frees it.
"""

import threading
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final

import httpx
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.actions import GlobalConcurrencyLimitUpdate
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterDeploymentId,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import StateType
from prefect.exceptions import PrefectException

from prefect_assay.blocks.deployment_runs import deployment_of, find_deployment

SWEEP: Final = deployment_of("sweep")
# No sweep takes longer; two at once do no harm.
_SWEEPS_WITHIN: Final = timedelta(minutes=10)
_LOOK_SECONDS: Final = 300.0
_HOLDS: Final = {StateType.PENDING, StateType.RUNNING, StateType.CANCELLING}


def free_lost_slot(client: SyncPrefectClient, now: datetime) -> bool:
    """Free the sweep's slot if it is taken and no sweep has begun in the last ten minutes; True if it was freed."""
    sweep = find_deployment(client, SWEEP)
    if sweep is None:
        return False
    limit = sweep.global_concurrency_limit
    if limit is None or not limit.active_slots:
        return False
    holders = FlowRunFilter(
        deployment_id=FlowRunFilterDeploymentId(any_=[sweep.id]),
        state=FlowRunFilterState(type=FlowRunFilterStateType(any_=sorted(_HOLDS))),
    )
    running = client.read_flow_runs(flow_run_filter=holders)
    if any(run.state and now - run.state.timestamp < _SWEEPS_WITHIN for run in running):
        return False
    client.update_global_concurrency_limit(limit.name, GlobalConcurrencyLimitUpdate(active_slots=0))
    return True


def watch_slot(api: str, auth: str | None) -> None:
    """Look after the slot on a thread, every five minutes, as long as this process lives."""
    threading.Thread(target=_watch_slot, args=(api, auth), name="sweep-slot", daemon=True).start()


def _watch_slot(api: str, auth: str | None) -> None:
    while True:
        time.sleep(_LOOK_SECONDS)
        # The next look tries again.
        with suppress(httpx.HTTPError, PrefectException), SyncPrefectClient(api, auth_string=auth) as client:
            free_lost_slot(client, datetime.now(UTC))
