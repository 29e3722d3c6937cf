"""Customer-facing updates: one row in the feed, and one delivery in the outbox per webhook that gets it (contract 6)."""

import uuid
from datetime import datetime
from typing import Any, Final, Literal

from prefect_assay.lab import addressing, outbox
from prefect_assay.lab.store import Db, Row
from prefect_assay.models.vocabulary import ExperimentStatus

UpdateType = Literal["status_change", "progress", "error"]

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


def title(status: str) -> str:
    """`waiting_for_materials` as a person reads it."""
    return status.replace("_", " ").capitalize()


def record(db: Db, experiment: Row, kind: UpdateType, name: str, description: str, at: datetime) -> None:
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
            "created_at": at,
        },
    )
    for webhook_id in addressing.recipients(db, experiment):
        outbox.add(db, experiment, update_id, webhook_id, at)


def move(db: Db, experiment: Row, status: ExperimentStatus, at: datetime, **further: Any) -> None:
    """Give the experiment a status, and further columns that change with it, and tell the customer."""
    db.update("experiments", experiment["id"], status=status, **further)
    record(db, experiment, "status_change", title(status), DESCRIPTIONS[status], at)
