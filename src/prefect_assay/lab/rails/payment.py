"""POST /invoices/{id}/pay: the 402 challenge, settlement, and "already paid" (contract 4.5).

Payment rails run on real time, not on the lab's clock: an authorisation is signed with the wall clock of the
payer. Settlement, the spent credential and the experiment's next step are one transaction, so a credential
settles once whatever happens. The token was checked before: 401 comes first, then 402.
"""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlsplit

from prefect_assay.lab.billing import invoices
from prefect_assay.lab.kernel.refusals import Refusal
from prefect_assay.lab.kernel.settings import X402Settings
from prefect_assay.lab.kernel.store import Db, Row
from prefect_assay.lab.laboratory.machine import Payment, settle
from prefect_assay.lab.rails import mpp, x402
from prefect_assay.lab.requests.core import Answer, Call, Lab
from prefect_assay.models.vocabulary import InvoiceStatus, PaymentMethod

_CREDENTIALS: Final = {
    PaymentMethod.X402_EXACT: x402.SIGNATURE_HEADER.lower(),
    PaymentMethod.MPP_SPT: mpp.CREDENTIAL_HEADER.lower(),
}
_REFUSALS: Final = {"always_402": "the payment was refused", "insufficient_funds": "insufficient_funds"}


def pay(call: Call) -> Answer:
    """One step of the payment: challenge without a credential, settlement with one."""
    with call.lab.store.transaction() as db:
        invoice = invoices.find(db, call)
        _check_method(call, invoice)
        if invoice["payment_method"] == PaymentMethod.ASYNC_INVOICE:
            return _hosted(call, invoice)
        rail = PaymentMethod(invoice["payment_method"])
        fault = call.lab.payment_faults.take(rail, invoice["org_id"], invoice["id"])
        if invoice["status"] == InvoiceStatus.PAID:
            if fault == "replay_403" and _CREDENTIALS[rail] in call.headers:
                raise Refusal(403, "the credential was used before; read the invoice")
            return Answer(_state(call.lab, invoice, already_paid=True))
        _check_payable(invoice)
        call.lab.tokens.authorize_payment(call.who, "update", "invoice", rail)
        step = _x402 if rail == PaymentMethod.X402_EXACT else _mpp
        return step(call, db, invoice, fault)


def _hosted(call: Call, invoice: Row) -> Answer:
    """A person pays: only the state."""
    if invoice["status"] == InvoiceStatus.PAID:
        return Answer(_state(call.lab, invoice, already_paid=True))
    _check_payable(invoice)
    hosted = {"hosted_invoice_url": invoices.url(call.lab, invoice)}
    return Answer(_state(call.lab, invoice, already_paid=False) | hosted)


def _check_payable(invoice: Row) -> None:
    if invoice["status"] not in invoices.PAYABLE:
        raise Refusal(409, f"the invoice is {invoice['status']} and cannot be paid")


def _state(lab: Lab, invoice: Row, *, already_paid: bool) -> dict[str, Any]:
    return invoices.view(lab, invoice) | {"already_paid": already_paid}


def _check_method(call: Call, invoice: Row) -> None:
    """A method that differs from the experiment's pinned one is a 409 (service shapes, Invoices)."""
    named = {call.service_header("Payment-Method")}
    named |= {rail for rail, header in _CREDENTIALS.items() if header in call.headers}
    for method in sorted(named - {None, invoice["payment_method"]}, key=str):
        raise Refusal(409, f"the experiment pays by {invoice['payment_method']}, not by {method}")


def _x402(call: Call, db: Db, invoice: Row, fault: str | None) -> Answer:
    settings = _x402_terms(call.lab.settings.x402, fault)
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
    settlement = x402.settle(
        header_value=credential,
        invoice=invoice,
        pay_url=pay_url,
        settings=settings,
        nonce_used=lambda payer, nonce: _spent(db, payer, nonce),
        now=datetime.now(UTC),
    )
    response = {x402.RESPONSE_HEADER: settlement.response_header}
    if not settlement.ok:
        refused = challenge(settlement.reason)
        return replace(refused, headers={**refused.headers, **response})
    payment = Payment(PaymentMethod.X402_EXACT, settlement.payer, settlement.nonce, settlement.transaction)
    return _settled(call, db, invoice, payment, response, fault)


def _x402_terms(settings: X402Settings, fault: str | None) -> X402Settings:
    match fault:
        case "wrong_payee":
            return replace(settings, fault="wrong_pay_to")
        case "wrong_amount" | "wrong_asset" | "wrong_network" | "wrong_resource" | "ten_year_window":
            return replace(settings, fault=fault)
        case "expired_challenge":
            return replace(settings, max_timeout_seconds=0)
        case _:
            return settings


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
    found = mpp.settle(credential, bill, settings, used=lambda payer, nonce: _used(db, payer, nonce), now=now)
    if not found.ok and found.status == 402:  # noqa: PLR2004
        return challenge(found.detail)
    if not found.ok:
        raise Refusal(found.status, found.detail)
    receipt = {mpp.RECEIPT_HEADER: str(found.receipt), "Cache-Control": "private"}
    payment = Payment(PaymentMethod.MPP_SPT, found.payer, found.nonce, found.reference)
    return _settled(call, db, invoice, payment, receipt, fault)


def _settled(
    call: Call, db: Db, invoice: Row, payment: Payment, receipt: dict[str, str], fault: str | None
) -> Answer:
    paid = settle(call.lab, db, invoice, call.now(), rail=payment)
    state = _state(call.lab, paid, already_paid=False)
    if fault == "no_receipt":
        return Answer(state)
    # The reference is given once (service shapes, Invoices).
    return Answer(state | {"settlement_reference": payment.reference}, 200, receipt)


def _spent(db: Db, payer: str, nonce: str) -> bool:
    return db.one("SELECT 1 FROM settlements WHERE payer = ? AND nonce = ?", payer, nonce) is not None


def _used(db: Db, payer: str, nonce: str) -> bool:
    """A shared payment token, and a challenge, are each good for one payment."""
    return db.one("SELECT 1 FROM settlements WHERE payer = ? OR nonce = ?", payer, nonce) is not None
