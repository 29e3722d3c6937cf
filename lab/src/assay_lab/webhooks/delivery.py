"""One attempt to deliver an update (contract 6): its destination, body, headers and signature, and the POST itself."""

import hashlib
import hmac
import json
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Literal

import httpx

from assay_lab.kernel import times
from assay_lab.kernel.faults import STALE_SECONDS, FaultList, WebhookFault
from assay_lab.kernel.store import Db, Row, decode_row
from assay_lab.requests.core import Lab
from assay_lab.vocabulary import ExperimentStatus

Level = Literal["experiment", "organization", "deployment"]

API_VERSION: Final = "2025-01"
EVENT: Final = "experiment_update"
# In place of a header's value that may be a secret.
MASK: Final = "********"
_LAB_DAYS_MAX: Final = 15  # contract 8
_ANSWER_BYTES_MAX: Final = 65_536


@dataclass(frozen=True, slots=True)
class Signing:
    """The secret of a delivery, the level where it is set (contract 6, rule 2), and the secret before its last change."""

    secret: str = field(repr=False)
    level: Level
    replaced: str | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Destination:
    url: str
    headers: Mapping[str, str] = field(repr=False)
    webhook: Row | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One signed POST, ready to be sent."""

    delivery_id: str
    url: str
    body: bytes
    headers: Mapping[str, str]
    custom: Mapping[str, str] = field(repr=False)  # the customer's headers; their values may be secrets
    signed_with: str
    fault: WebhookFault | None

    @property
    def action(self) -> str | None:
        """The fault's name."""
        return self.fault.action if self.fault else None

    @property
    def masked_headers(self) -> dict[str, str]:
        """All headers, without the values of the customer's."""
        return {**dict.fromkeys(self.custom, MASK), **self.headers}


def find_signing_secret(lab: Lab, db: Db, experiment: Row, webhook: Row | None) -> Signing:
    """The experiment's secret, else the organization's, else the deployment's (contract 6, rule 2)."""
    if experiment["webhook_secret"]:
        return Signing(experiment["webhook_secret"], "experiment", None)
    secret, replaced = organization_secret(db, experiment["org_id"], webhook)
    if secret is None:
        return Signing(lab.settings.deployment_secret, "deployment", replaced)
    return Signing(secret, "organization", replaced)


def organization_secret(db: Db, org_id: str, webhook: Row | None) -> tuple[str | None, str | None]:
    """The organization's secret for a webhook, and the one with which it signed before.

    In order: the webhook's own, the one seeded for the organization, that of its oldest enabled webhook with one.
    """
    replaced = webhook["replaced_secret"] if webhook else None
    if webhook is not None and webhook["secret"]:
        return webhook["secret"], replaced
    org = db.get("organizations", org_id)
    if org and org["webhook_secret"]:
        return org["webhook_secret"], replaced
    oldest = db.one(
        "SELECT secret, replaced_secret FROM webhooks"
        " WHERE org_id = ? AND enabled AND secret IS NOT NULL ORDER BY seq LIMIT 1",
        org_id,
    )
    return (oldest["secret"], replaced or oldest["replaced_secret"]) if oldest else (None, replaced)


def prepare_attempt(lab: Lab, db: Db, row: Row, faults: FaultList[WebhookFault]) -> Attempt | None:
    """The signed attempt for an outbox row; None when its destination or subject is gone."""
    experiment = db.get("experiments", row["experiment_id"])
    update = db.get("updates", row["update_id"])
    destination = _find_destination(db, experiment, row["webhook_id"]) if experiment else None
    if experiment is None or update is None or destination is None:
        return None
    signed = find_signing_secret(lab, db, experiment, destination.webhook)
    fault = faults.take(
        organization_id=row["org_id"],
        experiment_id=row["experiment_id"],
        webhook_id=row["webhook_id"],
        rotated=signed.replaced is not None,
        holdable=not row["was_held"],
    )
    if row["replay_of"] and (earlier := db.get("deliveries", row["replay_of"])):
        return _replay_attempt(earlier, destination, fault)
    now = lab.clock.now(row["org_id"])
    if fault is not None and fault.action == "stale":
        now -= timedelta(seconds=STALE_SECONDS if fault.seconds is None else fault.seconds)
    delivery_id = str(uuid.uuid4())
    content = json.dumps(_make_body(experiment, update, delivery_id, now)).encode()
    header = lab.settings.words.header
    headers = {
        "Content-Type": "application/json",
        header("Event"): EVENT,
        header("Delivery-Id"): delivery_id,
        header("Signature"): _sign_body(content, _choose_secret(signed, fault)),
    }
    return Attempt(delivery_id, destination.url, content, headers, destination.headers, signed.level, fault)


def _find_destination(db: Db, experiment: Row, webhook_id: str | None) -> _Destination | None:
    """The address as it is now, because it can change at any time."""
    if webhook_id is None:
        url = experiment["webhook_url"]
        return _Destination(url, {}, None) if url else None
    row = db.one("SELECT * FROM webhooks WHERE id = ? AND enabled", webhook_id)
    return _Destination(row["url"], decode_row(row, "headers")["headers"], row) if row else None


def _replay_attempt(earlier: Row, destination: _Destination, fault: WebhookFault | None) -> Attempt:
    headers = {name: value for name, value in json.loads(earlier["headers"]).items() if value != MASK}
    return Attempt(
        earlier["delivery_id"],
        destination.url,
        earlier["body"].encode(),
        headers,
        destination.headers,
        earlier["signed_with"],
        fault,
    )


def _sign_body(body: bytes, secret: str) -> str:
    return f"sha256={hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}"


def _choose_secret(signed: Signing, fault: WebhookFault | None) -> str:
    if fault is not None and fault.action == "bad_signature":
        return f"not {signed.secret}"
    if fault is not None and fault.action == "old_secret" and signed.replaced is not None:
        return signed.replaced
    return signed.secret


def _make_body(experiment: Row, update: Row, delivery_id: str, now: datetime) -> dict[str, Any]:
    return {
        "delivery_id": delivery_id,
        "event": EVENT,
        "timestamp": times.stamp(now),
        "api_version": API_VERSION,
        "data": {
            "type": "experiment.update",
            "experiment_id": experiment["id"],
            "experiment_code": experiment["code"],
            "organization_id": experiment["org_id"],
            "update_id": update["id"],
            "name": update["name"],
            "description": update["description"],
            "update_type": update["type"],
            "eta": _estimate_end(experiment, update),
            "created_at": update["created_at"],
        },
    }


def _estimate_end(experiment: Row, update: Row) -> str:
    """When the results are due: never null in the contract, so the longest lab window before the work begins."""
    if experiment["eta"] is not None:
        return str(experiment["eta"])
    if experiment["status"] == ExperimentStatus.CANCELED:
        return str(update["created_at"])
    return times.stamp(times.read(update["created_at"]) + timedelta(days=_LAB_DAYS_MAX))


def post_attempt(client: httpx.Client, attempt: Attempt, seconds: float) -> tuple[int | None, str | None]:
    """Send it; the status, or the name of the error that kept it from arriving."""
    end = time.monotonic() + seconds
    headers = {**attempt.custom, **attempt.headers}
    status: int | None = None
    try:
        # The answer is read, so that the connection can be used again, up to a bound of size and time.
        with client.stream("POST", attempt.url, content=attempt.body, headers=headers) as answer:
            status = answer.status_code
            size = 0
            for chunk in answer.iter_raw():
                size += len(chunk)
                if size > _ANSWER_BYTES_MAX or time.monotonic() > end:
                    break
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, OSError) as error:
        return (status, None) if status is not None else (None, type(error).__name__)
    return status, None
