"""Steps at the lab's side out of turn, triggered by a test; 409 when an event makes no sense now."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from assay_lab.billing import invoices
from assay_lab.control import bodies
from assay_lab.experiments import delays, results, state_machine, targets
from assay_lab.kernel import schedule, times
from assay_lab.kernel.refusals import Body, Refusal
from assay_lab.kernel.store import Db, Row
from assay_lab.requests.core import Lab, uuid_or_none
from assay_lab.vocabulary import (
    UNDER_WORK,
    ExperimentStatus,
    InvoiceStatus,
    QuoteStatus,
    ResultsStatus,
)
from assay_lab.webhooks import updates

Handler = Callable[[Lab, Db, Row, datetime, Any], None]

_REPEATABLE: Final = frozenset({ExperimentStatus.IN_PRODUCTION, ExperimentStatus.DATA_ANALYSIS})
# contract 3: possible from Draft or WaitingForConfirmation
_CANCELABLE: Final = frozenset({ExperimentStatus.DRAFT, ExperimentStatus.WAITING_FOR_CONFIRMATION})
_OVER: Final = frozenset({ExperimentStatus.DONE, ExperimentStatus.CANCELED})
_QUEUE_SHARE: Final = next(share for share, _, what in delays.MILESTONES if what == ExperimentStatus.IN_QUEUE)


def _require_status(experiment: Row, statuses: frozenset[ExperimentStatus], what: str) -> None:
    if experiment["status"] not in statuses:
        raise Refusal(409, f"the experiment is {experiment['status']}; {what}")


def _pending_quote(db: Db, experiment: Row) -> Row:
    quote = db.one("SELECT * FROM quotes WHERE experiment_id = ? AND status = 'pending'", experiment["id"])
    if quote is None:
        raise Refusal(409, "the experiment has no pending quote")
    return quote


def _expire_quote(_lab: Lab, db: Db, experiment: Row, now: datetime, _body: bodies.Event) -> None:
    state_machine.expire_quote(db, experiment, _pending_quote(db, experiment)["id"], now)


def _reject_quote(_lab: Lab, db: Db, experiment: Row, now: datetime, _body: bodies.Event) -> None:
    """The lab takes its quote back: `rejected` in one vocabulary, `canceled` in the other."""
    quote = _pending_quote(db, experiment)
    db.update("quotes", quote["id"], status=QuoteStatus.REJECTED, updated_at=now)
    state_machine.back_to_draft(db, experiment, now)


def _coming_quote(db: Db, experiment: Row) -> Row:
    item = schedule.find_queued(db, experiment["id"], "quote_ready")
    if item is None:
        raise Refusal(409, "no quote is being prepared for the experiment")
    return item


def _hold_quote(_lab: Lab, db: Db, experiment: Row, _at: datetime, _body: bodies.Event) -> None:
    schedule.hold_entry(db, _coming_quote(db, experiment))


def _release_quote(lab: Lab, db: Db, experiment: Row, now: datetime, _body: bodies.Event) -> None:
    state_machine.apply_due(lab, db, _coming_quote(db, experiment), now)


def _stall_review(_lab: Lab, db: Db, experiment: Row, _at: datetime, _body: bodies.Event) -> None:
    """The experiment reaches the review and stays there."""
    if experiment["status"] in _OVER:
        raise Refusal(409, f"the experiment is {experiment['status']}")
    # Kept for an end that is queued later: when the work begins, or is repeated.
    fixed_delays = delays.fixed_for(db, experiment["id"]) | {"hold_review": True}
    delays.fix_delays(db, experiment["org_id"], experiment["id"], fixed_delays)
    item = schedule.find_queued(db, experiment["id"], "status", ExperimentStatus.DONE)
    if item is not None:
        schedule.hold_entry(db, item)


def _release_review(lab: Lab, db: Db, experiment: Row, now: datetime, _body: bodies.Event) -> None:
    """Results come at once when they are overdue, else on their day."""
    fixed_delays = delays.fixed_for(db, experiment["id"]) | {"hold_review": False}
    delays.fix_delays(db, experiment["org_id"], experiment["id"], fixed_delays)
    item = schedule.find_queued(db, experiment["id"], "status", ExperimentStatus.DONE)
    if item is None:
        return
    if not item["passive"]:
        raise Refusal(409, "the review is not held up")
    due_at = max(times.read(experiment["eta"]), now)
    if experiment["status"] == ExperimentStatus.IN_REVIEW and due_at == now:
        state_machine.apply_due(lab, db, item, now)
    else:
        schedule.put_off(db, item, due_at)


def _partial_results(lab: Lab, db: Db, experiment: Row, now: datetime, body: bodies.PartialResults) -> None:
    _require_status(experiment, UNDER_WORK, "preliminary results come from the work in the lab")
    measured = None
    if body.sequences is not None:
        rows = db.all("SELECT id, name FROM sequences WHERE experiment_id = ?", experiment["id"])
        unknown = sorted(set(body.sequences) - {row["name"] for row in rows})
        if unknown:
            raise Refusal(400, f"sequences: the experiment has none named {', '.join(map(repr, unknown))}")
        measured = {row["id"] for row in rows if row["name"] in body.sequences}
    results.release_results(lab, db, experiment, ResultsStatus.PARTIAL, now, measured_ids=measured)
    db.update("experiments", experiment["id"], results_status=ResultsStatus.PARTIAL)
    updates.record_update(
        db, experiment, "progress", "Preliminary results", "Some results are available.", now
    )


def _add_progress(_lab: Lab, db: Db, experiment: Row, now: datetime, body: bodies.UpdateText) -> None:
    updates.record_update(db, experiment, "progress", body.name or "Assay progress", body.description, now)


def _add_error(_lab: Lab, db: Db, experiment: Row, now: datetime, body: bodies.UpdateText) -> None:
    updates.record_update(db, experiment, "error", body.name or "Something went wrong", body.description, now)


def _fail_production(lab: Lab, db: Db, experiment: Row, now: datetime, body: bodies.UpdateText) -> None:
    """The assay has to be repeated: an `error` update, back to the queue, and a later end."""
    _require_status(experiment, _REPEATABLE, "only an assay under way can fail")
    _add_error(lab, db, experiment, now, body)
    schedule.drop_entries(db, experiment["id"])
    eta = state_machine.queue_work(lab, db, experiment, now, after_share=_QUEUE_SHARE)
    updates.move_experiment(db, experiment, ExperimentStatus.IN_QUEUE, now, eta=eta)


def _cancel_experiment(lab: Lab, db: Db, experiment: Row, now: datetime, _body: bodies.Event) -> None:
    _require_status(
        experiment, _CANCELABLE, "only a draft or one that waits for confirmation can be canceled"
    )
    db.run(
        "UPDATE invoices SET status = ? WHERE experiment_id = ? AND status IN ('draft', 'open')",
        InvoiceStatus.VOID,
        experiment["id"],
    )
    state_machine.force_status(lab, db, experiment, ExperimentStatus.CANCELED, now)


def _force_status(lab: Lab, db: Db, experiment: Row, now: datetime, body: bodies.ForceStatus) -> None:
    state_machine.force_status(lab, db, experiment, body.status, now)


def _find_unpaid(db: Db, experiment: Row) -> Row:
    invoice = invoices.find_newest(db, experiment["id"])
    if invoice is None or invoice["status"] not in invoices.PAYABLE:
        raise Refusal(409, "the experiment has no invoice that can be paid")
    return invoice


def _pay_invoice(lab: Lab, db: Db, experiment: Row, now: datetime, _body: bodies.Event) -> None:
    state_machine.record_settlement(lab, db, _find_unpaid(db, experiment), now)


def _void_invoice(_lab: Lab, db: Db, experiment: Row, _at: datetime, _body: bodies.Event) -> None:
    db.update("invoices", _find_unpaid(db, experiment)["id"], status=InvoiceStatus.VOID)


def _give_up_invoice(_lab: Lab, db: Db, experiment: Row, _at: datetime, _body: bodies.Event) -> None:
    db.update("invoices", _find_unpaid(db, experiment)["id"], status=InvoiceStatus.UNCOLLECTIBLE)


_OF_EXPERIMENT: Final[dict[str, tuple[type[Body], Handler]]] = {
    "expire_quote": (bodies.Event, _expire_quote),
    "reject_quote": (bodies.Event, _reject_quote),
    "hold_quote": (bodies.Event, _hold_quote),
    "release_quote": (bodies.Event, _release_quote),
    "stall_review": (bodies.Event, _stall_review),
    "release_review": (bodies.Event, _release_review),
    "partial_results": (bodies.PartialResults, _partial_results),
    "progress": (bodies.UpdateText, _add_progress),
    "error": (bodies.UpdateText, _add_error),
    "fail_production": (bodies.UpdateText, _fail_production),
    "cancel": (bodies.Event, _cancel_experiment),
    "force_status": (bodies.ForceStatus, _force_status),
    "pay_invoice": (bodies.Event, _pay_invoice),
    "void_invoice": (bodies.Event, _void_invoice),
    "uncollectible_invoice": (bodies.Event, _give_up_invoice),
}


def _decide_custom_target(lab: Lab, db: Db, body: bodies.DecideTarget) -> dict[str, Any]:
    row = db.known("custom_targets", uuid_or_none(body.request_id), "custom target request")
    return targets.decide_custom_target(
        lab,
        db,
        body.request_id,
        lab.clock.now(row["org_id"]),
        approved=body.approved,
        pricing=body.pricing.model_dump(exclude_none=True) if body.pricing else None,
        reason=body.reason,
    )


def _revoke_token(lab: Lab, db: Db, body: bodies.RevokeToken) -> dict[str, Any]:
    row = db.known("tokens", uuid_or_none(body.token_id), "token")
    revoked = lab.tokens.revoke_family(db, body.token_id, lab.clock.now(row["org_id"]))
    return {"token_id": body.token_id, "children_revoked": revoked}


_OF_LAB: Final[dict[str, tuple[type[Body], Callable[[Lab, Db, Any], dict[str, Any]]]]] = {
    "decide_custom_target": (bodies.DecideTarget, _decide_custom_target),
    "revoke_token": (bodies.RevokeToken, _revoke_token),
}
EVENTS: Final = (*_OF_EXPERIMENT, *_OF_LAB)


def body_of(event: str) -> type[Body]:
    """The fields an event takes; 400 for an unknown event."""
    if event in _OF_EXPERIMENT:
        return _OF_EXPERIMENT[event][0]
    if event in _OF_LAB:
        return _OF_LAB[event][0]
    raise Refusal(400, f"unknown event {event!r}; known are {', '.join(EVENTS)}")


def trigger_event(lab: Lab, event: str, body: Any) -> dict[str, Any]:
    """Carry out an event; of an experiment its `status` and `results_status` afterwards."""
    with lab.store.transaction() as db:
        outcome = (
            _OF_LAB[event][1](lab, db, body) if event in _OF_LAB else _of_experiment(lab, db, event, body)
        )
    lab.changed()
    return outcome


def _of_experiment(lab: Lab, db: Db, event: str, body: Any) -> dict[str, Any]:
    known = db.known("experiments", uuid_or_none(body.experiment_id), "experiment")
    _OF_EXPERIMENT[event][1](lab, db, known, lab.clock.now(known["org_id"]), body)
    after = db.one("SELECT status, results_status FROM experiments WHERE id = ?", known["id"])
    return dict(after or {})
