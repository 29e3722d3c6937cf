"""What the control surface does. Bodies are small and checked by hand: whoever calls holds the sim token."""

from dataclasses import fields
from datetime import timedelta
from typing import Any, Final, cast, get_args

from prefect_assay.lab import machine, payment, seeding, times, updates
from prefect_assay.lab.core import uuid_or_none
from prefect_assay.lab.faults import Fault
from prefect_assay.lab.refusals import Refusal
from prefect_assay.lab.service import LabCore
from prefect_assay.lab.settings import ClockMode
from prefect_assay.lab.store import Db, Row
from prefect_assay.models.vocabulary import ExperimentStatus

_SPANS: Final = ("days", "hours", "minutes", "seconds")
EVENTS: Final = ("expire_quote", "force_status", "pay_invoice", "progress")


def _known(body: dict[str, Any], *names: str) -> None:
    unknown = sorted(set(body) - set(names))
    if unknown:
        raise Refusal(400, f"unknown fields: {', '.join(unknown)}; known are {', '.join(names)}")


def _organization(core: LabCore, org_id: Any) -> str:
    return str(org_id) if org_id else core.seeded.organization_id


def clock(core: LabCore, org_id: Any) -> dict[str, Any]:
    """Time, mode and rate of an organisation's clock; the default organisation's without an id."""
    org_id = _organization(core, org_id)
    row = core.lab.clock.row(org_id)
    now = times.stamp(core.lab.clock.now(org_id))
    return {
        "organization_id": org_id,
        "now": now,
        "mode": row["mode"],
        "seconds_per_day": row["seconds_per_day"],
    }


def advance(core: LabCore, body: dict[str, Any]) -> dict[str, Any]:
    """Move the clock by a span, to a time, to the next event or until the lab is idle."""
    _known(body, *_SPANS, "until", "organization_id")
    org_id = _organization(core, body.get("organization_id"))
    core.lab.clock.row(org_id)
    until = body.get("until")
    if until == "next":
        steps = core.timekeeper.to_next(org_id)
    elif until == "idle":
        steps = core.timekeeper.until_idle(org_id)
    else:
        steps = core.timekeeper.advance(org_id, _moment(core, org_id, body))
    return clock(core, org_id) | {"steps": steps}


def _moment(core: LabCore, org_id: str, body: dict[str, Any]) -> Any:
    try:
        if body.get("until") is not None:
            return times.parse(str(body["until"]))
        span = timedelta(**{name: float(body[name]) for name in _SPANS if name in body})
        return core.lab.clock.now(org_id) + span
    except (ValueError, TypeError, OverflowError) as error:
        raise Refusal(400, f"cannot read how far to advance: {error}") from error


def change_mode(core: LabCore, body: dict[str, Any]) -> dict[str, Any]:
    """Switch between manual, scaled and auto."""
    _known(body, "mode", "seconds_per_day", "organization_id")
    if body.get("mode") not in get_args(ClockMode):
        raise Refusal(400, f"mode must be one of {', '.join(get_args(ClockMode))}")
    org_id = _organization(core, body.get("organization_id"))
    rate = body.get("seconds_per_day")
    core.lab.clock.change_mode(org_id, cast("ClockMode", body["mode"]), None if rate is None else float(rate))
    core.lab.changed()
    return clock(core, org_id)


def deliveries(core: LabCore, after: int) -> list[Row]:
    """The delivery journal."""
    with core.lab.store.transaction() as db:
        return db.all("SELECT * FROM deliveries WHERE id > ? ORDER BY id", after)


def settlements(core: LabCore) -> list[Row]:
    """The lab's books: one row per settlement, not per invoice."""
    with core.lab.store.transaction() as db:
        return db.all("SELECT * FROM settlements ORDER BY id")


def add_fault(core: LabCore, body: dict[str, Any]) -> None:
    """Queue a route fault."""
    _known(body, *(field.name for field in fields(Fault)))
    try:
        core.faults.add(Fault(**body))
    except TypeError as error:
        raise Refusal(400, f"cannot read the fault: {error}") from error


def add_webhook_fault(core: LabCore, body: dict[str, Any]) -> None:
    """Queue webhook faults."""
    _known(body, "action", "count")
    core.webhook_faults.add(body.get("action"), int(body.get("count", 1)))


def seed(core: LabCore, body: dict[str, Any]) -> dict[str, Any]:
    """A further organisation."""
    _known(body, "slug", "name", "payment_policy", "webhook_secret")
    slug = str(body.get("slug", ""))
    seeded = seeding.organization(core.lab, slug, str(body.get("name") or slug), body.get("payment_policy"))
    if body.get("webhook_secret"):
        with core.lab.store.transaction() as db:
            db.update("organizations", seeded.organization_id, webhook_secret=str(body["webhook_secret"]))
    return seeded.view()


def event(core: LabCore, body: dict[str, Any]) -> dict[str, Any]:
    """Something that happens at the lab's side, out of turn."""
    _known(body, "event", "experiment_id", "status", "description")
    with core.lab.store.transaction() as db:
        experiment = db.one(
            "SELECT * FROM experiments WHERE id = ?", uuid_or_none(str(body.get("experiment_id")))
        )
        if experiment is None:
            raise Refusal(404, "experiment not found")
        _happen(core, db, experiment, body)
        after = db.one("SELECT status, results_status FROM experiments WHERE id = ?", experiment["id"])
    core.lab.changed()
    return dict(after or {})


def _happen(core: LabCore, db: Db, experiment: Row, body: dict[str, Any]) -> None:
    at = core.lab.clock.now(experiment["org_id"])
    match body.get("event"):
        case "expire_quote":
            quote = db.one(
                "SELECT * FROM quotes WHERE experiment_id = ? AND status = 'pending'", experiment["id"]
            )
            if quote is None:
                raise Refusal(409, "the experiment has no pending quote")
            machine.expire_quote(db, experiment, quote["id"], at)
        case "force_status":
            if body.get("status") not in set(ExperimentStatus):
                raise Refusal(400, f"status must be one of {', '.join(ExperimentStatus)}")
            machine.force(db, experiment, ExperimentStatus(body["status"]), at)
        case "pay_invoice":
            invoice = db.one(
                "SELECT * FROM invoices WHERE experiment_id = ? ORDER BY seq DESC LIMIT 1", experiment["id"]
            )
            if invoice is None or invoice["status"] not in payment.PAYABLE:
                raise Refusal(409, "the experiment has no invoice that can be paid")
            payment.settle(core.lab, db, invoice, at)
        case "progress":
            updates.record(db, experiment, "progress", "Assay progress", str(body.get("description", "")), at)
        case other:
            raise Refusal(400, f"unknown event {other!r}; known are {', '.join(EVENTS)}")
