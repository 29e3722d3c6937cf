"""Runs that are suspended without ever having run: made by the API, as many as a test or a benchmark needs."""

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID, uuid4

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.objects import FlowRun
from prefect.states import Suspended

from prefect_assay.campaigns.runs.tags import EXPERIMENT_TAG


def suspend_many(
    api: SyncPrefectClient,
    deployment_id: UUID,
    experiment_ids: Sequence[str],
    parameters: dict[str, Any],
    *,
    kind: str = "results",
) -> Iterator[FlowRun]:
    """One suspended run for each experiment, one after the other: SQLite loses writers that race."""
    for experiment_id in experiment_ids:
        yield api.create_flow_run_from_deployment(
            deployment_id,
            parameters=parameters,
            tags=["assay", EXPERIMENT_TAG + experiment_id],
            state=Suspended(timeout_seconds=90 * 86_400, pause_key=f"{kind}-held:{uuid4()}"),
        )
