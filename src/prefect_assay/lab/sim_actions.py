"""What the control surface does, on bodies that are read already. Whoever calls holds the sim token."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from typing import Any

from prefect_assay.lab import bulk, events, plan, seeding, sim_bodies, times, validation
from prefect_assay.lab.core import uuid_or_none
from prefect_assay.lab.faults import Fault
from prefect_assay.lab.limiter import RateLimit
from prefect_assay.lab.refusals import Refusal
from prefect_assay.lab.service import LabCore
from prefect_assay.lab.store import Db, Row


def _organization(core: LabCore, org_id: str | None) -> str:
    """The organisation that is meant; the default one without an id."""
    if org_id is None:
        return core.seeded.organization_id
    with core.lab.store.transaction() as db:
        if db.one("SELECT 1 FROM organizations WHERE id = ?", org_id) is None:
            raise Refusal(404, f"no organization {org_id!r}")
    return org_id


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


def change_mode(core: LabCore, wanted: sim_bodies.Mode) -> dict[str, Any]:
    """Switch between manual, scaled and auto."""
    org_id = _organization(core, wanted.organization_id)
    core.lab.clock.change_mode(org_id, wanted.mode, wanted.seconds_per_day)
    core.lab.changed()
    return _clock(core, org_id)


def journal(core: LabCore, wanted: sim_bodies.JournalQuery) -> dict[str, Any]:
    """Requests to the API, oldest first."""
    found = core.journal.entries(
        wanted.after, method=wanted.method, path=wanted.path, organization_id=wanted.organization_id
    )
    return {"items": [asdict(entry) for entry in found], "position": core.journal.position}


def settlements(core: LabCore) -> list[Row]:
    """The lab's books: one row per settlement, not per invoice."""
    with core.lab.store.transaction() as db:
        return db.all("SELECT * FROM settlements ORDER BY id")


def add_fault(core: LabCore, wanted: Fault) -> dict[str, Any]:
    """Queue a route fault."""
    _organization(core, wanted.organization_id)
    return core.faults.add(wanted).view()


def remove_fault(core: LabCore, number: str) -> dict[str, Any]:
    """Drop one route fault."""
    if not (number.isascii() and number.isdigit() and core.faults.remove(int(number[:18]))):
        raise Refusal(404, f"no fault {number!r}")
    return {}


def clear_faults(core: LabCore, wanted: sim_bodies.OfOrganization) -> dict[str, Any]:
    """Drop all faults, of routes, webhooks and payments; with an organisation only its route faults."""
    core.faults.clear(wanted.organization_id)
    if wanted.organization_id is None:
        core.webhook_faults.clear()
        core.lab.payment_faults.clear()
    return {}


def limit_rate(core: LabCore, wanted: RateLimit | None) -> dict[str, Any]:
    """Start or end the rate limit."""
    if wanted is not None:
        _organization(core, wanted.organization_id)
    core.limiter.set(wanted)
    return core.limiter.view()


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
        row = db.one("SELECT id, org_id FROM experiments WHERE id = ?", uuid_or_none(experiment_id))
        if row is None:
            raise Refusal(404, "experiment not found")
        yield db, row["org_id"], row["id"]


def event(core: LabCore, raw: dict[str, Any]) -> dict[str, Any]:
    """Something that happens at the lab's side, out of turn."""
    name = str(raw.get("event"))
    fields = {field: value for field, value in raw.items() if field != "event"}
    return events.happen(core.lab, name, validation.read(events.body_of(name), fields))


def snapshot(core: LabCore, wanted: sim_bodies.SnapshotName) -> dict[str, Any]:
    """Keep the lab as it is."""
    return core.snapshot(wanted.name).view()


def snapshots(core: LabCore) -> list[dict[str, Any]]:
    """What is kept, oldest first."""
    return [kept.view() for kept in core.snapshots.all()]


def restore(core: LabCore, snapshot_id: str) -> dict[str, Any]:
    """Back to a snapshot; the tokens that are valid now."""
    return core.restore(snapshot_id).view()


def delete_snapshot(core: LabCore, snapshot_id: str) -> dict[str, Any]:
    """Forget a snapshot."""
    core.snapshots.delete(snapshot_id)
    return {}
