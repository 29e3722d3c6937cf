"""Customer-facing updates: one row in the feed, and one delivery in the outbox per webhook that gets it (contract 6)."""

import uuid
from datetime import datetime
from typing import Any, Final, Literal

from prefect_assay.lab.kernel.store import Db, Row
from prefect_assay.lab.webhooks import addressing, outbox
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
    _write(db, experiment, entry(experiment, kind, name, description, at), at)


def entry(experiment: Row, kind: UpdateType, name: str, description: str, at: datetime) -> Row:
    """The row of an update."""
    return {
        "id": str(uuid.uuid4()),
        "org_id": experiment["org_id"],
        "experiment_id": experiment["id"],
        "type": kind,
        "name": name,
        "description": description,
        "created_at": at,
    }


def of_status(experiment: Row, status: ExperimentStatus, at: datetime) -> Row:
    """The row of the update that tells of a status."""
    return entry(experiment, "status_change", title(status), DESCRIPTIONS[status], at)


def _write(db: Db, experiment: Row, update: Row, at: datetime) -> None:
    db.insert("updates", update)
    outbox.add_all(db, experiment, update["id"], addressing.recipients(db, experiment), at)


def move(db: Db, experiment: Row, status: ExperimentStatus, at: datetime, **further: Any) -> None:
    """Give the experiment a status, and further columns that change with it, and tell the customer."""
    db.update("experiments", experiment["id"], status=status, **further)
    _write(db, experiment, of_status(experiment, status, at), at)
