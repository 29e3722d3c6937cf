"""Customer-facing updates (contract 2.9 and 6): the feed, and a queued delivery per webhook that gets one."""

import uuid
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, Literal

from assay_lab.kernel.store import Db, Row
from assay_lab.requests import lists
from assay_lab.requests.core import Answer, Call, experiment_of
from assay_lab.requests.lists import Column, Listing, Sql
from assay_lab.vocabulary import ExperimentStatus
from assay_lab.webhooks import outbox

UpdateType = Literal["status_change", "progress", "error"]

LISTING: Final = Listing(
    source="updates JOIN experiments e ON e.id = updates.experiment_id",
    select="updates.*, e.code AS experiment_code",
    columns={
        "id": Column("updates.id", "uuid"),
        "experiment_id": Column("updates.experiment_id", "uuid"),
        "experiment_code": Column("e.code"),
        "name": Column("updates.name"),
        "type": Column("updates.type", "enum", frozenset({"status_change", "progress", "error"})),
        "timestamp": Column("updates.created_at", "timestamp"),
        "created_at": Column("updates.created_at", "timestamp"),
    },
    search=("updates.name", "e.code"),
    plain=("experiment_id", "type"),
)
IN_ORDER: Final = replace(LISTING, plain=(), order="updates.seq")

DESCRIPTIONS: Final[dict[str, str]] = {
    ExperimentStatus.DRAFT: "The experiment is a draft again and can be edited.",
    ExperimentStatus.WAITING_FOR_CONFIRMATION: "The experiment is under review and a quote is being prepared.",
    ExperimentStatus.QUOTE_SENT: "The quote is ready to be reviewed and confirmed.",
    ExperimentStatus.WAITING_FOR_MATERIALS: "The order is confirmed. Gene fragments and target are ordered.",
    ExperimentStatus.IN_QUEUE: "All materials have arrived. The experiment is queued for the laboratory.",
    ExperimentStatus.IN_PRODUCTION: "The assay is running.",
    ExperimentStatus.DATA_ANALYSIS: "Raw data are collected and are being processed.",
    ExperimentStatus.IN_REVIEW: "The data are in final validation. Preliminary results are available.",
    ExperimentStatus.DONE: "The results are released.",
    ExperimentStatus.CANCELED: "The experiment was canceled.",
}


def list_recipients(db: Db, experiment: Row) -> list[str | None]:
    """The webhooks that get an update, oldest first; None is the experiment's own address, which overrides the others."""
    if experiment["webhook_url"]:
        return [None]
    sql = "SELECT id FROM webhooks WHERE org_id = ? AND enabled ORDER BY seq"
    return db.column(sql, experiment["org_id"])


def record_update(
    db: Db, experiment: Row, kind: UpdateType, name: str, description: str, created_at: datetime
) -> None:
    """Write an update of an experiment, given as its whole row, and queue its webhook deliveries."""
    update_id = str(uuid.uuid4())
    db.insert(
        "updates",
        {
            "id": update_id,
            "org_id": experiment["org_id"],
            "experiment_id": experiment["id"],
            "type": kind,
            "name": name,
            "description": description,
            "created_at": created_at,
        },
    )
    for webhook_id in list_recipients(db, experiment):
        outbox.add_delivery(db, experiment, update_id, webhook_id, created_at)


def move_experiment(
    db: Db, experiment: Row, status: ExperimentStatus, moved_at: datetime, **further: Any
) -> None:
    """Set an experiment's status, and further columns, and announce it."""
    db.update("experiments", experiment["id"], status=status, **further)
    title = status.replace("_", " ").capitalize()
    record_update(db, experiment, "status_change", title, DESCRIPTIONS[status], moved_at)


def list_updates(call: Call) -> Answer:
    """GET /updates: the whole organization's feed, newest first."""
    return lists.make_page(call, LISTING, _view_item)


def of_experiment(call: Call) -> Answer:
    """GET /experiments/{id}/updates, oldest first (service shapes)."""
    with call.lab.store.transaction() as db:
        condition = Sql("updates.experiment_id = ?", (experiment_of(db, call)["id"],))
        return lists.make_page(call, IN_ORDER, _view_item, only=(condition,))


def _view_item(row: Row) -> dict[str, Any]:
    names = ("id", "experiment_id", "experiment_code", "name")
    return {name: row[name] for name in names} | {"timestamp": row["created_at"]}
