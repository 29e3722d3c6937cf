"""The hosted invoice, which a person pays: nothing to sign, only where to go and whether it is done."""

from prefect_assay.errors import PaymentFailed
from prefect_assay.models.job import Payment, PaymentState
from prefect_assay.models.vocabulary import InvoiceStatus, PaymentMethod
from prefect_assay.payments.api import PayApi


def hosted(api: PayApi, invoice_id: str) -> Payment:
    """How an `async_invoice` stands: `settled` when paid, else `intended` with the page where a person pays.

    Raises:
        PaymentFailed: the invoice is void or uncollectible.
    """
    invoice = api.invoice_by_id(invoice_id)
    if invoice.status in {InvoiceStatus.VOID, InvoiceStatus.UNCOLLECTIBLE}:
        raise PaymentFailed(f"invoice {invoice.id} is {invoice.status}; it cannot be paid any more")
    paid = invoice.status == InvoiceStatus.PAID
    return Payment(
        invoice_id=invoice.id,
        method=PaymentMethod.ASYNC_INVOICE,
        state=PaymentState.SETTLED if paid else PaymentState.INTENDED,
        amount_cents=invoice.amount,
        already_paid=paid,
        hosted_invoice_url=invoice.provider_hosted_invoice_url,
    )
