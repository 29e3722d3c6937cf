"""The control surface's clock, faults, lab events, journals, snapshots, sign-ins, seed and reset (docs/lab.md)."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from typing import Any

from prefect_assay.lab.billing import delays as plan
from prefect_assay.lab.control import bodies as sim_bodies
from prefect_assay.lab.control import bulk, events
from prefect_assay.lab.control.sim import Surface
from prefect_assay.lab.kernel import times
from prefect_assay.lab.kernel.refusals import Refusal
from prefect_assay.lab.kernel.store import Db
from prefect_assay.lab.requests import validation
from prefect_assay.lab.requests.core import uuid_or_none
from prefect_assay.lab.requests.payment_faults import PaymentFault
from prefect_assay.lab.service import seeding
from prefect_assay.lab.service.core import LabCore
from prefect_assay.lab.service.faults import Fault
from prefect_assay.lab.service.limiter import RateLimit
from prefect_assay.lab.tokens import sessions

router = Surface()


def _organization(core: LabCore, org_id: str | None) -> str:
    """The organisation that is meant; the default one without an id."""
    if org_id is None:
        return core.seeded.organization_id
    with core.lab.store.transaction() as db:
        if db.one("SELECT 1 FROM organizations WHERE id = ?", org_id) is None:
            raise Refusal(404, f"no organization {org_id!r}")
    return org_id


@router.call("GET", "/clock", sim_bodies.OfOrganization)
def clock(core: LabCore, wanted: sim_bodies.OfOrganization) -> dict[str, Any]:
    """Time, mode and rate of an organisation's clock."""
    return _clock(core, _organization(core, wanted.organization_id))


def _clock(core: LabCore, org_id: str) -> dict[str, Any]:
    row = core.lab.clock.row(org_id)
    return {
        "organization_id": org_id,
        "now": times.stamp(core.lab.clock.now(org_id)),
        "mode": row["mode"],
        "seconds_per_day": row["seconds_per_day"],
    }


@router.call("POST", "/clock/advance", sim_bodies.Advance)
def advance(core: LabCore, wanted: sim_bodies.Advance) -> dict[str, Any]:
    """Move the clock by a span, to a time, to the next event or until the lab is idle."""
    org_id = _organization(core, wanted.organization_id)
    if wanted.until == "next":
        steps = core.timekeeper.to_next(org_id)
    elif wanted.until == "idle":
        steps = core.timekeeper.until_idle(org_id)
    else:
        steps = core.timekeeper.advance(org_id, _moment(core, org_id, wanted))
    return _clock(core, org_id) | {"steps": steps}


def _moment(core: LabCore, org_id: str, wanted: sim_bodies.Advance) -> datetime:
    try:
        if wanted.until is not None:
            return times.parse(wanted.until)
        return core.lab.clock.now(org_id) + wanted.delta()
    except (ValueError, OverflowError) as error:
        raise Refusal(400, f'until: "next", "idle" or an ISO 8601 time: {error}') from error


@router.call("POST", "/clock/mode", sim_bodies.Mode)
def change_mode(core: LabCore, wanted: sim_bodies.Mode) -> dict[str, Any]:
    """Switch between manual, scaled and auto."""
    org_id = _organization(core, wanted.organization_id)
    core.lab.clock.change_mode(org_id, wanted.mode, wanted.seconds_per_day)
    core.lab.changed()
    return _clock(core, org_id)


@router.call("GET", "/journal", sim_bodies.JournalQuery)
def journal(core: LabCore, wanted: sim_bodies.JournalQuery) -> dict[str, Any]:
    """Requests to the API, oldest first."""
    found = core.journal.entries(
        wanted.after, method=wanted.method, path=wanted.path, organization_id=wanted.organization_id
    )
    return {"items": [asdict(entry) for entry in found], "position": core.journal.position}


@router.call("GET", "/settlements")
def settlements(core: LabCore) -> dict[str, Any]:
    """The lab's books: one row per settlement, not per invoice, oldest first."""
    with core.lab.store.transaction() as db:
        return {"items": db.all("SELECT * FROM settlements ORDER BY id")}


@router.call("GET", "/x402")
def x402(core: LabCore) -> dict[str, Any]:
    """What the lab offers on the x402 rail: network, asset, pay_to and so on."""
    return asdict(core.lab.settings.x402)


@router.call("GET", "/mpp")
def mpp(core: LabCore) -> dict[str, Any]:
    """What the lab offers on the mpp-spt rail: method, network_id and so on."""
    return {name: value for name, value in asdict(core.lab.settings.mpp).items() if name != "secret"}


@router.call("GET", "/payment-faults")
def payment_faults(core: LabCore) -> dict[str, Any]:
    """All payment faults asked for, with their hits."""
    return {"items": core.lab.payment_faults.view()}


@router.call("POST", "/payment-faults", sim_bodies.AskPaymentFault, raw=True)
def add_payment_fault(core: LabCore, body: dict[str, Any]) -> dict[str, Any]:
    """Ask for a payment fault; without a count it lasts until it is dropped."""
    core.lab.payment_faults.add(PaymentFault(**body))
    return payment_faults(core)


@router.call("DELETE", "/payment-faults")
def clear_payment_faults(core: LabCore) -> dict[str, Any]:
    """Drop the payment faults, and no others."""
    core.lab.payment_faults.clear()
    return {}


@router.call("GET", "/faults")
def faults(core: LabCore) -> dict[str, Any]:
    """All route faults with their counts, used up or not."""
    return {"items": core.faults.view()}


@router.call("POST", "/faults", Fault)
def add_fault(core: LabCore, wanted: Fault) -> dict[str, Any]:
    """Queue a route fault."""
    _organization(core, wanted.organization_id)
    return core.faults.add(wanted).view()


@router.call("DELETE", "/faults/{fault_id}")
def remove_fault(core: LabCore, number: str) -> dict[str, Any]:
    """Drop one route fault."""
    if not (number.isascii() and number.isdigit() and core.faults.remove(int(number[:18]))):
        raise Refusal(404, f"no fault {number!r}")
    return {}


@router.call("DELETE", "/faults", sim_bodies.OfOrganization)
def clear_faults(core: LabCore, wanted: sim_bodies.OfOrganization) -> dict[str, Any]:
    """Drop all faults, of routes, webhooks and payments; with an organisation only its route faults."""
    core.faults.clear(wanted.organization_id)
    if wanted.organization_id is None:
        core.webhook_faults.clear()
        core.lab.payment_faults.clear()
    return {}


@router.call("GET", "/rate-limit")
def rate_limit(core: LabCore) -> dict[str, Any]:
    """The limit in force, and how many requests it has refused."""
    return core.limiter.view()


@router.call("POST", "/rate-limit", RateLimit)
def limit_rate(core: LabCore, wanted: RateLimit) -> dict[str, Any]:
    """Refuse with 429 and Retry-After whatever is beyond the limit, for each token."""
    _organization(core, wanted.organization_id)
    core.limiter.set(wanted)
    return core.limiter.view()


@router.call("DELETE", "/rate-limit")
def end_rate_limit(core: LabCore) -> dict[str, Any]:
    """No limit any more."""
    core.limiter.set(None)
    return core.limiter.view()


@router.call("POST", "/seed", sim_bodies.Seed)
def seed(core: LabCore, wanted: sim_bodies.Seed) -> dict[str, Any]:
    """A further organisation, and what it starts with."""
    with core.lab.store.transaction() as db:
        policy = None if wanted.payment_policy is None else [str(method) for method in wanted.payment_policy]
        seeded = seeding.organization(core.lab, wanted.slug, wanted.name or wanted.slug, policy)
        if wanted.webhook_secret is not None:
            db.update("organizations", seeded.organization_id, webhook_secret=wanted.webhook_secret)
        if wanted.plan is not None:
            _fix(db, seeded.organization_id, seeded.organization_id, wanted.plan)
        if wanted.experiments:
            org_id = seeded.organization_id
            bulk.fill(core.lab, db, org_id, experiments=wanted.experiments, stage="draft", sequences=1)
    return seeded.view()


@router.call("POST", "/experiments", sim_bodies.Fill)
def fill(core: LabCore, wanted: sim_bodies.Fill) -> dict[str, Any]:
    """Many experiments at once."""
    org_id = _organization(core, wanted.organization_id)
    with core.lab.store.transaction() as db:
        ids = bulk.fill(
            core.lab,
            db,
            org_id,
            experiments=wanted.experiments,
            stage=wanted.stage,
            sequences=wanted.sequences,
        )
    core.lab.changed()
    return {"experiment_ids": ids}


@router.call("POST", "/plan", sim_bodies.FixPlan)
def fix_plan(core: LabCore, wanted: sim_bodies.FixPlan) -> dict[str, Any]:
    """Fix delays and holds of one experiment or of all that an organisation orders from now on."""
    with _owner(core, wanted.organization_id, wanted.experiment_id) as (db, org_id, owner_id):
        return _fix(db, org_id, owner_id, wanted)


def _fix(db: Db, org_id: str, owner_id: str, wanted: sim_bodies.Delays) -> dict[str, Any]:
    plan.fix(db, org_id, owner_id, wanted.model_dump(include=set(plan.FIXABLE), exclude_none=True))
    return plan.fixed_for(db, owner_id)


@contextmanager
def _owner(core: LabCore, org_id: str | None, experiment_id: str | None) -> Iterator[tuple[Db, str, str]]:
    """Whose plan is meant: organisation and, for one experiment, that."""
    if org_id is not None and experiment_id is not None:
        raise Refusal(400, "either organization_id or experiment_id")
    org_id = _organization(core, org_id)
    with core.lab.store.transaction() as db:
        if experiment_id is None:
            yield db, org_id, org_id
            return
        row = db.known("experiments", uuid_or_none(experiment_id), "experiment")
        yield db, row["org_id"], row["id"]


@router.call("GET", "/events")
def event_names(_core: LabCore) -> dict[str, Any]:
    """The events that there are."""
    return {"items": list(events.EVENTS)}


@router.call("POST", "/events", raw=True)
def event(core: LabCore, raw: dict[str, Any]) -> dict[str, Any]:
    """Something that happens at the lab's side, out of turn; docs/lab.md lists the events and their fields."""
    name = str(raw.get("event"))
    fields = {field: value for field, value in raw.items() if field != "event"}
    return events.happen(core.lab, name, validation.read(events.body_of(name), fields))


@router.call("POST", "/snapshots", sim_bodies.SnapshotName)
def snapshot(core: LabCore, wanted: sim_bodies.SnapshotName) -> dict[str, Any]:
    """Keep database, clocks, faults, rate limit and the journal's position."""
    return core.snapshot(wanted.name).view()


@router.call("GET", "/snapshots")
def snapshots(core: LabCore) -> dict[str, Any]:
    """All snapshots, oldest first."""
    return {"items": [kept.view() for kept in core.snapshots.all()]}


@router.call("POST", "/snapshots/{snapshot_id}/restore")
def restore(core: LabCore, snapshot_id: str) -> dict[str, Any]:
    """Back to a snapshot; the tokens that are valid now."""
    return core.restore(snapshot_id).view()


@router.call("DELETE", "/snapshots/{snapshot_id}")
def delete_snapshot(core: LabCore, snapshot_id: str) -> dict[str, Any]:
    """Forget a snapshot."""
    core.snapshots.delete(snapshot_id)
    return {}


@router.call("POST", "/reset")
def reset(core: LabCore) -> dict[str, Any]:
    """Empty the lab; the tokens that are valid now."""
    return core.reset().view()


@router.call("POST", "/sign-in-links", sim_bodies.SignIn)
def sign_in_link(core: LabCore, wanted: sim_bodies.SignIn) -> dict[str, Any]:
    """The link that signs this user in to the portal."""
    return {"portal_url": link(core, wanted.email)}


def link(core: LabCore, email: str) -> str:
    """The user's sign-in link; 404 when there is no such user."""
    with core.lab.store.transaction() as db:
        if db.one("SELECT 1 FROM users WHERE email = ?", email.lower()) is None:
            raise Refusal(404, f"no user {email!r}")
    return sessions.sign_in_link(core.lab.settings, email)


@router.call("DELETE", "/sessions")
def end_sessions(core: LabCore) -> dict[str, Any]:
    """Let every portal session expire now, and with it the tokens of tool clients that signed in."""
    with core.lab.store.transaction() as db:
        return {"ended": db.run("UPDATE portal_sessions SET expires_at = 0 WHERE expires_at > 0")}
