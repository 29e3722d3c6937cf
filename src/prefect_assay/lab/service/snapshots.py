"""Snapshots of the whole lab: database, clocks, faults, rate limit and the journal's position.

They live in the memory of the lab process, and survive a reset.
"""

import sqlite3
import threading
import uuid
from dataclasses import dataclass, field
from typing import Any, Final

from prefect_assay.lab.kernel.refusals import Refusal
from prefect_assay.lab.service.limiter import RateLimit
from prefect_assay.lab.service.seeding import Seeded

KEPT_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One moment of the lab, with a copy of the database in memory; `position` is its latest journal entry."""

    id: str
    name: str | None
    position: int
    seeded: Seeded
    database: sqlite3.Connection = field(repr=False)
    faults: list[list[Any]] = field(repr=False)
    limit: RateLimit | None = field(repr=False)

    def view(self) -> dict[str, Any]:
        """As the control surface shows it."""
        return {"id": self.id, "name": self.name, "journal_position": self.position}


class Snapshots:
    """The snapshots of one lab process, oldest first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[str, Snapshot] = {}

    def keep(self, snapshot: Snapshot) -> None:
        """Add one; 409 when full."""
        with self._lock:
            if len(self._kept) >= KEPT_MAX:
                snapshot.database.close()
                raise Refusal(409, f"there are {KEPT_MAX} snapshots already; delete some")
            self._kept[snapshot.id] = snapshot

    def all(self) -> list[Snapshot]:
        """All of them, oldest first."""
        with self._lock:
            return list(self._kept.values())

    def find(self, snapshot_id: str) -> Snapshot:
        """The snapshot with this id; 404 for an unknown one."""
        with self._lock:
            found = self._kept.get(snapshot_id)
        if found is None:
            raise Refusal(404, f"no snapshot {snapshot_id!r}")
        return found

    def delete(self, snapshot_id: str) -> None:
        """Forget one. Its copy is freed when no restore reads it any more."""
        self.find(snapshot_id)
        with self._lock:
            self._kept.pop(snapshot_id, None)

    def close(self) -> None:
        """Free all copies."""
        with self._lock:
            for snapshot in self._kept.values():
                snapshot.database.close()
            self._kept.clear()


def new_id() -> str:
    """A fresh id."""
    return f"snap_{uuid.uuid4().hex[:12]}"
