"""What all routers of the control surface share: its token, and JSON in and out."""

import hmac
import json
from datetime import datetime
from typing import Annotated, Any

from fastapi import Depends, Request, Response
from pydantic_core import from_json

from prefect_assay.lab.refusals import Refusal
from prefect_assay.lab.service import LabCore


def guard(request: Request) -> LabCore:
    """The lab, for whoever holds the sim token."""
    core: LabCore = request.app.state.core
    given = request.headers.get("authorization", "").encode()
    if not hmac.compare_digest(given, f"Bearer {core.lab.settings.sim_token}".encode()):
        raise Refusal(401, "the control surface takes the sim token")
    return core


async def body(request: Request) -> dict[str, Any]:
    """The JSON object of the body; an empty one without."""
    text = await request.body()
    try:
        raw = from_json(text or b"{}", allow_inf_nan=False)
    except ValueError as error:
        raise Refusal(400, f"malformed JSON: {error}") from error
    if not isinstance(raw, dict):
        raise Refusal(400, "the body must be an object")
    return raw


def known(body: dict[str, Any], *names: str) -> None:
    """Refuse fields that mean nothing here."""
    unknown = sorted(set(body) - set(names))
    if unknown:
        raise Refusal(400, f"unknown fields: {', '.join(unknown)}; known are {', '.join(names)}")


def answer(value: Any) -> Response:
    """JSON."""
    return Response(json.dumps(value, default=_plain), media_type="application/json")


def _plain(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


Core = Annotated[LabCore, Depends(guard)]
