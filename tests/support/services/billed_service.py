"""The calls about one experiment's quote and invoice, as a test tells it to answer; credentials of its own."""

from contextlib import nullcontext
from datetime import UTC, datetime
from types import SimpleNamespace

from prefect_assay.errors import NotReady
from prefect_assay.service.models.billing import ExperimentInvoice, Quote
from prefect_assay.service.models.experiment import Experiment, QuoteAcceptance

NOW = datetime(2026, 3, 1, tzinfo=UTC)
NONE_YET = object()  # an invoice may be there without a status


class BilledService:
    """Answers as told, until its quote is confirmed; errors among the answers are raised.

    Args:
        invoice: the status of the experiment's invoice.
        quote: its fields; without any it is not there yet.
        status: of the experiment, with its `costs`.
        listed: what the list of invoices has of it.
        refusal: raised by a confirmation and a submission.
    """

    service_time = None  # its answers have no date
    base_url = "https://lab.example"

    def __init__(
        self,
        *,
        invoice=NONE_YET,
        quote=None,
        status="waiting_for_confirmation",
        costs=None,
        listed=None,
        refusal=None,
    ):
        self.billed, self.offered, self.status, self.costs = invoice, quote, status, costs
        self.listed, self.refusal, self.confirmed = listed, refusal, []
        self.experiments = SimpleNamespace(
            get=self._get,
            get_invoice=self._get_invoice,
            get_quote=self._get_quote,
            confirm_quote=self._confirm_quote,
            submit=self._submit,
        )
        self.invoices = SimpleNamespace(find_for_experiment=self._find_invoice)

    def get_client(self):
        return nullcontext(self)

    def _get(self, experiment_id):
        return Experiment(
            id=experiment_id, code="LAB-1", status=self.status, created_at=NOW, costs=self.costs
        )

    def _find_invoice(self, _experiment_id):
        if isinstance(self.listed, Exception):
            raise self.listed
        return self.listed

    def _get_invoice(self, experiment_id):
        if experiment_id not in self.confirmed and self.billed is NONE_YET:
            raise NotReady("no invoice")
        status = "open" if self.billed is NONE_YET else self.billed
        page = "https://pay.example/1"
        return ExperimentInvoice(experiment_id=experiment_id, status=status, provider_invoice_url=page)

    def _get_quote(self, _experiment_id):
        if self.offered is None:
            raise NotReady("not generated")
        return Quote.model_validate(self.offered)

    def _confirm_quote(self, experiment_id):
        if self.refusal is not None:
            raise self.refusal
        self.confirmed.append(experiment_id)
        return QuoteAcceptance(id="q", status="accepted", invoice_id=f"inv-{experiment_id}")

    def _submit(self, _experiment_id):
        raise self.refusal
