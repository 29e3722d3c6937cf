"""Warns about a Prefect server's published settings, and about what operators have changed."""

from typing import Final

import httpx
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.responses import DeploymentResponse

_IN_MEMORY: Final = "prefect.server.concurrency.lease_storage.memory"
_LEASES: Final = (
    "the server keeps the leases of concurrency slots in memory, and a restart at the wrong moment leaves a slot "
    "taken, so that every later sweep is canceled; start it with `prefect-assay server`, or set "
    "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE=prefect.server.concurrency.lease_storage.filesystem (where several servers share a database, as in postgres.env)"
)
_UNSWEPT: Final = (
    "nothing starts the sweep: its deployment is paused or has no active schedule, so a lost webhook leaves its run "
    "asleep; resume it, or give it a schedule of 300 seconds in the Prefect UI"
)


def settings_advice(client: SyncPrefectClient) -> tuple[str, ...]:
    """Sentences for the operator about the server's settings."""
    try:
        settings = client.request("GET", "/admin/settings").json()
        storage = settings["server"]["concurrency"]["lease_storage"]
    except (httpx.HTTPError, ValueError, KeyError, TypeError):
        return ()
    return (_LEASES,) if storage == _IN_MEMORY else ()


def sweep_advice(sweep: DeploymentResponse | None) -> tuple[str, ...]:
    """Sentences about the sweep's existing deployment; a new one gets its schedule."""
    if sweep is None or (not sweep.paused and any(schedule.active for schedule in sweep.schedules)):
        return ()
    return (_UNSWEPT,)
