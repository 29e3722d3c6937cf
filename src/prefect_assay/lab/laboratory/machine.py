"""The state machine of an experiment (contract 3): what the lab does when something falls due.

`apply` carries out one row of the due-queue inside the caller's transaction. Customers' own steps (submit,
confirm, reject, pay) are in `experiments`, `quotes` and `invoices`; they queue what follows from here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from prefect_assay.lab.billing import delays as plan
from prefect_assay.lab.billing import quotes
from prefect_assay.lab.kernel import schedule, times
from prefect_assay.lab.kernel.store import Db, Row
from prefect_assay.lab.laboratory import measuring, milestones
from prefect_assay.lab.requests.core import Lab
from prefect_assay.lab.webhooks import updates
from prefect_assay.models.vocabulary import ExperimentStatus, InvoiceStatus, PaymentMethod


def submitted(lab: Lab, db: Db, experiment: Row, at: datetime) -> None:
    """Draft or nothing, to WaitingForConfirmation; the quote follows by itself (contract 4.2)."""
    updates.move(db, experiment, ExperimentStatus.WAITING_FOR_CONFIRMATION, at)
    requote(lab, db, experiment, at)


def requote(lab: Lab, db: Db, experiment: Row, at: datetime) -> None:
    """Queue a quote in place of whatever was queued."""
    schedule.forget(db, experiment["id"])
    delays = plan.of_experiment(db, lab.settings.seed, experiment)
    due_at = at + delays.quote_after
    schedule.add(db, schedule.entry(experiment, due_at, "quote_ready", held=delays.hold_quote))


def accepted_at_once(lab: Lab, db: Db, experiment: Row, at: datetime, *, paid_first: bool) -> None:
    """auto_accept_quote: WaitingForConfirmation with the quote already accepted (contract 3).

    With `paid_first`, on a machine rail, nothing moves on before the payment settles.
    """
    updates.move(db, experiment, ExperimentStatus.WAITING_FOR_CONFIRMATION, at)
    if not paid_first:
        delays = plan.of_experiment(db, lab.settings.seed, experiment)
        schedule.add(db, schedule.entry(experiment, at + delays.review_after, "confirmed"))


def confirmed(lab: Lab, db: Db, experiment: Row, at: datetime, *, paid_first: bool) -> None:
    """QuoteSent or WaitingForConfirmation, to WaitingForMaterials; work waits for a machine payment."""
    begun = {} if paid_first else _begun(lab, db, experiment, at)
    updates.move(db, experiment, ExperimentStatus.WAITING_FOR_MATERIALS, at, **begun)
    db.run(
        "UPDATE invoices SET status = 'open' WHERE experiment_id = ? AND status = 'draft'", experiment["id"]
    )


@dataclass(frozen=True, slots=True)
class Payment:
    """What a machine rail settled: (payer, nonce) is entered into the books once."""

    method: PaymentMethod
    payer: str | None
    nonce: str | None
    reference: str | None


def settle(lab: Lab, db: Db, invoice: Row, at: datetime, *, rail: Payment | None = None) -> Row:
    """Enter the settlement into the books, mark the invoice as paid and start the work.

    `rail` is what a machine rail settled; None when a person paid the hosted invoice.
    """
    db.insert(
        "settlements",
        {
            "invoice_id": invoice["id"],
            "experiment_id": invoice["experiment_id"],
            "payment_method": rail.method if rail else PaymentMethod.ASYNC_INVOICE,
            "amount_cents": invoice["amount_cents"],
            "payer": rail.payer if rail else None,
            "nonce": rail.nonce if rail else None,
            "reference": rail.reference if rail else None,
            "settled_at": at,
        },
    )
    changes = {"status": InvoiceStatus.PAID, "paid_at": times.stamp(at)}
    db.update("invoices", invoice["id"], **changes)
    experiment = db.one("SELECT * FROM experiments WHERE id = ?", invoice["experiment_id"])
    if experiment is not None:
        _paid(lab, db, experiment, at)
    return invoice | changes


def _paid(lab: Lab, db: Db, experiment: Row, at: datetime) -> None:
    updates.record(db, experiment, "progress", "Payment received", "The invoice is paid.", at)
    if experiment["work_started_at"] is not None:
        return
    if experiment["status"] == ExperimentStatus.WAITING_FOR_CONFIRMATION:
        schedule.forget(db, experiment["id"])
        confirmed(lab, db, experiment, at, paid_first=False)
    elif experiment["status"] == ExperimentStatus.WAITING_FOR_MATERIALS:
        db.update("experiments", experiment["id"], **_begun(lab, db, experiment, at))


def _begun(lab: Lab, db: Db, experiment: Row, at: datetime) -> dict[str, Any]:
    """Queue the whole lab window, 5 to 15 days from now (contract 8); the columns that change with it."""
    return {"eta": queue_work(lab, db, experiment, at), "work_started_at": at}


def queue_work(lab: Lab, db: Db, experiment: Row, at: datetime, *, after_share: float = 0.0) -> datetime:
    """Queue what is left of the lab window after a share of it, from now.

    Returns:
        when it ends: the experiment's new `eta`, for the caller to write.
    """
    delays = plan.of_experiment(db, lab.settings.seed, experiment)
    entries = [
        schedule.entry(
            experiment,
            at + (share - after_share) * delays.window,
            kind,
            detail=detail,
            held=delays.hold_review and detail == ExperimentStatus.DONE,
        )
        for share, kind, detail in plan.MILESTONES
        if share > after_share
    ]
    schedule.add(db, *entries)
    return at + (1 - after_share) * delays.window


def apply(lab: Lab, db: Db, item: Row, at: datetime) -> None:
    """Carry out one row of the due-queue and remove it."""
    if item["kind"] in milestones.KINDS:
        # Done now, whenever it was due: what is held has no time of its own.
        milestones.carry_out(db, item["org_id"], [item | {"due_at": times.stamp(at)}], at)
        return
    db.run("DELETE FROM due WHERE id = ?", item["id"])
    experiment = db.one("SELECT * FROM experiments WHERE id = ?", item["experiment_id"])
    if experiment is None:
        return
    match item["kind"]:
        case "quote_ready":
            quotes.issue(db, experiment, at)
            updates.move(db, experiment, ExperimentStatus.QUOTE_SENT, at)
        case "quote_expires":
            expire_quote(db, experiment, item["detail"], at)
        case "confirmed":
            confirmed(lab, db, experiment, at, paid_first=False)
        case _ as unknown:
            raise ValueError(f"unknown kind of due thing: {unknown!r}")


def apply_all(lab: Lab, db: Db, org_id: str, items: Sequence[Row], now: datetime) -> tuple[int, datetime]:
    """Carry out the next rows of the due-queue: milestones together, anything else alone.

    Returns:
        how many were carried out, and the lab time of the last one.
    """
    if items[0]["kind"] in milestones.KINDS:
        return milestones.carry_out(db, org_id, items, now)
    now = max(now, times.read(items[0]["due_at"]))
    apply(lab, db, items[0], now)
    return 1, now


def enter(db: Db, experiment: Row, status: ExperimentStatus, at: datetime) -> None:
    """A step of the lab work; entering InReview and Done releases results (contract 3)."""
    released = milestones.RELEASES.get(status)
    if released is None:
        updates.move(db, experiment, status, at)
        return
    measuring.release(db, experiment, released, at)
    updates.move(db, experiment, status, at, results_status=released)


def expire_quote(db: Db, experiment: Row, quote_id: str | None, at: datetime) -> None:
    """The validity has passed: the quote is dead and the experiment a draft again, as after a rejection."""
    quote = db.one("SELECT * FROM quotes WHERE id = ? AND status = 'pending'", quote_id)
    if quote is None:
        return
    db.update("quotes", quote["id"], status="expired", updated_at=at)
    back_to_draft(db, experiment, at)


def back_to_draft(db: Db, experiment: Row, at: datetime) -> None:
    """Nothing stays queued for a draft."""
    schedule.forget(db, experiment["id"])
    updates.move(db, experiment, ExperimentStatus.DRAFT, at)


def force(db: Db, experiment: Row, status: ExperimentStatus, at: datetime) -> None:
    """Lab event: put the experiment into any status, whatever the rules say, and drop what was queued."""
    schedule.forget(db, experiment["id"])
    if status == ExperimentStatus.CANCELED:
        db.run(
            "UPDATE quotes SET status = 'rejected' WHERE experiment_id = ? AND status = 'pending'",
            experiment["id"],
        )
    enter(db, experiment, status, at)
