"""Handlers of the control surface, except those about webhooks (lab/docs/lab.md has the table of calls)."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import Body

from assay_lab.control import bodies, commands, events
from assay_lab.control.surface import Core, Surface
from assay_lab.experiments import delays
from assay_lab.kernel import times
from assay_lab.kernel.faults import PaymentFault
from assay_lab.kernel.refusals import Refusal
from assay_lab.rails import RAILS, get_rail, rail_settings
from assay_lab.requests import validation
from assay_lab.requests.core import uuid_or_none
from assay_lab.service import seeding
from assay_lab.service.core import LabCore
from assay_lab.service.faults import Fault

router = Surface()


def organization_of(core: LabCore, org_id: str | None) -> str:
    """The given organization, else the default one; 404 for an unknown id."""
    if org_id is None:
        return core.seeded.organization_id
    with core.lab.store.transaction() as db:
        if db.one("SELECT 1 FROM organizations WHERE id = ?", org_id) is None:
            raise Refusal(404, f"no organization {org_id!r}")
    return org_id


@router.handles(commands.CLOCK)
def _get_clock(core: Core, query: bodies.OfOrganization) -> dict[str, Any]:
    return _clock_view(core, organization_of(core, query.organization_id))


def _clock_view(core: LabCore, org_id: str) -> dict[str, Any]:
    row = core.lab.clock.row(org_id)
    return {
        "organization_id": org_id,
        "now": times.stamp(core.lab.clock.now(org_id)),
        "mode": row["mode"],
        "seconds_per_day": row["seconds_per_day"],
    }


@router.handles(commands.ADVANCE_CLOCK)
def _advance_clock(core: Core, body: bodies.Advance) -> dict[str, Any]:
    org_id = organization_of(core, body.organization_id)
    if body.until == "next":
        steps = core.clock_driver.to_next(org_id)
    elif body.until == "idle":
        steps = core.clock_driver.until_idle(org_id)
    else:
        steps = core.clock_driver.advance(org_id, _read_moment(core, org_id, body))
    return _clock_view(core, org_id) | {"steps": steps}


def _read_moment(core: LabCore, org_id: str, body: bodies.Advance) -> datetime:
    try:
        if body.until is not None:
            return times.parse(body.until)
        return core.lab.clock.now(org_id) + body.delta()
    except (ValueError, OverflowError) as error:
        raise Refusal(400, f'until: "next", "idle" or an ISO 8601 time: {error}') from error


@router.handles(commands.SET_CLOCK)
def _change_mode(core: Core, body: bodies.Mode) -> dict[str, Any]:
    org_id = organization_of(core, body.organization_id)
    core.lab.clock.change_mode(org_id, body.mode, body.seconds_per_day)
    core.lab.changed()
    return _clock_view(core, org_id)


@router.handles(commands.JOURNAL)
def _get_journal(core: Core, query: bodies.JournalQuery) -> dict[str, Any]:
    entries = core.journal.entries(
        query.after, method=query.method, path=query.path, organization_id=query.organization_id
    )
    return {"items": entries, "position": core.journal.position}


@router.handles(commands.SETTLEMENTS)
def _list_settlements(core: Core) -> dict[str, Any]:
    """One row per settlement, not per invoice: an invoice that was paid twice has two."""
    with core.lab.store.transaction() as db:
        return {"items": db.all("SELECT * FROM settlements ORDER BY id")}


@router.handles(commands.RAIL)
def _get_rail(core: Core, method: str) -> dict[str, Any]:
    rail = get_rail(method)
    if rail is None:
        raise Refusal(404, f"no rail {method!r}; there are {', '.join(rail.method for rail in RAILS)}")
    return rail.show_settings(rail_settings(core.lab.settings, rail))


@router.handles(commands.PAYMENT_FAULTS)
def _payment_faults(core: Core) -> dict[str, Any]:
    return {"items": core.lab.payment_faults.view()}


@router.handles(commands.ADD_PAYMENT_FAULT)
def _add_payment_fault(core: Core, body: PaymentFault) -> dict[str, Any]:
    organization_of(core, body.organization_id)
    core.lab.payment_faults.append(body)
    return _payment_faults(core)


@router.handles(commands.CLEAR_PAYMENT_FAULTS)
def _clear_payment_faults(core: Core, query: bodies.OfOrganization) -> dict[str, Any]:
    organization_of(core, query.organization_id)
    core.lab.payment_faults.clear(query.organization_id)
    return {}


@router.handles(commands.FAULTS)
def _list_faults(core: Core) -> dict[str, Any]:
    return {"items": core.faults.view()}


@router.handles(commands.ADD_FAULT)
def _add_fault(core: Core, body: Fault) -> dict[str, Any]:
    organization_of(core, body.organization_id)
    return {"id": core.faults.append(body), **body.view()}


@router.handles(commands.REMOVE_FAULT)
def _remove_fault(core: Core, fault_id: str) -> dict[str, Any]:
    if not (fault_id.isascii() and fault_id.isdigit() and core.faults.remove(int(fault_id[:18]))):
        raise Refusal(404, f"no fault {fault_id!r}")
    return {}


@router.handles(commands.CLEAR_FAULTS)
def _clear_faults(core: Core, query: bodies.OfOrganization) -> dict[str, Any]:
    organization_of(core, query.organization_id)
    core.clear_faults(query.organization_id)
    return {}


@router.handles(commands.SEED)
def _seed_organization(core: Core, body: bodies.Seed) -> dict[str, Any]:
    with core.lab.store.transaction() as db:
        policy = None if body.payment_policy is None else [str(method) for method in body.payment_policy]
        seeded = seeding.add_organization(core.lab, body.slug, body.name or body.slug, policy)
        if body.webhook_secret is not None:
            db.update("organizations", seeded.organization_id, webhook_secret=body.webhook_secret)
    return seeded.view()


@router.handles(commands.FILL)
def _fill_experiments(core: Core, body: bodies.Fill) -> dict[str, Any]:
    org_id = organization_of(core, body.organization_id)
    with core.lab.store.transaction() as db:
        numbers = {"experiments": body.experiments, "sequences": body.sequences}
        ids = seeding.fill_experiments(core.lab, db, org_id, stage=body.stage, **numbers)
    core.lab.changed()
    return {"experiment_ids": ids}


@router.handles(commands.FIX_DELAYS)
def _fix_delays(core: Core, body: bodies.FixPlan) -> dict[str, Any]:
    if body.organization_id is not None and body.experiment_id is not None:
        raise Refusal(400, "either organization_id or experiment_id")
    org_id = owner_id = organization_of(core, body.organization_id)
    with core.lab.store.transaction() as db:
        if body.experiment_id is not None:
            row = db.known("experiments", uuid_or_none(body.experiment_id), "experiment")
            org_id, owner_id = row["org_id"], row["id"]
        delays.fix_delays(
            db, org_id, owner_id, body.model_dump(include=set(delays.FIXABLE), exclude_none=True)
        )
        return delays.fixed_for(db, owner_id)


@router.handles(commands.TRIGGER_EVENT)
def trigger_event(core: Core, body: Annotated[dict[str, Any], Body()]) -> dict[str, Any]:
    """An event at the lab's side, out of turn; lab/docs/lab.md lists the events and their fields."""
    name = str(body.get("event"))
    fields = {field: value for field, value in body.items() if field != "event"}
    return events.trigger_event(core.lab, name, validation.read_body(events.body_of(name), fields))


@router.handles(commands.RESET)
def _reset_lab(core: Core) -> dict[str, Any]:
    return core.reset().view()


@router.handles(commands.SIGN_IN_LINK)
def _sign_in_link(core: Core, body: bodies.SignIn) -> dict[str, Any]:
    return {"portal_url": core.sign_in_link(body.email)}


@router.handles(commands.END_SESSIONS)
def _end_sessions(core: Core) -> dict[str, Any]:
    """Let every portal session expire now, and with it the tokens of tool clients that signed in."""
    with core.lab.store.transaction() as db:
        return {"ended": db.run("UPDATE portal_sessions SET expires_at = 0 WHERE expires_at > 0")}
