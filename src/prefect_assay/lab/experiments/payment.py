"""POST /invoices/{id}/pay: the 402 challenge, settlement, and "already paid" (contract 4.5).

Rails run on real time, as an authorisation is signed with the payer's wall clock. The settlement, the
spent credential and the experiment's next step are one transaction.
"""

from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

from prefect_assay.lab.billing import invoices
from prefect_assay.lab.experiments import state_machine
from prefect_assay.lab.kernel.refusals import Refusal
from prefect_assay.lab.kernel.settings import X402Settings
from prefect_assay.lab.kernel.store import Db, Row
from prefect_assay.lab.rails import mpp, x402
from prefect_assay.lab.rails.credentials import CredentialVerdict
from prefect_assay.lab.requests.core import Answer, Call, Lab
from prefect_assay.models.vocabulary import InvoiceStatus, PaymentMethod

_CREDENTIALS: Final = {
    PaymentMethod.X402_EXACT: x402.SIGNATURE_HEADER.lower(),
    PaymentMethod.MPP_SPT: mpp.CREDENTIAL_HEADER.lower(),
}
_REFUSALS: Final = {"always_402": "the payment was refused", "insufficient_funds": "insufficient_funds"}


def pay(call: Call) -> Answer:
    """A challenge without a credential, a settlement with one."""
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
    """The state: a person pays a hosted invoice."""
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
