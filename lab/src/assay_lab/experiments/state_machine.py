"""The state machine of an experiment (contract 3), and what the lab does when something falls due."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from assay_lab.billing import quotes
from assay_lab.experiments import delays, results
from assay_lab.kernel import schedule, times
from assay_lab.kernel.store import Db, Row
from assay_lab.rails.credentials import CredentialVerdict
from assay_lab.requests.core import Lab
from assay_lab.vocabulary import (
    ExperimentStatus,
    InvoiceStatus,
    PaymentMethod,
    QuoteStatus,
    ResultsStatus,
)
from assay_lab.webhooks import updates

_RELEASES: Final[Mapping[str, ResultsStatus]] = {
    ExperimentStatus.IN_REVIEW: ResultsStatus.PARTIAL,
    ExperimentStatus.DONE: ResultsStatus.ALL,
}


def mark_submitted(lab: Lab, db: Db, experiment: Row, now: datetime) -> None:
    """Draft or nothing, to WaitingForConfirmation; the quote follows asynchronously (contract 4.2)."""
    updates.move_experiment(db, experiment, ExperimentStatus.WAITING_FOR_CONFIRMATION, now)
    queue_quote(lab, db, experiment, now)


def queue_quote(lab: Lab, db: Db, experiment: Row, now: datetime) -> None:
    """Queue a quote in place of whatever was queued."""
    schedule.drop_entries(db, experiment["id"])
    plan = delays.of_experiment(db, lab.settings.seed, experiment)
    due_at = now + plan.quote_after
    schedule.add_entries(db, schedule.make_entry(experiment, due_at, "quote_ready"))


def accepted_at_once(lab: Lab, db: Db, experiment: Row, now: datetime, *, paid_first: bool) -> None:
    """auto_accept_quote: WaitingForConfirmation with an accepted quote (contract 3); a machine rail is `paid_first`."""
    updates.move_experiment(db, experiment, ExperimentStatus.WAITING_FOR_CONFIRMATION, now)
    if not paid_first:
        plan = delays.of_experiment(db, lab.settings.seed, experiment)
        schedule.add_entries(db, schedule.make_entry(experiment, now + plan.review_after, "confirmed"))


def mark_confirmed(lab: Lab, db: Db, experiment: Row, now: datetime, *, paid_first: bool) -> None:
    """QuoteSent or WaitingForConfirmation, to WaitingForMaterials; work waits for a machine payment."""
    begun = {} if paid_first else _begin_work(lab, db, experiment, now)
    updates.move_experiment(db, experiment, ExperimentStatus.WAITING_FOR_MATERIALS, now, **begun)
    db.run(
        "UPDATE invoices SET status = 'open' WHERE experiment_id = ? AND status = 'draft'", experiment["id"]
    )


def undo_confirmation(db: Db, experiment: Row, quote: Row, invoice: Row, now: datetime) -> None:
    """Lab fault: take a confirmation back, to QuoteSent; the invoice is void, and the quote pending."""
    db.update("invoices", invoice["id"], status=InvoiceStatus.VOID)
    db.update("quotes", quote["id"], status=QuoteStatus.PENDING, updated_at=now)
    schedule.drop_entries(db, experiment["id"])
    updates.move_experiment(db, experiment, ExperimentStatus.QUOTE_SENT, now, work_started_at=None, eta=None)
    quotes.schedule_expiry(db, experiment, quote)


def record_settlement(
    lab: Lab, db: Db, invoice: Row, now: datetime, verdict: CredentialVerdict | None = None
) -> Row:
    """Record the settlement, by `verdict` or by a person, mark the invoice as paid and start the work."""
    db.insert(
        "settlements",
        {
            "invoice_id": invoice["id"],
            "experiment_id": invoice["experiment_id"],
            "payment_method": invoice["payment_method"] if verdict else PaymentMethod.ASYNC_INVOICE,
            "amount_cents": verdict.amount_cents if verdict else invoice["amount_cents"],
            "payer": verdict.payer if verdict else None,
            "nonce": verdict.nonce if verdict else None,
            "reference": verdict.reference if verdict else None,
            "settled_at": now,
        },
    )
    changes = {"status": InvoiceStatus.PAID, "paid_at": times.stamp(now)}
    db.update("invoices", invoice["id"], **changes)
    experiment = db.get("experiments", invoice["experiment_id"])
    if experiment is not None:
        _mark_paid(lab, db, experiment, now)
    return invoice | changes


def _mark_paid(lab: Lab, db: Db, experiment: Row, now: datetime) -> None:
    updates.record_update(db, experiment, "progress", "Payment received", "The invoice is paid.", now)
    if experiment["work_started_at"] is not None:
        return
    if experiment["status"] == ExperimentStatus.WAITING_FOR_CONFIRMATION:
        schedule.drop_entries(db, experiment["id"])
        mark_confirmed(lab, db, experiment, now, paid_first=False)
    elif experiment["status"] == ExperimentStatus.WAITING_FOR_MATERIALS:
        db.update("experiments", experiment["id"], **_begin_work(lab, db, experiment, now))


def _begin_work(lab: Lab, db: Db, experiment: Row, now: datetime) -> dict[str, Any]:
    """Queue the whole lab window, 5 to 15 days from now (contract 8); the columns that change with it."""
    return {"eta": queue_work(lab, db, experiment, now), "work_started_at": now}


def queue_work(lab: Lab, db: Db, experiment: Row, now: datetime, *, after_share: float = 0.0) -> datetime:
    """Queue the rest of the lab window after a share of it; its end, the new `eta`, for the caller to write."""
    plan = delays.of_experiment(db, lab.settings.seed, experiment)
    entries = [
        schedule.make_entry(
            experiment,
            now + (share - after_share) * plan.window,
            kind,
            detail=detail,
            held=plan.hold_review and detail == ExperimentStatus.DONE,
        )
        for share, kind, detail in delays.MILESTONES
        if share > after_share
    ]
    schedule.add_entries(db, *entries)
    return now + (1 - after_share) * plan.window


def apply_due(lab: Lab, db: Db, item: Row, now: datetime) -> None:
    """Carry out one row of the due-queue and remove it."""
    db.run("DELETE FROM due WHERE id = ?", item["id"])
    experiment = db.get("experiments", item["experiment_id"])
    if experiment is None:
        return
    match item["kind"]:
        case "quote_ready":
            quotes.issue_quote(db, experiment, now)
            updates.move_experiment(db, experiment, ExperimentStatus.QUOTE_SENT, now)
        case "quote_expires":
            expire_quote(db, experiment, item["detail"], now)
        case "confirmed":
            mark_confirmed(lab, db, experiment, now, paid_first=False)
        case "status":
            _reach_status(lab, db, experiment, ExperimentStatus(item["detail"]), now)
        case "progress":
            updates.record_update(db, experiment, "progress", "Assay progress", item["detail"], now)
        case unknown:
            raise ValueError(f"unknown kind of due row: {unknown!r}")


def _reach_status(lab: Lab, db: Db, experiment: Row, status: ExperimentStatus, now: datetime) -> None:
    """Set a status, with the results that it releases."""
    release = _RELEASES.get(status)
    if release is None:
        updates.move_experiment(db, experiment, status, now)
    else:
        measured = results.list_reviewed(db, experiment) if release == ResultsStatus.PARTIAL else None
        results.release_results(lab, db, experiment, release, now, measured_ids=measured)
        updates.move_experiment(db, experiment, status, now, results_status=release)


def expire_quote(db: Db, experiment: Row, quote_id: str | None, now: datetime) -> None:
    """The validity has passed: the quote is expired and the experiment a draft again, as after a rejection."""
    quote = db.one("SELECT * FROM quotes WHERE id = ? AND status = 'pending'", quote_id)
    if quote is None:
        return
    db.update("quotes", quote["id"], status=QuoteStatus.EXPIRED, updated_at=now)
    back_to_draft(db, experiment, now)


def back_to_draft(db: Db, experiment: Row, now: datetime) -> None:
    """Nothing stays queued for a draft."""
    schedule.drop_entries(db, experiment["id"])
    updates.move_experiment(db, experiment, ExperimentStatus.DRAFT, now)


def force_status(lab: Lab, db: Db, experiment: Row, status: ExperimentStatus, now: datetime) -> None:
    """Lab event: force any status, with the results that it releases, and drop what was queued."""
    schedule.drop_entries(db, experiment["id"])
    if status == ExperimentStatus.CANCELED:
        db.run(
            "UPDATE quotes SET status = 'rejected' WHERE experiment_id = ? AND status = 'pending'",
            experiment["id"],
        )
    _reach_status(lab, db, experiment, status, now)
