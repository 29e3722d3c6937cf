"""Deletes the sweep's own finished runs. At one in five minutes they would soon be most of a server's runs."""

from contextlib import suppress
from datetime import datetime
from typing import Final
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import ArtifactFilter, FlowRunFilter
from prefect.client.schemas.objects import TERMINAL_STATES
from prefect.client.schemas.sorting import FlowRunSort
from prefect.exceptions import ObjectNotFound

_AT_ONCE: Final = 50  # of a sweep: an hour makes twelve


def remove_old_sweeps(client: SyncPrefectClient, deployment_id: UUID, ended_before: datetime) -> int:
    """Delete the oldest finished runs of the sweep's own deployment, and with them their logs; returns how many.

    A run that has shown something stays, because what it has shown may still be the newest. However many stay, those
    behind them are reached.
    """
    kept, removed = 0, 0
    while removed < _AT_ONCE:
        old = _finished(client, deployment_id, ended_before, offset=kept)
        shown = _that_have_shown(client, old)
        for run_id in [run_id for run_id in old if run_id not in shown][: _AT_ONCE - removed]:
            removed += 1
            with suppress(ObjectNotFound):  # somebody was faster
                client.delete_flow_run(run_id)
        kept += len(shown)
        if len(old) < _AT_ONCE:
            break
    return removed


def _finished(
    client: SyncPrefectClient, deployment_id: UUID, ended_before: datetime, *, offset: int
) -> list[UUID]:
    found = client.read_flow_runs(
        flow_run_filter=FlowRunFilter.model_validate(
            {
                "deployment_id": {"any_": [deployment_id]},
                "state": {"type": {"any_": sorted(TERMINAL_STATES)}},
                "end_time": {"before_": ended_before},
            }
        ),
        sort=FlowRunSort.START_TIME_ASC,
        limit=_AT_ONCE,
        offset=offset,
    )
    return [run.id for run in found]


def _that_have_shown(client: SyncPrefectClient, runs: list[UUID]) -> set[UUID]:
    if not runs:
        return set()
    artifacts = client.read_artifacts(
        # Prefect makes an artifact without a key for each state with a result
        artifact_filter=ArtifactFilter.model_validate(
            {"flow_run_id": {"any_": runs}, "key": {"exists_": True}}
        )
    )
    return {artifact.flow_run_id for artifact in artifacts if artifact.flow_run_id}
