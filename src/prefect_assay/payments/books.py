"""What the service and the ledger say of an invoice, and what is noted of its payment.

Money may have moved whenever this is asked: no reading that fails, and no ledger that fails, may hide that. This
module sends nothing.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from prefect_assay.models.billing import Invoice
from prefect_assay.models.job import Payment, PaymentState
from prefect_assay.models.vocabulary import InvoiceStatus, PaymentMethod
from prefect_assay.payments.api import PayApi, address
from prefect_assay.payments.ledger import Ledger, LedgerEntry, ledger_key

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Books:
    """The service's word and the ledger, for one rail.

    Attributes:
        api: the service.
        ledger: where payments are recorded.
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
        """The invoice is paid: say so, in the ledger as well."""
        entry = self._record_paid(invoice, receipt, remark)
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

    def _record_paid(
        self, invoice: Invoice, receipt: dict[str, str] | None, remark: str | None
    ) -> LedgerEntry | None:
        """Note that the invoice is paid; returns the entry as it was, with the receipt of an earlier run.

        The payment stands, even if the ledger fails now.
        """
        try:
            entry = self.ledger.get(ledger_key(address(self.api.base_url), invoice.id))
        except Exception:
            logger.exception("invoice %s: the ledger cannot be read", invoice.id)
            return None
        if entry is not None and entry.state is not PaymentState.SETTLED:
            # An intent that was never sent frees its share of the rolling cap: someone else has paid.
            state = PaymentState.SETTLED if entry.sent_at else PaymentState.FAILED
            self.record(entry, state, receipt, remark)
        return entry

    def record(
        self,
        entry: LedgerEntry,
        state: PaymentState,
        receipt: dict[str, str] | None = None,
        remark: str | None = None,
    ) -> bool:
        """Note what became of a payment. A ledger that fails now must not hide whether money has moved."""
        try:
            return self.ledger.update(entry, entry.moved(state, receipt=receipt, remark=remark))
        except Exception:
            logger.exception("invoice %s: the ledger cannot note %s", entry.invoice_id, state.value)
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
