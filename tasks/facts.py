"""What is known of an order's money: its invoice as the service shows it, and the payment as the ledger has it.

Plain functions: the form of a doubt, a canceled run and the sweep all ask. Nothing here is a secret.
"""

from prefect_assay.client import AssayClient
from prefect_assay.models.base import Model
from prefect_assay.models.billing import Invoice
from prefect_assay.models.vocabulary import InvoiceStatus
from prefect_assay.payments import Ledger, LedgerEntry
from prefect_assay.payments.api import address
from prefect_assay.payments.ledger import MAYBE_PAID, ledger_key


class MoneyFacts(Model):
    """An invoice and its payment; None is what nobody knows."""

    invoice: Invoice | None
    entry: LedgerEntry | None

    @property
    def paid(self) -> bool:
        """The service says so; the ledger alone is no proof."""
        return self.invoice is not None and self.invoice.status == InvoiceStatus.PAID

    @property
    def in_doubt(self) -> bool:
        """A payment was sent, and the invoice does not show it."""
        return not self.paid and self.entry is not None and self.entry.state in MAYBE_PAID


def money_facts(client: AssayClient, ledger: Ledger, experiment_id: str) -> MoneyFacts:
    """Read the invoice of an experiment and the ledger's entry for it.

    Raises:
        TransientError: the service is away.
    """
    invoice = client.find_invoice(experiment_id)
    if invoice is None:
        return MoneyFacts(invoice=None, entry=None)
    return MoneyFacts(invoice=invoice, entry=ledger.get(ledger_key(address(client.base_url), invoice.id)))
