"""POST /invoices/{id}/pay: the 402 challenge, settlement, and "already paid" (contract 4.5).

Payment rails run on real time, not on the lab's clock: an authorisation is signed with the wall clock of the
payer. Settlement, the spent credential and the experiment's next step are one transaction, so a credential
settles once whatever happens.
"""

from datetime import UTC, datetime
from typing import Any, Final

from prefect_assay.lab import invoices, machine, times, x402
from prefect_assay.lab.core import Answer, Call, Lab
from prefect_assay.lab.refusals import Refusal
from prefect_assay.lab.store import Db, Row
from prefect_assay.models.vocabulary import InvoiceStatus, PaymentMethod

PAYABLE: Final = frozenset({InvoiceStatus.DRAFT, InvoiceStatus.OPEN})


def pay(call: Call) -> Answer:
    """One step of the payment: challenge without a credential, settlement with one."""
    with call.lab.store.transaction() as db:
        invoice = invoices.find(db, call)
        _check_method(call, invoice)
        if invoice["status"] == InvoiceStatus.PAID:
            return Answer(_state(call.lab, invoice, already_paid=True))
        if invoice["status"] not in PAYABLE:
            raise Refusal(409, f"the invoice is {invoice['status']} and cannot be paid")
        if invoice["payment_method"] == PaymentMethod.ASYNC_INVOICE:
            hosted = {"hosted_invoice_url": invoices.url(call.lab, invoice)}
            return Answer(_state(call.lab, invoice, already_paid=False) | hosted)
        if invoice["payment_method"] == PaymentMethod.X402_EXACT:
            return _x402(call, db, invoice)
        raise Refusal(501, "this lab does not settle mpp-spt yet")


def _state(lab: Lab, invoice: Row, *, already_paid: bool) -> dict[str, Any]:
    return invoices.view(lab, invoice) | {"already_paid": already_paid}


def _check_method(call: Call, invoice: Row) -> None:
    """A method that differs from the experiment's pinned one is a 409 (service shapes, Invoices)."""
    named = call.service_header("Payment-Method")
    if x402.SIGNATURE_HEADER.lower() in call.headers:
        named = named or PaymentMethod.X402_EXACT
    if named is not None and named != invoice["payment_method"]:
        raise Refusal(409, f"the experiment pays by {invoice['payment_method']}, not by {named}")


def _x402(call: Call, db: Db, invoice: Row) -> Answer:
    settings = call.lab.settings.x402
    pay_url = call.lab.settings.base_url + invoices.pay_path(invoice)
    credential = call.headers.get(x402.SIGNATURE_HEADER.lower())
    if credential is None:
        headers, body = x402.challenge(invoice=invoice, pay_url=pay_url, settings=settings)
        return Answer(body, 402, headers)
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
        headers, body = x402.challenge(
            invoice=invoice, pay_url=pay_url, settings=settings, error=settlement.reason
        )
        return Answer(body, 402, {**headers, **response})
    paid = settle(call.lab, db, invoice, call.now(), rail=settlement)
    # The reference is given once (service shapes, Invoices).
    body = _state(call.lab, paid, already_paid=False) | {"settlement_reference": settlement.transaction}
    return Answer(body, 200, response)


def _spent(db: Db, payer: str, nonce: str) -> bool:
    return db.one("SELECT 1 FROM settlements WHERE payer = ? AND nonce = ?", payer, nonce) is not None


def settle(  # noqa: D417 - the parts of the transaction explain themselves
    lab: Lab, db: Db, invoice: Row, at: datetime, *, rail: x402.Settlement | None = None
) -> Row:
    """Enter the settlement into the books, mark the invoice as paid and let the experiment go on.

    Args:
        rail: what the machine rail settled; None when a person paid the hosted invoice.
    """
    db.insert(
        "settlements",
        {
            "invoice_id": invoice["id"],
            "experiment_id": invoice["experiment_id"],
            "payment_method": PaymentMethod.X402_EXACT if rail else PaymentMethod.ASYNC_INVOICE,
            "amount_cents": invoice["amount_cents"],
            "payer": rail.payer if rail else None,
            "nonce": rail.nonce if rail else None,
            "reference": rail.transaction if rail else None,
            "settled_at": at,
        },
    )
    changes = {"status": InvoiceStatus.PAID, "paid_at": times.stamp(at)}
    db.update("invoices", invoice["id"], **changes)
    experiment = db.one("SELECT * FROM experiments WHERE id = ?", invoice["experiment_id"])
    if experiment is not None:
        machine.paid(lab, db, experiment, at)
    return invoice | changes
