"""Reads the runs of open orders from this Prefect server. Changes nothing."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterId

from prefect_assay.models.open_money import OpenItem, OpenKind
from prefect_assay.runs.queries import read_runs, run_filter
from prefect_assay.runs.states import is_open
from prefect_assay.runs.tags import ORDER_TAG, tag_values
from prefect_assay.sweeping.open_orders import in_parts, runs_with_tags

_GIVEN_UP: Final = frozenset({OpenKind.TO_REFUND, OpenKind.TO_VOID})


@dataclass(frozen=True)
class Unattended:
    """Open money that no run of this server goes on with: whose run was deleted, by its name, and the rest."""

    deleted: list[tuple[OpenItem, str]]
    others: list[OpenItem]


def find_unattended(client: SyncPrefectClient, items: Sequence[OpenItem]) -> Unattended:
    """Ask for the runs of open orders, by their tags and by the ids in the orders' logs.

    A run that the server does not know was deleted, if its deployment is one of the server's. Else it may be a run of
    another Prefect home that shares the archive.
    """
    attended = {
        key
        for run in runs_with_tags(client, {ORDER_TAG + item.order_key for item in items})
        if is_open(run)
        for key in tag_values(run.tags, ORDER_TAG)
    }
    items = [item for item in items if item.kind in _GIVEN_UP or item.order_key not in attended]
    left = [item for item in items if item.kind not in _GIVEN_UP and item.working]
    workers = [worker for item in left for worker in item.working if worker.deployment]
    runs = _known_runs(client, {worker.run for worker in workers})
    here = _known_deployments(client, {str(worker.deployment) for worker in workers})
    deleted = [
        (item, item.working[-1].name)
        for item in left
        if all(worker.run not in runs and worker.deployment in here for worker in item.working)
    ]
    named = [item for item, _ in deleted]
    return Unattended(deleted, [item for item in items if item not in named])


def _known_runs(client: SyncPrefectClient, ids: Collection[str]) -> set[str]:
    found = (read_runs(client, run_filter(ids=map(UUID, part))) for part in in_parts(ids))
    return {str(run.id) for runs in found for run in runs}


def _known_deployments(client: SyncPrefectClient, ids: Collection[str]) -> set[str]:
    wanted = (DeploymentFilter(id=DeploymentFilterId(any_=[*map(UUID, part)])) for part in in_parts(ids))
    found = (client.read_deployments(deployment_filter=one) for one in wanted)
    return {str(deployment.id) for deployments in found for deployment in deployments}
