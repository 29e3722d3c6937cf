"""Accepts or rejects a quote, and takes the payment of an invoice (contract 2.6, 3 and 4.5).

Rails run on real time, as an authorisation is signed with the payer's wall clock. The settlement, the spent credential
and the experiment's next step are one transaction.
"""

from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from typing import Any, Final, assert_never
from urllib.parse import urlsplit

from assay_lab.billing import invoices, quotes
from assay_lab.experiments import state_machine
from assay_lab.kernel import schedule, times
from assay_lab.kernel.refusals import Refusal
from assay_lab.kernel.store import Db, Row
from assay_lab.rails import mpp, x402
from assay_lab.rails.credentials import CredentialVerdict
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

_CREDENTIALS: Final = {
    PaymentMethod.X402_EXACT: x402.SIGNATURE_HEADER.lower(),
    PaymentMethod.MPP_SPT: mpp.CREDENTIAL_HEADER.lower(),
}
_REFUSALS: Final = {"always_402": "the payment was refused", "insufficient_funds": "insufficient_funds"}


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
    return confirmation(lab, quote, invoice)


def confirmation(lab: Lab, quote: Row, invoice: Row) -> dict[str, Any]:
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


def pay(call: Call) -> Answer:
    """POST /invoices/{id}/pay: a challenge without a credential, a settlement with one, or "already paid"."""
    with call.lab.store.transaction() as db:
        invoice = invoices.find(db, call)
        _check_method(call, invoice)
        rail = PaymentMethod(invoice["payment_method"])
        fault = _fault(call.lab, rail, invoice) if rail in MACHINE_RAILS else None
        if invoice["status"] == InvoiceStatus.PAID:
            if fault == "replay_403" and _CREDENTIALS[rail] in call.headers:
                raise Refusal(403, "the credential was used before; read the invoice")
            return Answer(_state(call.lab, invoice, already_paid=True))
        if invoice["status"] not in invoices.PAYABLE:
            raise Refusal(409, f"the invoice is {invoice['status']} and cannot be paid")
        match rail:
            case PaymentMethod.ASYNC_INVOICE:  # the state: a person pays a hosted invoice
                hosted = {"hosted_invoice_url": invoices.url(call.lab, invoice)}
                return Answer(_state(call.lab, invoice, already_paid=False) | hosted)
            case PaymentMethod.X402_EXACT:
                settle = _x402
            case PaymentMethod.MPP_SPT:
                settle = _mpp
            case _:
                assert_never(rail)
        call.lab.tokens.authorize_payment(call.who, "update", "invoice", rail)
        return settle(call, db, invoice, fault)


def _fault(lab: Lab, rail: str, invoice: Row) -> str | None:
    names = {"organization_id": invoice["org_id"], "invoice_id": invoice["id"]}
    found = lab.payment_faults.take(rail=rail, **names)
    return found.action if found else None


def _state(lab: Lab, invoice: Row, *, already_paid: bool) -> dict[str, Any]:
    return invoices.view(lab, invoice) | {"already_paid": already_paid}


def _check_method(call: Call, invoice: Row) -> None:
    """A method that differs from the experiment's pinned one is a 409 (service shapes, Invoices)."""
    named = {call.service_header("Payment-Method")}
    named |= {rail for rail, header in _CREDENTIALS.items() if header in call.headers}
    for method in sorted(named - {None, invoice["payment_method"]}, key=str):
        raise Refusal(409, f"the experiment pays by {invoice['payment_method']}, not by {method}")


def _x402(call: Call, db: Db, invoice: Row, fault: str | None) -> Answer:
    settings = replace(call.lab.settings.x402, fault=fault)
    pay_url = call.lab.settings.base_url + invoices.pay_path(invoice)

    def challenge(error: str | None = None) -> Answer:
        headers, body = x402.challenge(invoice=invoice, pay_url=pay_url, settings=settings, error=error)
        if fault == "missing_header":
            del headers[x402.REQUIRED_HEADER]
        return Answer(body, 402, headers)

    credential = call.headers.get(x402.SIGNATURE_HEADER.lower())
    if credential is None:
        return challenge()
    if fault in _REFUSALS:
        return challenge(_REFUSALS[fault])
    verdict = x402.settle(
        header_value=credential,
        invoice=invoice,
        pay_url=pay_url,
        settings=settings,
        nonce_used=partial(_spent, db),
        now=datetime.now(UTC),
    )
    response = {x402.RESPONSE_HEADER: str(verdict.header)}
    if not verdict.ok:
        refused = challenge(verdict.reason)
        return replace(refused, headers={**refused.headers, **response})
    return _settled(call, db, invoice, verdict, response, fault)


def _mpp(call: Call, db: Db, invoice: Row, fault: str | None) -> Answer:
    settings, now = call.lab.settings.mpp, datetime.now(UTC)
    bill = mpp.Bill(
        invoice_id=invoice["id"],
        amount_cents=invoice["amount_cents"],
        currency=invoice["currency"].lower(),
        realm=urlsplit(call.lab.settings.base_url).netloc,
        body=call.body,
        fault=fault,
    )

    def challenge(error: str) -> Answer:
        headers = {mpp.CHALLENGE_HEADER: mpp.challenge(bill, settings, now), "Cache-Control": "no-store"}
        problem = {"type": mpp.INSUFFICIENT} if error == "insufficient_funds" else {}
        return Answer({"error": error, **problem}, 402, headers)

    credential = call.headers.get(mpp.CREDENTIAL_HEADER.lower())
    if credential is None:
        return challenge(f"payment required: repeat the request with a {mpp.CREDENTIAL_HEADER} header")
    if fault in _REFUSALS:
        return challenge(_REFUSALS[fault])
    verdict = mpp.settle(credential, bill, settings, used=partial(_used, db), now=now)
    if verdict.status == HTTPStatus.PAYMENT_REQUIRED:
        return challenge(verdict.detail)
    if not verdict.ok:
        raise Refusal(verdict.status, verdict.detail)
    receipt = {mpp.RECEIPT_HEADER: str(verdict.header), "Cache-Control": "private"}
    return _settled(call, db, invoice, verdict, receipt, fault)


def _settled(
    call: Call, db: Db, invoice: Row, verdict: CredentialVerdict, receipt: dict[str, str], fault: str | None
) -> Answer:
    paid = state_machine.settle(call.lab, db, invoice, call.now(), verdict)
    state = _state(call.lab, paid, already_paid=False)
    if fault == "no_receipt":
        return Answer(state)
    # The reference is given once (service shapes, Invoices).
    return Answer(state | {"settlement_reference": verdict.reference}, 200, receipt)


def _spent(db: Db, payer: str, nonce: str) -> bool:
    return db.one("SELECT 1 FROM settlements WHERE payer = ? AND nonce = ?", payer, nonce) is not None


def _used(db: Db, payer: str, nonce: str) -> bool:
    """A shared payment token, and a challenge, are each good for one payment."""
    return db.one("SELECT 1 FROM settlements WHERE payer = ? OR nonce = ?", payer, nonce) is not None
