"""Delivers to one's own receiver what the service would deliver: once unsigned, once signed. Neither wakes a run."""

import json
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Final
from uuid import uuid4

import httpx
from pydantic import SecretStr

from prefect_assay.service.models.service import WireWords
from prefect_assay.service.webhook_signature import EVENT, sign

_SECONDS: Final = 10.0
_SHOWN: Final = 200
_NO_EXPERIMENT: Final = "00000000-0000-4000-8000-000000000000"


def find_delivery_problem(address: str, secret: SecretStr, words: WireWords) -> str | None:
    """Return why a receiver would lose or believe the wrong deliveries; None if it refuses the unsigned and takes the signed one."""
    body = _body()
    headers = {"Content-Type": "application/json", words.header("Event"): EVENT}
    headers[words.header("Delivery-Id")] = json.loads(body)["delivery_id"]
    signature = {words.header("Signature"): sign(body, secret.get_secret_value())}
    try:
        unsigned = httpx.post(address, content=body, headers=headers, timeout=_SECONDS)
        signed = httpx.post(address, content=body, headers=headers | signature, timeout=_SECONDS)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return f"it takes no delivery ({type(error).__name__})"
    if unsigned.status_code != HTTPStatus.UNAUTHORIZED:
        return f"it answers {unsigned.status_code} to an unsigned delivery, where 401 is expected"
    if not signed.is_success:
        return (
            f"it answers {signed.status_code} to what its key signs under {', '.join(signature)}: "
            f"{signed.text[:_SHOWN]}"
        )
    return None


def _body() -> bytes:
    now = datetime.now(UTC).isoformat()
    data = {
        "type": "experiment.update",
        "experiment_id": _NO_EXPERIMENT,
        "update_id": f"rehearsal-{uuid4()}",
        "name": "test delivery of prefect-assay rehearse",
    }
    body = {"delivery_id": str(uuid4()), "event": EVENT, "timestamp": now, "data": data}
    return json.dumps(body).encode()
