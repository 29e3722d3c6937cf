"""Handlers of the control surface about webhooks: faults, journal, redelivery and releases."""

import hashlib
import json
from typing import Any

from assay_lab.control import bodies, commands
from assay_lab.control.actions import organization_of
from assay_lab.control.surface import Core, Surface
from assay_lab.kernel.faults import WebhookFault
from assay_lab.kernel.refusals import Refusal
from assay_lab.kernel.store import Row
from assay_lab.service.core import LabCore
from assay_lab.webhooks import outbox

router = Surface()


@router.handles(commands.DELIVERIES)
def _list_deliveries(core: Core, query: bodies.DeliveriesQuery) -> dict[str, Any]:
    return {"items": list_attempts(core, query.after, query.experiment_id, query.update_id)}


def list_attempts(
    core: LabCore, after: int, experiment_id: str | None = None, update_id: str | None = None
) -> list[Row]:
    """Attempts, oldest first. Bodies are shown by digest, headers of the customer's own masked."""
    with core.lab.store.transaction() as db:
        rows = db.all(
            "SELECT * FROM deliveries WHERE id > ? AND (? IS NULL OR experiment_id = ?)"
            " AND (? IS NULL OR update_id = ?) ORDER BY id",
            after,
            experiment_id,
            experiment_id,
            update_id,
            update_id,
        )
    return [_summarize_attempt(row) for row in rows]


def _summarize_attempt(row: Row) -> Row:
    content = row["body"].encode()
    shown = {name: value for name, value in row.items() if name != "body"}
    digest = {"body_sha256": hashlib.sha256(content).hexdigest(), "body_bytes": len(content)}
    return shown | digest | {"headers": json.loads(row["headers"])}


@router.handles(commands.OUTBOX)
def _list_unsent(core: Core) -> dict[str, Any]:
    return {"items": list_waiting(core)}


def list_waiting(core: LabCore) -> list[Row]:
    """The outbox. `held` is `next`, `time` or `release` for what a fault holds back."""
    with core.lab.store.transaction() as db:
        return db.all(
            "SELECT id, org_id, experiment_id, update_id, webhook_id, due_at, attempts, held FROM outbox ORDER BY id"
        )


@router.handles(commands.WEBHOOK_FAULTS)
def _list_faults(core: Core) -> dict[str, Any]:
    return {"items": core.webhook_faults.view()}


@router.handles(commands.ADD_WEBHOOK_FAULT)
def add_fault(core: Core, body: WebhookFault) -> dict[str, Any]:
    """Ask for a webhook fault."""
    organization_of(core, body.organization_id)
    core.webhook_faults.append(body)
    return _list_faults(core)


@router.handles(commands.RELEASE)
def release_held(core: Core, body: bodies.OptionalExperiment) -> dict[str, Any]:
    """Deliver what is held back, of one experiment or of all."""
    with core.lab.store.transaction() as db:
        held = [row["org_id"] for row in db.all("SELECT DISTINCT org_id FROM outbox WHERE held <> ''")]
        released = sum(
            outbox.release_deliveries(
                db, org_id, core.lab.clock.now(org_id), experiment_id=body.experiment_id
            )
            for org_id in held
        )
    for org_id in held:
        core.sender.deliver(org_id)
    return {"released": released}


@router.handles(commands.REDELIVER)
def redeliver_attempt(core: Core, body: bodies.Redelivery, number: str) -> dict[str, Any]:
    """Send a delivery again to where it went: as a new attempt, or `identical`, byte for byte and signature."""
    digits = number.isascii() and number.isdigit() and len(number) < len(str(2**63))
    with core.lab.store.transaction() as db:
        row = db.one(
            "SELECT * FROM deliveries WHERE id = ? OR delivery_id = ? ORDER BY id DESC LIMIT 1",
            int(number) if digits else None,
            number,
        )
        if row is None:
            raise Refusal(404, f"no delivery {number!r}")
        experiment = {"id": row["experiment_id"], "org_id": row["org_id"]}
        again = row["id"] if body.identical else None
        now = core.lab.clock.now(row["org_id"])
        outbox.add_delivery(db, experiment, row["update_id"], row["webhook_id"], now, replay_of=again)
        last = db.one("SELECT COALESCE(MAX(id), 0) AS id FROM deliveries") or {"id": 0}
    # What comes of it at once; retries follow as always.
    core.sender.deliver(row["org_id"])
    core.lab.changed()
    return {"items": list_attempts(core, last["id"], row["experiment_id"], row["update_id"])}
