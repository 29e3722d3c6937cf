"""The durable due-queue: what the lab has still to do, and when in lab time.

A row is deleted in the transaction that carries out its effect. `passive` rows (a quote's expiry) happen when time
passes them, and no clock is moved for them.
"""

from datetime import UTC, datetime
from typing import Final

from assay_lab.kernel.store import Db, Row

# Later than any clock can be (`clock_driver`): a held row waits for a lab event.
NEVER: Final = datetime(9999, 1, 1, tzinfo=UTC)


def make_entry(
    experiment: Row,
    due_at: datetime,
    kind: str,
    *,
    detail: str | None = None,
    passive: bool = False,
    held: bool = False,
) -> Row:
    """One row for the queue, with the `detail` that its kind needs; a `held` one waits for its release."""
    return {
        "org_id": experiment["org_id"],
        "experiment_id": experiment["id"],
        "due_at": NEVER if held else due_at,
        "kind": kind,
        "detail": detail,
        "passive": int(passive or held),
    }


def add_entries(db: Db, *entries: Row) -> None:
    """Queue rows."""
    db.insert_all("due", entries)


def find_following(db: Db, org_id: str, until: datetime = NEVER, *, passive: bool) -> Row | None:
    """The next row due until then, without passive ones unless `passive`."""
    return db.one(
        "SELECT * FROM due WHERE org_id = ? AND passive <= ? AND due_at <= ? ORDER BY due_at, id LIMIT 1",
        org_id,
        int(passive),
        until,
    )


def find_queued(db: Db, experiment_id: str, kind: str, detail: str | None = None) -> Row | None:
    """One queued row of an experiment."""
    return db.one(
        "SELECT * FROM due WHERE experiment_id = ? AND kind = ? AND ? IN ('', detail)",
        experiment_id,
        kind,
        detail or "",
    )


def hold_entry(db: Db, item: Row) -> None:
    """Let a queued row wait until it is released."""
    db.update("due", item["id"], due_at=NEVER, passive=1)


def put_off(db: Db, item: Row, due_at: datetime) -> None:
    """Reschedule a queued row, held or not."""
    db.update("due", item["id"], due_at=due_at, passive=0)


def drop_entries(db: Db, experiment_id: str) -> None:
    """Drop everything queued for an experiment (it went back to draft, or was canceled)."""
    db.run("DELETE FROM due WHERE experiment_id = ?", experiment_id)
