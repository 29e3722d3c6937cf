"""The hosted invoice, which a person pays: nothing to sign, only where to go and whether it is done."""

from prefect_assay.errors import AssayError, PaymentFailed, PaymentsDisabled
from prefect_assay.models.billing import Invoice
from prefect_assay.models.job import Payment, PaymentState
from prefect_assay.models.vocabulary import InvoiceStatus, PaymentMethod
from prefect_assay.payments.api import HTTP_PAYMENT_REQUIRED, PayApi


def hosted(api: PayApi, invoice: Invoice) -> Payment:
    """How an `async_invoice` stands: `settled` when paid, else `intended` with the page where a person pays.

    Raises:
        PaymentFailed: the invoice is void or uncollectible.
        PaymentsDisabled: the caller's payment policy has pinned the experiment to a machine rail (contract 4.2, create
            rule 2).
    """
    if invoice.status in {InvoiceStatus.VOID, InvoiceStatus.UNCOLLECTIBLE}:
        raise PaymentFailed(f"invoice {invoice.id} is {invoice.status}; it cannot be paid any more")
    paid = invoice.status == InvoiceStatus.PAID
    if not paid and _is_pinned(api, invoice):
        raise PaymentsDisabled(
            f"invoice {invoice.id} can only be paid by machine: the token's payment policy has pinned the experiment to "
            "a machine rail, although async_invoice was asked for. Run it again with that payment_method and a wallet"
        )
    return Payment(
        invoice_id=invoice.id,
        method=PaymentMethod.ASYNC_INVOICE,
        state=PaymentState.SETTLED if paid else PaymentState.INTENDED,
        amount_cents=invoice.amount,
        already_paid=paid,
        hosted_invoice_url=invoice.provider_hosted_invoice_url,
    )


def _is_pinned(api: PayApi, invoice: Invoice) -> bool:
    """Whether the pay path asks for a machine payment; for a hosted invoice it answers with its state."""
    try:
        return api.pay(invoice.id).status_code == HTTP_PAYMENT_REQUIRED
    except AssayError:  # a person can pay, whatever this token may do
        return False
