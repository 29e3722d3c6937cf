"""The organisation's webhooks: where deliveries go for experiments without one of their own (service shapes).

The secret is never shown. Header values may be credentials: whoever may change a webhook sees them, a reader sees
their names. Who gets what is decided in `addressing`.
"""

import uuid
from collections.abc import Mapping
from functools import partial
from typing import Any

from prefect_assay.lab.kernel.refusals import Refusal
from prefect_assay.lab.kernel.store import Db, Row, load
from prefect_assay.lab.requests import validation
from prefect_assay.lab.requests.core import Answer, Call, owned, uuid_or_none
from prefect_assay.lab.requests.schemas import CreateWebhook, ModifyWebhook
from prefect_assay.lab.requests.validation import Finding
from prefect_assay.lab.webhooks import addressing
from prefect_assay.lab.webhooks import rules as webhook_rules


def listing(call: Call) -> Answer:
    """GET /webhooks: a plain array, oldest first."""
    masked = not _may_change(call)
    with call.lab.store.transaction() as db:
        rows = db.all("SELECT * FROM webhooks WHERE org_id = ? ORDER BY seq", call.who.org_id)
    return Answer([_view(row, masked=masked) for row in rows])


def create(call: Call) -> Answer:
    """POST /webhooks."""
    wanted = validation.read(CreateWebhook, call.json(), partial(_findings, call))
    at = call.now()
    row: Row = {
        "id": str(uuid.uuid4()),
        "org_id": call.who.org_id,
        "url": wanted.url,
        "secret": wanted.secret,
        "headers": wanted.headers or {},
        "enabled": 1,
        "created_at": at,
        "updated_at": at,
    }
    with call.lab.store.transaction() as db:
        db.insert("webhooks", row)
        return Answer(_view(_find(db, call, row["id"])), 201)


def modify(call: Call) -> Answer:
    """PATCH /webhooks/{webhook_id}: what is named changes; it holds from the next attempt on."""
    raw = call.json()
    wanted, findings = validation.shape(ModifyWebhook, raw)
    if wanted is not None:
        findings += _findings(call, wanted)
    with call.lab.store.transaction() as db:
        row = _find(db, call, call.path["webhook_id"])
        validation.refuse(findings)
        changes = _changes(row, raw)
        if "secret" in changes:
            _, before = addressing.organization_secret(db, row["org_id"], row)
            before = before or call.lab.settings.deployment_secret
            addressing.keep_replaced(db, row["id"], before, call.now())
        if changes:
            db.update("webhooks", row["id"], **changes, updated_at=call.now())
        return Answer(_view(_find(db, call, row["id"])))


def delete(call: Call) -> Answer:
    """DELETE /webhooks/{webhook_id}: what is still to be delivered there is not sent any more."""
    with call.lab.store.transaction() as db:
        row = _find(db, call, call.path["webhook_id"])
        db.run("DELETE FROM webhooks WHERE id = ?", row["id"])
        db.run("DELETE FROM outbox WHERE webhook_id = ?", row["id"])
    return Answer(None, 204)


def _findings(call: Call, wanted: CreateWebhook | ModifyWebhook) -> list[Finding]:
    settings = call.lab.settings
    found = webhook_rules.url_findings(wanted.url, private=settings.allow_http_webhooks)
    return found + webhook_rules.header_findings(wanted.headers, own_prefix=settings.words.header(""))


def _changes(row: Row, raw: Mapping[str, Any]) -> dict[str, Any]:
    """Null clears the secret; any other null leaves the field alone."""
    found = {name: raw[name] for name in ("url", "headers") if raw.get(name) is not None}
    if raw.get("enabled") is not None:
        found["enabled"] = int(raw["enabled"])
    if "secret" in raw and raw["secret"] != row["secret"]:
        found["secret"] = raw["secret"]
    return {name: value for name, value in found.items() if value != load(row, "headers")[name]}


def _find(db: Db, call: Call, webhook_id: str) -> Row:
    return owned(db, call, "webhooks", uuid_or_none(webhook_id), "webhook")


def _may_change(call: Call) -> bool:
    try:
        call.lab.tokens.authorize(call.who, "update", "webhook", destructive=False)
    except Refusal:
        return False
    return True


def _view(row: Row, *, masked: bool = False) -> dict[str, Any]:
    headers = load(row, "headers")["headers"]
    return {
        "id": row["id"],
        "url": row["url"],
        "secret_set": row["secret"] is not None,
        "headers": dict.fromkeys(headers, webhook_rules.MASK) if masked else headers,
        "enabled": bool(row["enabled"]),
        "created_at": row["created_at"],
        "updated_at": row["updated_at"],
    }
