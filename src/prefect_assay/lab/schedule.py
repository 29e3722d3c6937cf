"""The durable due-queue: what the lab has still to do, and when in lab time.

A row is deleted in the transaction that carries out its effect. `passive` rows (a quote's expiry) happen when
time passes them, but nobody moves the clock for their sake.
"""

from datetime import datetime

from prefect_assay.lab.store import Db, Row


def add(  # noqa: D417 - the rest is named for what it is
    db: Db, experiment: Row, due_at: datetime, kind: str, *, detail: str | None = None, passive: bool = False
) -> None:
    """Queue one thing.

    Args:
        detail: what `kind` needs to know, such as a status or a quote's id.
    """
    db.insert(
        "due",
        {
            "org_id": experiment["org_id"],
            "experiment_id": experiment["id"],
            "due_at": due_at,
            "kind": kind,
            "detail": detail,
            "passive": int(passive),
        },
    )


def following(db: Db, org_id: str, *, passive: bool) -> Row | None:
    """The next thing due, leaving passive things out unless asked for."""
    return db.one(
        "SELECT * FROM due WHERE org_id = ? AND passive <= ? ORDER BY due_at, id LIMIT 1",
        org_id,
        int(passive),
    )


def forget(db: Db, experiment_id: str) -> None:
    """Drop everything queued for an experiment (it went back to draft, or was canceled)."""
    db.run("DELETE FROM due WHERE experiment_id = ?", experiment_id)
