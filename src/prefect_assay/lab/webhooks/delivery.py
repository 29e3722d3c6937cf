"""One attempt to deliver an update: its body, headers and signature (contract 6), and the POST itself."""

import hashlib
import hmac
import json
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import httpx

from prefect_assay.lab.kernel import times
from prefect_assay.lab.kernel.store import Db, Row
from prefect_assay.lab.requests.core import Lab
from prefect_assay.lab.webhooks import addressing
from prefect_assay.lab.webhooks.addressing import Destination, Signing
from prefect_assay.lab.webhooks.faults import STALE_SECONDS, Target, WebhookFault, WebhookFaults
from prefect_assay.lab.webhooks.rules import MASK
from prefect_assay.models.vocabulary import ExperimentStatus

API_VERSION: Final = "2025-01"
EVENT: Final = "experiment_update"
LAB_DAYS_MAX: Final = 15  # contract 8
_ANSWER_BYTES_MAX: Final = 65_536


@dataclass(frozen=True, slots=True)
class Attempt:
    """One POST, ready to be sent.

    Attributes:
        delivery_id: names this attempt.
        url: where it goes.
        body: the raw bytes that are signed.
        headers: the service's own.
        custom: the customer's; their values may be secrets.
        signed_with: the step that the secret comes from.
        fault: what goes wrong on purpose.
    """

    delivery_id: str
    url: str
    body: bytes
    headers: Mapping[str, str]
    custom: Mapping[str, str] = field(repr=False)
    signed_with: str
    fault: WebhookFault | None

    @property
    def action(self) -> str | None:
        """The fault's name."""
        return self.fault.action if self.fault else None

    @property
    def shown_headers(self) -> dict[str, str]:
        """As a journal may show them."""
        return {**dict.fromkeys(self.custom, MASK), **self.headers}


def sign(body: bytes, secret: str) -> str:
    """`sha256=<hex>`, HMAC-SHA256 of the raw body."""
    return f"sha256={hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}"


def prepare(lab: Lab, db: Db, row: Row, faults: WebhookFaults) -> Attempt | None:
    """The signed attempt for an outbox row; None when it has nowhere to go any more."""
    experiment = db.one("SELECT * FROM experiments WHERE id = ?", row["experiment_id"])
    update = db.one("SELECT * FROM updates WHERE id = ?", row["update_id"])
    if experiment is None or update is None:
        return None
    place = addressing.destination(db, experiment, row["webhook_id"])
    if place is None:
        return None
    signing = addressing.signing(lab, db, experiment, place.webhook)
    fault = faults.take(
        Target(
            organization_id=row["org_id"],
            experiment_id=row["experiment_id"],
            webhook_id=row["webhook_id"],
            rotated=signing.replaced is not None,
            holdable=not row["was_held"],
        )
    )
    earlier = db.one("SELECT * FROM deliveries WHERE id = ?", row["replay_of"]) if row["replay_of"] else None
    if earlier is not None:
        return _again(earlier, place, fault)
    now = lab.clock.now(row["org_id"])
    if fault is not None and fault.action == "stale":
        now = times.later(now, seconds=-(STALE_SECONDS if fault.seconds is None else fault.seconds))
    delivery_id = str(uuid.uuid4())
    content = json.dumps(body(experiment, update, delivery_id, now)).encode()
    header = lab.settings.words.header
    headers = {
        "Content-Type": "application/json",
        header("Event"): EVENT,
        header("Delivery-Id"): delivery_id,
        header("Signature"): sign(content, _secret(signing, fault)),
    }
    return Attempt(delivery_id, place.url, content, headers, place.headers, signing.step, fault)


def _secret(signing: Signing, fault: WebhookFault | None) -> str:
    if fault is not None and fault.action == "bad_signature":
        return f"not {signing.secret}"
    if fault is not None and fault.action == "old_secret" and signing.replaced is not None:
        return signing.replaced
    return signing.secret


def _again(earlier: Row, place: Destination, fault: WebhookFault | None) -> Attempt:
    """The very bytes and signature of an earlier attempt: what a replay looks like."""
    headers = {name: value for name, value in json.loads(earlier["headers"]).items() if value != MASK}
    content = earlier["body"].encode()
    return Attempt(
        earlier["delivery_id"], place.url, content, headers, place.headers, earlier["signed_with"], fault
    )


def body(experiment: Row, update: Row, delivery_id: str, now: datetime) -> dict[str, Any]:
    """The delivery's body (contract 6)."""
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
            "eta": eta(experiment, update),
            "created_at": update["created_at"],
        },
    }


def eta(experiment: Row, update: Row) -> str:
    """When the results are due. The contract makes it a date-time, never null, so it is an estimate at first.

    Before the work has begun, the longest lab window counts from the update; a canceled experiment ends with it.
    """
    if experiment["eta"] is not None:
        return str(experiment["eta"])
    told = times.read(update["created_at"])
    over = experiment["status"] == ExperimentStatus.CANCELED
    return times.stamp(told if over else times.later(told, days=LAB_DAYS_MAX))


def post(client: httpx.Client, attempt: Attempt, seconds: float) -> tuple[int | None, str | None]:
    """Send it; the status, or what kept it from arriving.

    Of the answer only the status counts: its body is read so far that the connection can be used again, and no
    further than a bound of size and time.
    """
    end = time.monotonic() + seconds
    headers = {**attempt.custom, **attempt.headers}
    status: int | None = None
    try:
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
