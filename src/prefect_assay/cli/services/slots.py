"""Slots of concurrency limits that the database counts and no lease holds: Prefect would never free them.

Prefect counts slots in its database and keeps their leases in the Prefect home. A copy of the database has no leases, and a
power loss may take them. The sweep has one slot, and every sweep would be canceled.
"""

import asyncio
import logging
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final
from uuid import UUID

from prefect_assay.errors import ConfigurationError

if TYPE_CHECKING:
    from prefect_assay.database import EmbeddedDatabase

_logger = logging.getLogger(__name__)
_OF_ONE_SERVER: Final = "prefect.server."


def freeing_slots(*, held: Iterable[UUID] = ()) -> str:
    """SQL that frees the slots of all limits but these, and returns the limits' names. Slots that decay need no lease."""
    ids = ",".join(map(str, held))
    return (
        "UPDATE concurrency_limit_v2 SET active_slots = 0 WHERE slot_decay_per_second = 0 AND active_slots > 0 "  # noqa: S608 - UUIDs only
        f"AND id <> ALL ('{{{ids}}}'::uuid[]) RETURNING name"
    )


def free_lost_slots(database: "EmbeddedDatabase") -> None:
    """Before the server starts; leases elsewhere, such as in Redis, and those of a server that runs are left alone."""
    from prefect.settings import get_current_settings

    if not get_current_settings().server.concurrency.lease_storage.startswith(_OF_ONE_SERVER):
        return
    try:
        freed = database.change(freeing_slots(held=asyncio.run(_limits_with_a_lease())))
    except (ConfigurationError, OSError) as error:
        _logger.info("Slots that no lease holds were not looked for: %s", error)
        return
    if freed:
        _logger.warning("Slots that no lease held are free again, of: %s", ", ".join(freed))


async def _limits_with_a_lease() -> set[UUID]:
    """The limits with a lease of the configured storage. One that has expired counts: the server frees its slots."""
    from prefect.server.concurrency.lease_storage import get_concurrency_lease_storage

    storage = get_concurrency_lease_storage()
    # In this order: a lease that was renewed but is listed as expired becomes an active one by the first look.
    expired = await storage.read_expired_lease_ids(limit=sys.maxsize)
    active = await storage.read_active_lease_ids(limit=sys.maxsize)
    leases = [await storage.read_lease(lease_id) for lease_id in (*expired, *active)]
    return {limit_id for lease in leases if lease for limit_id in lease.resource_ids}
