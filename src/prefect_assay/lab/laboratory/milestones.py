"""Carries out the milestones of the work in the lab, many at a time and in few statements.

A milestone only writes: a status or a piece of progress, what is released with it, and the update that tells of it.
It queues nothing and drops nothing, so those that follow each other can be read, and written, together. Everything
else that falls due is the state machine's (`machine`).
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from prefect_assay.lab.kernel import times
from prefect_assay.lab.kernel.store import Db, Row
from prefect_assay.lab.laboratory import measuring
from prefect_assay.lab.webhooks import addressing, outbox, updates
from prefect_assay.models.vocabulary import ExperimentStatus, ResultsStatus

KINDS: Final = frozenset({"status", "progress"})
RELEASES: Final[Mapping[str, ResultsStatus]] = {
    ExperimentStatus.IN_REVIEW: ResultsStatus.PARTIAL,
    ExperimentStatus.DONE: ResultsStatus.ALL,
}


def carry_out(db: Db, org_id: str, items: Sequence[Row], now: datetime) -> tuple[int, datetime]:
    """Carry out rows of the due-queue in order, up to the first that a customer is told of.

    `items` are rows of these `KINDS`; those carried out are removed. `now` moves on to each row's time, and never back.
    Returns how many were carried out, and the lab time of the last one.
    """
    experiments = _experiments(db, items)
    everybody = addressing.of_organization(db, org_id)
    told: list[Row] = []
    released: list[Row] = []
    changed: dict[str, dict[str, str]] = {}
    done = 0
    for item in items:
        done, now = done + 1, max(now, times.read(item["due_at"]))
        experiment = experiments.get(item["experiment_id"])
        if experiment is None:
            continue
        if item["kind"] == "progress":
            update = updates.entry(experiment, "progress", "Assay progress", item["detail"], now)
        else:
            status = ExperimentStatus(item["detail"])
            update = updates.of_status(experiment, status, now)
            results = RELEASES.get(status)
            if results is not None:
                released.append(measuring.released(db, experiment, results, now))
                changed.setdefault(experiment["id"], {})["results_status"] = results
            changed.setdefault(experiment["id"], {})["status"] = status
        told.append(update)
        if outbox.add_all(db, experiment, update["id"], addressing.choose(experiment, everybody), now):
            break
    db.run(
        "DELETE FROM due WHERE id IN (SELECT value FROM json_each(?))", [item["id"] for item in items[:done]]
    )
    db.insert_all("packages", released)
    db.run_all(
        "UPDATE experiments SET status = ?, results_status = coalesce(?, results_status) WHERE id = ?",
        [(new["status"], new.get("results_status"), key) for key, new in changed.items()],
    )
    db.insert_all("updates", told)
    return done, now


def _experiments(db: Db, items: Sequence[Row]) -> dict[str, Row]:
    """What a milestone needs of its experiment, and no more: rows are wide."""
    rows = db.all(
        "SELECT id, org_id, code, experiment_type, spec, webhook_url FROM experiments"
        " WHERE id IN (SELECT value FROM json_each(?))",
        sorted({item["experiment_id"] for item in items}),
    )
    return {row["id"]: row for row in rows}
