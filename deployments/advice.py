"""What a Prefect server's own settings mean for these flows, where they differ from the shipped ones.

A server that does not tell its settings, such as Prefect Cloud, gets no advice.
"""

from typing import Final

import httpx
from prefect.client.orchestration import SyncPrefectClient

_IN_MEMORY: Final = "prefect.server.concurrency.lease_storage.memory"
_LEASES: Final = (
    "the server keeps the leases of concurrency slots in memory, and a restart at the wrong moment leaves a slot "
    "taken by nobody; start it with PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE="
    "prefect.server.concurrency.lease_storage.filesystem (docs/deploying.md, Limits)"
)


def advice(client: SyncPrefectClient) -> tuple[str, ...]:
    """Sentences for the operator; none when nothing is to be said."""
    try:
        settings = client.request("GET", "/admin/settings").json()
        storage = settings["server"]["concurrency"]["lease_storage"]
    except (httpx.HTTPError, ValueError, KeyError, TypeError):
        return ()
    return (_LEASES,) if storage == _IN_MEMORY else ()
