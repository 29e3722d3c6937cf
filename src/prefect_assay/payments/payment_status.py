"""What is known of an order's money: its invoice as the service shows it, and the payment as its log has it.

Plain functions: the form of a doubt, a canceled run and the sweep all ask. Nothing here is a secret.
"""

from prefect_assay.client import AssayClient
from prefect_assay.models.base import Model
from prefect_assay.models.billing import Invoice
from prefect_assay.models.vocabulary import InvoiceStatus
from prefect_assay.payments import LedgerEntry


class MoneyFacts(Model):
    """An invoice and its payment; None is what nobody knows."""

    invoice: Invoice | None = None
    entry: LedgerEntry | None = None

    @property
    def paid(self) -> bool:
        """The service says so; the log alone is no proof."""
        return self.invoice is not None and self.invoice.status == InvoiceStatus.PAID

    @property
    def in_doubt(self) -> bool:
        """A payment was sent, and the invoice does not show it."""
        return not self.paid and self.entry is not None and self.entry.in_doubt


def money_facts(client: AssayClient, entry: LedgerEntry | None, experiment_id: str) -> MoneyFacts:
    """Read the invoice of an experiment, beside the last payment of its order.

    Raises:
        TransientError: the service is away.
    """
    return MoneyFacts(invoice=client.find_invoice(experiment_id), entry=entry)
