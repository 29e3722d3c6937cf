"""What the service says of an invoice, and what is recorded of its payment.

Money may have moved whenever this is asked: no reading that fails, and no record that fails, may hide that. This
module sends nothing.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from prefect_assay.models.billing import Invoice
from prefect_assay.models.job import Payment, PaymentState
from prefect_assay.models.vocabulary import InvoiceStatus, PaymentMethod
from prefect_assay.payments.api import PayApi
from prefect_assay.payments.ledger import AttemptEnd, Ledger, LedgerEntry

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Reconciliation:
    """The service's word and the record, for one rail.

    Attributes:
        api: the service.
        ledger: the payment record of the order.
        method: the rail.
        sleep: waits between readings of an invoice in doubt.
        read_delays: seconds before each of these readings.
    """

    api: PayApi
    ledger: Ledger
    method: PaymentMethod
    sleep: Callable[[float], None]
    read_delays: Sequence[float]

    def paid(
        self,
        invoice: Invoice,
        *,
        already_paid: bool,
        receipt: dict[str, str] | None = None,
        remark: str | None = None,
    ) -> Payment:
        """The invoice is paid: record it, and return it with the receipt of an earlier run."""
        try:
            entry = self.ledger.get()
            if entry is None or entry.state is not PaymentState.SETTLED:
                self.ledger.paid(
                    invoice.id,
                    invoice.amount,
                    receipt=receipt,
                    remark=remark or (entry.remark if entry else None),
                )
        except Exception:
            logger.exception("invoice %s is paid; that cannot be recorded now", invoice.id)
            entry = None
        logger.info("invoice %s is paid%s", invoice.id, f", though {remark}" if remark else "")
        return Payment(
            invoice_id=invoice.id,
            method=self.method,
            state=PaymentState.SETTLED,
            amount_cents=invoice.amount,
            already_paid=already_paid,
            hosted_invoice_url=invoice.provider_hosted_invoice_url,
            receipt=receipt or (entry.receipt if entry else None),
            remark=remark or (entry.remark if entry else None),
        )

    def record(self, entry: LedgerEntry, state: AttemptEnd, remark: str | None = None) -> bool:
        """Record how a payment ended. A record that fails now must not hide whether money has moved."""
        try:
            return self.ledger.end(entry, state, remark=remark)
        except Exception:
            logger.exception("invoice %s: %s cannot be recorded now", entry.invoice_id, state.value)
            return False

    def watch(self, invoice_id: str) -> Invoice | None:
        """Read an invoice with back-off until it is paid; the last reading, None when none succeeded."""
        latest: Invoice | None = None
        for delay in self.read_delays:
            self.sleep(delay)
            try:
                latest = self.api.invoice_by_id(invoice_id)
            except Exception as error:  # noqa: BLE001 - money may have moved: no reading error may hide that
                logger.info("invoice %s cannot be read: %s", invoice_id, type(error).__name__)
                continue
            if latest.status == InvoiceStatus.PAID:
                return latest
        return latest
