"""The control surface /_sim: clock, faults, lab events, journals, snapshots, seed and reset. Not part of the service.

What concerns webhooks stands in `sim_webhooks`. It has its own token and does not appear in openapi.json.
"""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from prefect_assay.lab import events, sim_actions, sim_bodies, validation
from prefect_assay.lab.faults import Fault
from prefect_assay.lab.limiter import RateLimit
from prefect_assay.lab.schemas import Body
from prefect_assay.lab.sim_base import Core, answer, body

router = APIRouter()


async def _post(core: Core, request: Request, schema: type[Body], action: Callable[..., Any]) -> Response:
    wanted = validation.read(schema, await body(request))
    return answer(await run_in_threadpool(action, core, wanted))


async def _get(core: Core, request: Request, schema: type[Body], action: Callable[..., Any]) -> Response:
    wanted = validation.read(schema, dict(request.query_params))
    return answer(await run_in_threadpool(action, core, wanted))


@router.get("/clock")
async def clock(core: Core, request: Request) -> Response:
    """Lab time, mode and rate."""
    return await _get(core, request, sim_bodies.OfOrganization, sim_actions.clock)


@router.post("/clock/advance")
async def advance(core: Core, request: Request) -> Response:
    """`{days, hours, minutes, seconds}` or `{until: "next"|"idle"|time}`; returns when all is delivered."""
    return await _post(core, request, sim_bodies.Advance, sim_actions.advance)


@router.post("/clock/mode")
async def mode(core: Core, request: Request) -> Response:
    """`{mode, seconds_per_day?}`."""
    return await _post(core, request, sim_bodies.Mode, sim_actions.change_mode)


@router.get("/journal")
async def journal(core: Core, request: Request) -> Response:
    """Requests to the API, oldest first: `?after=&method=&path=&organization_id=`."""
    return await _get(core, request, sim_bodies.JournalQuery, sim_actions.journal)


@router.get("/settlements")
async def settlements(core: Core) -> Response:
    """Every settlement, oldest first: the judge of paying once."""
    return answer({"items": await run_in_threadpool(sim_actions.settlements, core)})


@router.get("/x402")
async def x402(core: Core) -> Response:
    """What the lab offers on the x402 rail: network, asset, pay_to and so on."""
    return answer(asdict(core.lab.settings.x402))


@router.get("/faults")
async def faults(core: Core) -> Response:
    """All faults with their counts, used up or not."""
    return answer({"items": core.faults.views()})


@router.post("/faults")
async def add_fault(core: Core, request: Request) -> Response:
    """A fault, see `Fault`; its view with an id."""
    return await _post(core, request, Fault, sim_actions.add_fault)


@router.delete("/faults")
async def clear_faults(core: Core, request: Request) -> Response:
    """Drop all faults, of routes and webhooks; with `?organization_id=` its route faults only."""
    return await _get(core, request, sim_bodies.OfOrganization, sim_actions.clear_faults)


@router.delete("/faults/{fault_id}")
async def remove_fault(core: Core, fault_id: str) -> Response:
    """Drop one route fault."""
    return answer(sim_actions.remove_fault(core, fault_id))


@router.get("/rate-limit")
async def rate_limit(core: Core) -> Response:
    """What is in force, and how many requests it has refused."""
    return answer(core.limiter.view())


@router.post("/rate-limit")
async def limit_rate(core: Core, request: Request) -> Response:
    """`{requests, per_seconds, organization_id?}`: 429 with Retry-After beyond that, for each token."""
    return await _post(core, request, RateLimit, sim_actions.limit_rate)


@router.delete("/rate-limit")
async def end_rate_limit(core: Core) -> Response:
    """No limit any more."""
    return answer(sim_actions.limit_rate(core, None))


@router.get("/events")
async def event_names(core: Core) -> Response:
    """The events that there are."""
    del core
    return answer({"items": list(events.EVENTS)})


@router.post("/events")
async def event(core: Core, request: Request) -> Response:
    """`{event, ...}`: something that happens at the lab's side; docs/lab.md lists the events and their fields."""
    return answer(await run_in_threadpool(sim_actions.event, core, await body(request)))


@router.post("/plan")
async def plan(core: Core, request: Request) -> Response:
    """`{organization_id? | experiment_id?, quote_minutes?, review_minutes?, window_days?, hold_quote?, hold_review?}`."""
    return await _post(core, request, sim_bodies.FixPlan, sim_actions.fix_plan)


@router.post("/seed")
async def seed(core: Core, request: Request) -> Response:
    """`{slug, name?, payment_policy?, webhook_secret?, experiments?, plan?}`: an organisation with its own clock."""
    return await _post(core, request, sim_bodies.Seed, sim_actions.seed)


@router.post("/experiments")
async def fill(core: Core, request: Request) -> Response:
    """`{experiments, stage?, sequences?, organization_id?}`: many at once, for load tests."""
    return await _post(core, request, sim_bodies.Fill, sim_actions.fill)


@router.get("/snapshots")
async def snapshots(core: Core) -> Response:
    """What is kept, oldest first."""
    return answer({"items": sim_actions.snapshots(core)})


@router.post("/snapshots")
async def snapshot(core: Core, request: Request) -> Response:
    """`{name?}`: keep database, clocks, faults, rate limit and the journal's position."""
    return await _post(core, request, sim_bodies.SnapshotName, sim_actions.snapshot)


@router.post("/snapshots/{snapshot_id}/restore")
async def restore(core: Core, snapshot_id: str) -> Response:
    """Back to a snapshot."""
    return answer(await run_in_threadpool(sim_actions.restore, core, snapshot_id))


@router.delete("/snapshots/{snapshot_id}")
async def delete_snapshot(core: Core, snapshot_id: str) -> Response:
    """Forget a snapshot."""
    return answer(sim_actions.delete_snapshot(core, snapshot_id))


@router.post("/reset")
async def reset(core: Core) -> Response:
    """Empty the lab."""
    return answer((await run_in_threadpool(core.reset)).view())
