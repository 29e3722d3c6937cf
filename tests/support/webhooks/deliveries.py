"""Genuine webhook deliveries as the contract describes them (section 6)."""

import hashlib
import hmac
import json
import uuid
from datetime import UTC, datetime

SIGNING_KEY = "signing-key-of-the-tests-0123456789"
ORDER_KEY = "0123456789abcdef0123"


def body_of(**changes) -> bytes:
    """A delivery's body; `data_<field>` changes a field of its data, None removes a field."""
    data = {
        "type": "experiment.update",
        "experiment_id": str(uuid.uuid4()),
        "experiment_code": "ORG-001-002",
        "organization_id": str(uuid.uuid4()),
        "update_id": str(uuid.uuid4()),
        "name": "Assay started",
        "description": "The assay is running.",
        "update_type": "status_change",
    }
    body = {
        "delivery_id": str(uuid.uuid4()),
        "event": "experiment_update",
        "timestamp": datetime.now(UTC).isoformat(),
        "api_version": "2026-01",
    }
    for field, value in changes.items():
        part, name = (data, field.removeprefix("data_")) if field.startswith("data_") else (body, field)
        part[name] = value
    whole = {**body, "data": data}
    return json.dumps(
        {k: v for k, v in whole.items() if v is not None}
        | {"data": {k: v for k, v in data.items() if v is not None}}
    ).encode()


def headers_of(body: bytes, secret: str, word: str = "Service") -> dict[str, str]:
    """The headers of contract 6, made without the code under test."""
    return {
        "Content-Type": "application/json",
        f"X-{word}-Event": "experiment_update",
        f"X-{word}-Delivery-Id": json.loads(body).get("delivery_id", ""),
        f"X-{word}-Signature": "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest(),
    }
