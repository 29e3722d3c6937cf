"""Reads the invoice of a payment, and records how the payment ended.

Money may have moved before the call. A failed read or record must not hide that.
"""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from prefect_assay.errors import (
    AssayError,
    Forbidden,
    NotReady,
    PaymentFailed,
    TransientError,
    is_absent,
)
from prefect_assay.orders.job import Payment, PaymentState
from prefect_assay.orders.payments.interfaces import (
    AttemptEnd,
    InvoiceApi,
    Ledger,
    LedgerEntry,
)
from prefect_assay.service.client import AssayClient
from prefect_assay.service.models.base import Model
from prefect_assay.service.models.billing import Invoice, UnlistedInvoice
from prefect_assay.service.models.status_questions import is_invoice_dropped, is_invoice_paid
from prefect_assay.service.models.vocabulary import PaymentMethod

logger = logging.getLogger(__name__)

AGREE_DELAYS: Final = (1.0, 2.0, 4.0)  # seconds before each try of the second reading of a paid invoice


def require_paid_again(read: Callable[[], Invoice], *, sleep: Callable[[float], None] = time.sleep) -> None:
    """Read a paid invoice a second time: a wrong answer would be final in the ledger.

    Raises:
        TransientError: the readings contradict each other, or there is no second one; nothing is recorded.
    """
    shown = "cannot be read"
    for delay in AGREE_DELAYS:
        sleep(delay)
        try:
            invoice = read()
        except AssayError as error:
            shown = f"cannot be read ({error.message})"
            continue
        if is_invoice_paid(invoice.status):
            return
        shown = f"reads as {invoice.status or 'without a status'}"
        break
    raise TransientError(
        f"the invoice read as paid, and a second later it {shown}: nothing is recorded or paid. It is read again later; ask "
        "the laboratory if this repeats"
    )


@dataclass(frozen=True)
class Reconciliation:
    """Reads the invoice and keeps the record, for one rail; `read_delays` are the seconds before each reading."""

    api: InvoiceApi
    ledger: Ledger
    method: PaymentMethod
    sleep: Callable[[float], None]
    read_delays: Sequence[float]

    def confirm_paid(
        self,
        invoice: Invoice,
        *,
        already_paid: bool,
        receipt: dict[str, str] | None = None,
        remark: str | None = None,
    ) -> Payment:
        """Record that the invoice is paid, once a second reading agrees; return it with the receipt of an earlier run.

        Raises:
            TransientError: the second reading does not agree.
        """
        require_paid_again(lambda: self.api.get(invoice.id), sleep=self.sleep)
        try:
            entry = self.ledger.get()
            if invoice.amount is None and entry is not None:  # the contract's invoice has none
                invoice = invoice.model_copy(update={"amount": entry.amount_cents})
            if entry is None or entry.state is not PaymentState.SETTLED:
                self.ledger.record_paid(
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

    def record_end(self, entry: LedgerEntry, state: AttemptEnd, remark: str | None = None) -> bool:
        """Record how a payment ended; False when it cannot be recorded now."""
        try:
            return self.ledger.record_outcome(entry, state, remark=remark)
        except Exception:
            logger.exception("invoice %s: %s cannot be recorded now", entry.invoice_id, state.value)
            return False

    def watch_invoice(self, invoice_id: str) -> Invoice | None:
        """Read an invoice with back-off until it is paid; the last reading, None when none succeeded."""
        latest: Invoice | None = None
        for delay in self.read_delays:
            self.sleep(delay)
            try:
                latest = self.api.get(invoice_id)
            except Exception as error:  # noqa: BLE001 - money may have moved: no reading error may hide that
                logger.info("invoice %s cannot be read: %s", invoice_id, type(error).__name__)
                continue
            if is_invoice_paid(latest.status):
                return latest
        return latest


def describe_hosted(invoice: Invoice) -> Payment:
    """The state of an `async_invoice`: `settled` when paid, else `intended` with the page where a person pays.

    Raises:
        PaymentFailed: the invoice is void or uncollectible.
    """
    if is_invoice_dropped(invoice.status):
        raise PaymentFailed(f"invoice {invoice.id} is {invoice.status}; it cannot be paid any more")
    paid = is_invoice_paid(invoice.status)
    return Payment(
        invoice_id=invoice.id,
        method=PaymentMethod.ASYNC_INVOICE,
        state=PaymentState.SETTLED if paid else PaymentState.INTENDED,
        amount_cents=invoice.amount,
        already_paid=paid,
        hosted_invoice_url=invoice.provider_hosted_invoice_url,
    )


class PaymentStatus(Model):
    """An order's invoice and its last payment attempt; None is unknown. Nothing here is a secret."""

    invoice: Invoice | None = None
    entry: LedgerEntry | None = None

    @property
    def paid(self) -> bool:
        """The service shows the invoice as paid; the log alone is not proof."""
        return self.invoice is not None and is_invoice_paid(self.invoice.status)

    @property
    def in_doubt(self) -> bool:
        """A payment was sent, and the invoice does not show it."""
        return not self.paid and self.entry is not None and self.entry.in_doubt


def find_listed_invoice(api: AssayClient, experiment_id: str) -> Invoice | None:
    """Find the invoice of an experiment in the service's list; None also without a list, which the contract does not have.

    A 200 that is no list of invoices is a proxy's page: the list does not exist.
    """
    try:
        return api.invoices.find_for_experiment(experiment_id)
    except AssayError as error:
        if is_absent(error) or isinstance(error, Forbidden) or error.status_code == HTTPStatus.OK:
            return None
        raise


def read_invoice(api: AssayClient, experiment_id: str) -> Invoice:
    """Read the invoice of an experiment; where no list has it, as the experiment shows it (contract 2.8, service-shapes).

    Raises:
        NotReady: it is not made yet.
    """
    if (listed := find_listed_invoice(api, experiment_id)) is not None:
        return listed
    shown, experiment = api.experiments.get_invoice(experiment_id), api.experiments.get(experiment_id)
    kind = Invoice if shown.id else UnlistedInvoice
    return kind(
        id=shown.id or f"of {experiment.code}",
        status=shown.status,
        amount=experiment.billed_cents,
        experiment_id=experiment_id,
        provider_hosted_invoice_url=shown.provider_invoice_url,
    )


def read_payment_status(api: AssayClient, entry: LedgerEntry | None, experiment_id: str) -> PaymentStatus:
    """Read the invoice of an experiment, if any, next to the last payment attempt of its order."""
    try:
        return PaymentStatus(invoice=read_invoice(api, experiment_id), entry=entry)
    except NotReady:
        return PaymentStatus(entry=entry)
