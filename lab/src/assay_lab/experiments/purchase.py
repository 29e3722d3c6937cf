"""Accepts or rejects a quote, and takes the payment of an invoice (contract 2.6, 3 and 4.5).

Rails run on real time, as an authorisation is signed with the payer's wall clock. The settlement, the spent credential
and the experiment's next step are one transaction.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

from assay_lab.billing import invoices, quotes
from assay_lab.experiments import state_machine
from assay_lab.kernel import schedule, times
from assay_lab.kernel.refusals import Refusal
from assay_lab.kernel.store import Db, Row
from assay_lab.rails import RAILS, rail_settings, require_rail
from assay_lab.rails.credentials import CredentialVerdict
from assay_lab.rails.rail import Bill, Challenge, LabRail
from assay_lab.requests import validation
from assay_lab.requests.core import Answer, Call, Lab, experiment_of
from assay_lab.requests.schemas import ConfirmQuote, RejectQuote
from assay_lab.vocabulary import (
    MACHINE_RAILS,
    ExperimentStatus,
    InvoiceStatus,
    PaymentMethod,
    QuoteStatus,
)

_REFUSALS: Final = {"always_402": "the payment was refused", "insufficient_funds": "insufficient_funds"}


def accept_quote(
    lab: Lab, db: Db, quote: Row, now: datetime, *, purchase_order_number: str | None, notes: str | None
) -> dict[str, Any]:
    """Accept a pending quote, else 409: the invoice exists from this point (contract 3)."""
    experiment = db.get("experiments", quote["experiment_id"])
    if experiment is None or quote["status"] != QuoteStatus.PENDING:
        raise Refusal(409, f"the quote is {quotes.acceptance_word(quote['status'])} and cannot be accepted")
    if times.read(quote["valid_until"]) <= now:
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
        updated_at=now,
        purchase_order_number=purchase_order_number,
        notes=notes,
    )
    schedule.drop_entries(db, experiment["id"])
    invoice = invoices.create_invoice(db, experiment, quote, now, status="open")
    state_machine.mark_confirmed(
        lab, db, experiment, now, paid_first=invoice["payment_method"] in MACHINE_RAILS
    )
    return view_confirmation(lab, quote, invoice)


def view_confirmation(lab: Lab, quote: Row, invoice: Row) -> dict[str, Any]:
    """ConfirmQuoteResponse with its payment pointer (contract 2.6)."""
    hosted = invoices.link_invoice(lab, invoice)
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


def reject_quote(db: Db, quote: Row, reason: str, feedback: str | None, now: datetime) -> None:
    """Reject a pending quote, else 409; the experiment goes back to draft (service shapes, Quotes)."""
    if quote["status"] != QuoteStatus.PENDING:
        raise Refusal(409, f"the quote is {quote['status']} and cannot be rejected")
    status = QuoteStatus.REJECTED
    db.update(
        "quotes", quote["id"], status=status, updated_at=now, reject_reason=reason, reject_feedback=feedback
    )
    experiment = db.get("experiments", quote["experiment_id"])
    if experiment is not None:
        state_machine.back_to_draft(db, experiment, now)


def confirm_of_experiment(call: Call) -> Answer:
    """POST /experiments/{id}/quote/confirm."""
    with call.lab.store.transaction() as db:
        return _confirm_quote(call, db, quotes.require_current(db, experiment_of(db, call)))


def confirm_quote(call: Call) -> Answer:
    """POST /quotes/{quote_id}/confirm."""
    with call.lab.store.transaction() as db:
        return _confirm_quote(call, db, quotes.find_quote(db, call))


def _confirm_quote(call: Call, db: Db, quote: Row) -> Answer:
    header = call.service_header("Payment-Method")
    body = validation.read_body(ConfirmQuote, call.json(), also=validation.payment_header_violations(header))
    experiment = db.get("experiments", quote["experiment_id"])
    if experiment is not None:
        pinned = experiment["payment_method"]
        if header not in (None, pinned):  # the rail was chosen for the experiment's life (contract 4.2)
            raise Refusal(409, f"the experiment pays by {pinned}, not by {header}")
        # Committing to a payment method needs the permission to pay by it.
        call.lab.tokens.authorize_payment(call.who, "update", "quote", pinned)
    number, notes = body.purchase_order_number, body.notes
    return Answer(accept_quote(call.lab, db, quote, call.now(), purchase_order_number=number, notes=notes))


def reject_by_id(call: Call) -> Answer:
    """POST /quotes/{quote_id}/reject."""
    with call.lab.store.transaction() as db:
        quote = quotes.find_quote(db, call)
        body = validation.read_body(RejectQuote, call.json())
        reject_quote(db, quote, body.reason, body.feedback, call.now())
    return Answer({"id": quote["id"], "status": QuoteStatus.REJECTED})


def pay_invoice(call: Call) -> Answer:
    """POST /invoices/{id}/pay: a challenge without a credential, a settlement with one, or "already paid"."""
    with call.lab.store.transaction() as db:
        invoice = invoices.find_invoice(db, call)
        _check_method(call, invoice)
        method = PaymentMethod(invoice["payment_method"])
        rail = require_rail(method) if method in MACHINE_RAILS else None
        fault = _find_fault(call.lab, method, invoice) if rail else None
        if invoice["status"] == InvoiceStatus.PAID:
            if rail and fault == "replay_403" and rail.credential_header.lower() in call.headers:
                raise Refusal(403, "the credential was used before; read the invoice")
            return Answer(_view_state(call.lab, invoice, already_paid=True))
        if invoice["status"] not in invoices.PAYABLE:
            raise Refusal(409, f"the invoice is {invoice['status']} and cannot be paid")
        if rail is None:  # the state: a person pays a hosted invoice
            hosted = {"hosted_invoice_url": invoices.link_invoice(call.lab, invoice)}
            return Answer(_view_state(call.lab, invoice, already_paid=False) | hosted)
        call.lab.tokens.authorize_payment(call.who, "update", "invoice", method)
        return _pay_by(rail, call, db, invoice, fault)


def _find_fault(lab: Lab, rail: str, invoice: Row) -> str | None:
    names = {"organization_id": invoice["org_id"], "invoice_id": invoice["id"]}
    fault = lab.payment_faults.take(rail=rail, **names)
    return fault.action if fault else None


def _view_state(lab: Lab, invoice: Row, *, already_paid: bool) -> dict[str, Any]:
    return invoices.view_invoice(lab, invoice) | {"already_paid": already_paid}


def _check_method(call: Call, invoice: Row) -> None:
    """A method that differs from the experiment's pinned one is a 409 (service shapes, Invoices)."""
    named = {call.service_header("Payment-Method")}
    named |= {rail.method for rail in RAILS if rail.credential_header.lower() in call.headers}
    for method in sorted(named - {None, invoice["payment_method"]}, key=str):
        raise Refusal(409, f"the experiment pays by {invoice['payment_method']}, not by {method}")


def _pay_by(rail: LabRail[Any], call: Call, db: Db, invoice: Row, fault: str | None) -> Answer:
    settings, now = rail_settings(call.lab.settings, rail), datetime.now(UTC)
    base_url = call.lab.settings.base_url
    bill = Bill(
        invoice_id=invoice["id"],
        amount_cents=invoice["amount_cents"],
        currency=invoice["currency"].lower(),
        pay_url=base_url + invoices.pay_path(invoice),
        realm=urlsplit(base_url).netloc,
        body=call.body,
        fault=fault,
    )
    credential = call.headers.get(rail.credential_header.lower())
    if credential is None or fault in _REFUSALS:
        why = None if credential is None else _REFUSALS[str(fault)]
        return _view_challenge(rail.challenge(bill, settings, now, why))
    verdict = rail.settle(credential, bill, settings, _Settlements(db), now)
    if verdict.ok:
        return _view_settled(call, db, invoice, verdict, rail.receipt_headers(verdict), fault)
    if verdict.status == HTTPStatus.PAYMENT_REQUIRED:
        return _view_challenge(rail.refuse(bill, settings, now, verdict))
    raise Refusal(verdict.status, verdict.detail)


def _view_challenge(challenge: Challenge) -> Answer:
    return Answer(challenge.body, HTTPStatus.PAYMENT_REQUIRED, challenge.headers)


def _view_settled(
    call: Call, db: Db, invoice: Row, verdict: CredentialVerdict, receipt: dict[str, str], fault: str | None
) -> Answer:
    paid = state_machine.record_settlement(call.lab, db, invoice, call.now(), verdict)
    state = _view_state(call.lab, paid, already_paid=False)
    if fault == "no_receipt":
        return Answer(state)
    # The reference is given once (service shapes, Invoices).
    return Answer(state | {"settlement_reference": verdict.reference}, 200, receipt)


@dataclass(frozen=True, slots=True)
class _Settlements:
    """What the lab's ledger says about a credential; see `rails.rail.Settlements`."""

    db: Db

    def has_both(self, payer: str, nonce: str) -> bool:
        return self._has("AND", payer, nonce)

    def has_either(self, payer: str, nonce: str) -> bool:
        return self._has("OR", payer, nonce)

    def _has(self, word: str, payer: str, nonce: str) -> bool:
        query = f"SELECT 1 FROM settlements WHERE payer = ? {word} nonce = ?"  # noqa: S608 - one of two words
        return self.db.one(query, payer, nonce) is not None
