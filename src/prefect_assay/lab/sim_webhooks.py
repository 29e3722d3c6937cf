"""The control surface's part on webhooks: faults, journal, redelivery, releases and rotated secrets."""

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from prefect_assay.lab import sim_bodies, sim_deliveries, validation
from prefect_assay.lab.schemas import Body
from prefect_assay.lab.sim_base import Core, answer, body

router = APIRouter()


@router.get("/deliveries")
async def deliveries(core: Core, request: Request) -> Response:
    """Webhook attempts, oldest first; `after` the last number seen, of one experiment or one update."""
    wanted = validation.read(sim_bodies.DeliveriesQuery, dict(request.query_params))
    found = await run_in_threadpool(
        sim_deliveries.journal, core, wanted.after, wanted.experiment_id, wanted.update_id
    )
    return answer({"items": found})


@router.get("/outbox")
async def outbox(core: Core) -> Response:
    """What is still to be delivered, and what is held back."""
    return answer({"items": await run_in_threadpool(sim_deliveries.waiting, core)})


@router.post("/deliveries/{number}/redeliver")
async def redeliver_attempt(core: Core, request: Request, number: str) -> Response:
    """`{identical?}`: send a delivery again, named by its number or delivery id; its attempts."""
    return await _work(core, request, sim_bodies.Again, sim_deliveries.redeliver_attempt, number)


@router.post("/redeliver")
async def redeliver(core: Core, request: Request) -> Response:
    """`{update_id}`, or `{experiment_id}` for its latest update: send it to everybody who gets it now."""
    return await _work(core, request, sim_bodies.AboutUpdate, sim_deliveries.redeliver)


@router.post("/deliveries/release")
async def release(core: Core, request: Request) -> Response:
    """`{experiment_id?}`: deliver what `delay` and `reorder` hold back."""
    return await _work(core, request, sim_bodies.OfOneExperiment, sim_deliveries.release)


@router.get("/webhook-faults")
async def webhook_faults(core: Core) -> Response:
    """All webhook faults asked for, with their hits."""
    return answer({"items": core.webhook_faults.view()})


@router.post("/webhook-faults")
async def add_webhook_fault(core: Core, request: Request) -> Response:
    """`{action, count?, after?, probability?, seed?, organization_id?, experiment_id?, webhook_id?, seconds?}`."""
    sim_deliveries.add_fault(core, await _checked(request, sim_bodies.AskWebhookFault))
    return answer({"items": core.webhook_faults.view()})


@router.delete("/webhook-faults")
async def clear_webhook_faults(core: Core) -> Response:
    """Drop the webhook faults, and no others."""
    core.webhook_faults.clear()
    return answer({})


@router.post("/webhook-secrets")
async def rotate(core: Core, request: Request) -> Response:
    """`{secret, experiment_id | organization_id}`: another secret from now on; `old_secret` signs with the last."""
    return await _work(core, request, sim_bodies.NewSecret, sim_deliveries.rotate)


async def _checked(request: Request, schema: type[Body]) -> dict[str, Any]:
    """The body as it was sent, once its names and types are right."""
    raw = await body(request)
    validation.read(schema, raw)
    return raw


async def _work(
    core: Core, request: Request, schema: type[Body], action: Callable[..., Any], *given: Any
) -> Response:
    raw = await _checked(request, schema)
    return answer(await run_in_threadpool(action, core, raw, *given))
