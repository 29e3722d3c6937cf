"""Accepting and rejecting quotes, through the API and through the portal (contract 2.6, 3 and 4.5)."""

from datetime import datetime
from typing import Any

from prefect_assay.lab.billing import invoices, quotes
from prefect_assay.lab.experiments import state_machine
from prefect_assay.lab.kernel import schedule, times
from prefect_assay.lab.kernel.refusals import Refusal
from prefect_assay.lab.kernel.store import Db, Row
from prefect_assay.lab.requests import validation
from prefect_assay.lab.requests.core import Answer, Call, Lab, experiment_of
from prefect_assay.lab.requests.schemas import ConfirmQuote, RejectQuote
from prefect_assay.models.vocabulary import MACHINE_RAILS, ExperimentStatus, QuoteStatus


def accept(
    lab: Lab, db: Db, quote: Row, at: datetime, *, purchase_order_number: str | None, notes: str | None
) -> dict[str, Any]:
    """Accept a pending quote, else 409: the invoice exists from this point (contract 3)."""
    experiment = db.get("experiments", quote["experiment_id"])
    if experiment is None or quote["status"] != QuoteStatus.PENDING:
        raise Refusal(409, f"the quote is {quotes.acceptance_word(quote['status'])} and cannot be accepted")
    if times.read(quote["valid_until"]) <= at:
        # On a running clock the request may arrive before the due-queue is worked off.
        raise Refusal(409, f"the quote expired at {quote['valid_until']} and cannot be accepted")
    if experiment["status"] != ExperimentStatus.QUOTE_SENT:
        raise Refusal(
            409, f"the experiment is {experiment['status']}; only a quote_sent one takes a confirmation"
        )
    db.update(
        "quotes",
        quote["id"],
        status=QuoteStatus.ACCEPTED,
        updated_at=at,
        purchase_order_number=purchase_order_number,
        notes=notes,
    )
    schedule.forget(db, experiment["id"])
    invoice = invoices.create(db, experiment, quote, at, status="open")
    state_machine.confirmed(lab, db, experiment, at, paid_first=invoice["payment_method"] in MACHINE_RAILS)
    return body(lab, quote, invoice)


def body(lab: Lab, quote: Row, invoice: Row) -> dict[str, Any]:
    """ConfirmQuoteResponse with its payment pointer (contract 2.6)."""
    hosted = invoices.url(lab, invoice)
    machine_rail = invoice["payment_method"] in MACHINE_RAILS
    pointer: dict[str, Any] = {
        "kind": "machine" if machine_rail else "hosted_invoice",
        "hosted_invoice_url": hosted,
        "methods": [invoice["payment_method"]] if machine_rail else [],
        # Contract 2.6 names it for both kinds; for a hosted invoice the call only returns the state.
        "pay_url": invoices.pay_path(invoice),
    }
    return {
        "id": quote["id"],
        "status": QuoteStatus.ACCEPTED,
        "hosted_invoice_url": hosted,
        "invoice_id": invoice["id"],
        "payment": pointer,
    }


def reject(db: Db, quote: Row, reason: str, feedback: str | None, at: datetime) -> None:
    """Reject a pending quote, else 409; the experiment goes back to draft (service shapes, Quotes)."""
    if quote["status"] != QuoteStatus.PENDING:
        raise Refusal(409, f"the quote is {quote['status']} and cannot be rejected")
    status = QuoteStatus.REJECTED
    db.update(
        "quotes", quote["id"], status=status, updated_at=at, reject_reason=reason, reject_feedback=feedback
    )
    experiment = db.get("experiments", quote["experiment_id"])
    if experiment is not None:
        state_machine.back_to_draft(db, experiment, at)


def confirm_of_experiment(call: Call) -> Answer:
    """POST /experiments/{id}/quote/confirm."""
    with call.lab.store.transaction() as db:
        return _confirm(call, db, quotes.of(db, experiment_of(db, call)))


def confirm(call: Call) -> Answer:
    """POST /quotes/{quote_id}/confirm."""
    with call.lab.store.transaction() as db:
        return _confirm(call, db, quotes.find(db, call))


def _confirm(call: Call, db: Db, quote: Row) -> Answer:
    header = call.service_header("Payment-Method")
    wanted = validation.read(ConfirmQuote, call.json(), also=validation.payment_header_violations(header))
    experiment = db.get("experiments", quote["experiment_id"])
    if experiment is not None:
        pinned = experiment["payment_method"]
        if header not in (None, pinned):  # the rail was chosen for the experiment's life (contract 4.2)
            raise Refusal(409, f"the experiment pays by {pinned}, not by {header}")
        # Committing to a payment method needs the permission to pay by it.
        call.lab.tokens.authorize_payment(call.who, "update", "quote", pinned)
    number, notes = wanted.purchase_order_number, wanted.notes
    return Answer(accept(call.lab, db, quote, call.now(), purchase_order_number=number, notes=notes))


def reject_by_id(call: Call) -> Answer:
    """POST /quotes/{quote_id}/reject."""
    with call.lab.store.transaction() as db:
        quote = quotes.find(db, call)
        wanted = validation.read(RejectQuote, call.json())
        reject(db, quote, wanted.reason, wanted.feedback, call.now())
    return Answer({"id": quote["id"], "status": QuoteStatus.REJECTED})
