"""The durable queue of deliveries. Knows no HTTP.

Rows of one experiment to one destination form a lane, and only the lane's oldest row is sent, so deliveries arrive in
order, retries included. A row that a fault holds back is outside its lane.
"""

import time
from datetime import datetime
from typing import Any, Literal

from assay_lab.kernel import times
from assay_lab.kernel.store import Db, Row

Held = Literal["next", "release", "time"]

_HEADS = (
    "SELECT * FROM outbox AS o WHERE org_id = ? AND held = '' AND NOT EXISTS (SELECT 1 FROM outbox AS p"
    " WHERE p.experiment_id = o.experiment_id AND p.webhook_id IS o.webhook_id AND p.id < o.id AND p.held = '')"
)


def add_delivery(
    db: Db,
    experiment: Row,
    update_id: str,
    webhook_id: str | None,
    due_at: datetime,
    *,
    replay_of: int | None = None,
) -> None:
    """Queue a delivery, due at `due_at` of lab time; without `webhook_id`, to the experiment's own address.

    `replay_of` is the number of a delivery whose exact bytes are sent again.
    """
    db.insert(
        "outbox",
        {
            "org_id": experiment["org_id"],
            "experiment_id": experiment["id"],
            "update_id": update_id,
            "webhook_id": webhook_id,
            "due_at": due_at,
            "due_real": time.time(),
            "attempts": 0,
            "replay_of": replay_of,
        },
    )


def list_organizations(db: Db) -> list[str]:
    """The organizations with deliveries that become due with time alone."""
    return db.column("SELECT DISTINCT org_id FROM outbox WHERE held IN ('', 'time')")


def find_due(db: Db, org_id: str, now: datetime, *, wait: bool = False) -> Row | None:
    """The next row to send now; with `wait`, back-offs on the real clock count as passed."""
    _free_passed(db, org_id, now)
    sql = f"{_HEADS} AND due_at <= ? AND (? OR due_real <= ?) ORDER BY due_at, id LIMIT 1"
    return db.one(sql, org_id, now, wait, time.time())


def next_at(db: Db, org_id: str, now: datetime) -> datetime | None:
    """When, after now, time alone makes a row due."""
    row = db.one(
        "SELECT min(due_at) AS at FROM outbox WHERE org_id = ? AND held IN ('', 'time') AND due_at > ?",
        org_id,
        now,
    )
    return times.read(row["at"]) if row and row["at"] else None


def _free_passed(db: Db, org_id: str, now: datetime) -> None:
    # Reads first, to spare a write at every step of a lab without deliveries.
    passed = "WHERE org_id = ? AND held = 'time' AND due_at <= ?"
    if db.one(f"SELECT 1 FROM outbox {passed}", org_id, now):  # noqa: S608 - own text
        db.run(f"UPDATE outbox SET held = '' {passed}", org_id, now)  # noqa: S608 - own text


def hold_delivery(db: Db, row: Row, kind: Held, until: datetime | None) -> None:
    """Take a row out of its lane: until the `next` one is delivered, a `time`, or its `release`."""
    changes: dict[str, Any] = {"held": kind, "was_held": 1}
    if until is not None:
        changes["due_at"] = until
    db.update("outbox", row["id"], **changes)


def release_deliveries(db: Db, org_id: str, now: datetime, *, experiment_id: str | None = None) -> int:
    """Free all held rows of an organization, or of one experiment, to be sent now; how many."""
    return db.run(
        "UPDATE outbox SET held = '', due_at = ? WHERE held <> '' AND org_id = ? AND (? IS NULL OR experiment_id = ?)",
        now,
        org_id,
        experiment_id,
        experiment_id,
    )


def remove_delivery(db: Db, row: Row) -> None:
    """Remove a row, and free the rows that waited for it."""
    db.run("DELETE FROM outbox WHERE id = ?", row["id"])
    db.run(
        "UPDATE outbox SET held = '' WHERE held = 'next' AND experiment_id = ? AND webhook_id IS ?",
        row["experiment_id"],
        row["webhook_id"],
    )
