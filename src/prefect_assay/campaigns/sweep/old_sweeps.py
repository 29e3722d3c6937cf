"""Deletes the sweep's own finished runs. At one in five minutes they would soon be most of a server's runs."""

from datetime import datetime
from typing import Final
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import ArtifactCollectionFilter, FlowRunFilter
from prefect.client.schemas.objects import TERMINAL_STATES
from prefect.client.schemas.sorting import FlowRunSort
from prefect.exceptions import ObjectNotFound

_AT_ONCE: Final = 150  # of a sweep: an hour makes twelve, and with hints at most sixty more


def remove_old_sweeps(client: SyncPrefectClient, deployment_id: UUID, ended_before: datetime) -> int:
    """Delete the oldest finished runs of the sweep's own deployment, and with them their logs; returns how many.

    A run whose artifact is the newest of its key stays, because people look at that one.
    """
    old = client.read_flow_runs(
        flow_run_filter=FlowRunFilter.model_validate(
            {
                "deployment_id": {"any_": [deployment_id]},
                "state": {"type": {"any_": sorted(TERMINAL_STATES)}},
                "end_time": {"before_": ended_before},
            }
        ),
        sort=FlowRunSort.START_TIME_ASC,
        limit=_AT_ONCE,
    )
    if not old:
        return 0
    newest = client.read_latest_artifacts(
        artifact_filter=ArtifactCollectionFilter.model_validate(
            {"flow_run_id": {"any_": [run.id for run in old]}}
        )
    )
    kept = {artifact.flow_run_id for artifact in newest}
    removed = [run.id for run in old if run.id not in kept]
    for run_id in removed:
        try:
            client.delete_flow_run(run_id)
        except ObjectNotFound:  # somebody was faster
            continue
    return len(removed)
