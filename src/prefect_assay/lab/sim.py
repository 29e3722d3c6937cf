"""The control surface /_sim: clock, faults, lab events, journals, seed and reset. Not part of the service.

It has its own token and does not appear in openapi.json.
"""

import hmac
import json
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from starlette.concurrency import run_in_threadpool

from prefect_assay.lab import sim_actions
from prefect_assay.lab.refusals import Refusal
from prefect_assay.lab.service import LabCore


def _guard(request: Request) -> LabCore:
    core: LabCore = request.app.state.core
    given = request.headers.get("authorization", "").encode()
    if not hmac.compare_digest(given, f"Bearer {core.lab.settings.sim_token}".encode()):
        raise Refusal(401, "the control surface takes the sim token")
    return core


async def _body(request: Request) -> dict[str, Any]:
    text = await request.body()
    try:
        raw = json.loads(text or b"{}")
    except ValueError as error:
        raise Refusal(400, f"malformed JSON: {error}") from error
    if not isinstance(raw, dict):
        raise Refusal(400, "the body must be an object")
    return raw


Core = Annotated[LabCore, Depends(_guard)]
router = APIRouter()


def _json(value: Any) -> Response:
    return Response(json.dumps(value, default=_plain), media_type="application/json")


def _plain(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


@router.get("/clock")
async def clock(core: Core, organization_id: str | None = None) -> Response:
    """Lab time, mode and rate."""
    return _json(sim_actions.clock(core, organization_id))


@router.post("/clock/advance")
async def advance(core: Core, request: Request) -> Response:
    """`{days|hours|minutes|seconds: number}` or `{until: "next"|"idle"|time}`; returns when all is delivered."""
    return _json(await run_in_threadpool(sim_actions.advance, core, await _body(request)))


@router.post("/clock/mode")
async def mode(core: Core, request: Request) -> Response:
    """`{mode, seconds_per_day?}`."""
    return _json(await run_in_threadpool(sim_actions.change_mode, core, await _body(request)))


@router.get("/journal")
async def journal(core: Core, after: int = 0) -> Response:
    """Requests to the API, oldest first."""
    return _json({"items": [asdict(entry) for entry in core.journal.entries(after)]})


@router.get("/deliveries")
async def deliveries(core: Core, after: int = 0) -> Response:
    """Webhook attempts, oldest first."""
    return _json({"items": sim_actions.deliveries(core, after)})


@router.get("/settlements")
async def settlements(core: Core) -> Response:
    """Every settlement, oldest first: the judge of paying once."""
    return _json({"items": await run_in_threadpool(sim_actions.settlements, core)})


@router.get("/x402")
async def x402(core: Core) -> Response:
    """What the lab offers on the x402 rail: network, asset, pay_to and so on."""
    return _json(asdict(core.lab.settings.x402))


@router.post("/faults")
async def add_fault(core: Core, request: Request) -> Response:
    """`{action, method?, path?, count?, status?, seconds?, retry_after?}`."""
    sim_actions.add_fault(core, await _body(request))
    return _json({"items": [asdict(fault) for fault in core.faults.waiting()]})


@router.delete("/faults")
async def clear_faults(core: Core) -> Response:
    """Drop all faults, of routes and webhooks."""
    core.faults.clear()
    core.webhook_faults.clear()
    return _json({})


@router.post("/webhook-faults")
async def add_webhook_fault(core: Core, request: Request) -> Response:
    """`{action, count?}`: drop, double or bad_signature for the next deliveries."""
    sim_actions.add_webhook_fault(core, await _body(request))
    return _json({})


@router.post("/events")
async def event(core: Core, request: Request) -> Response:
    """`{event, experiment_id, status?}`: expire_quote, force_status, pay_invoice or progress."""
    return _json(await run_in_threadpool(sim_actions.event, core, await _body(request)))


@router.post("/seed")
async def seed(core: Core, request: Request) -> Response:
    """`{slug, name?, payment_policy?, webhook_secret?}`: a further organisation with its own clock and tokens."""
    return _json(await run_in_threadpool(sim_actions.seed, core, await _body(request)))


@router.post("/reset")
async def reset(core: Core) -> Response:
    """Empty the lab."""
    return _json((await run_in_threadpool(core.reset)).view())
