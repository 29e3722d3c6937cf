"""The contract's stand-in in the test's process, with one experiment whose quote and invoice are as a test tells it.

The client is a real one, without a socket.
"""

from contextlib import nullcontext
from datetime import UTC, datetime

from support.contract import forms
from support.contract.service import ContractService

NOW = datetime(2026, 3, 1, tzinfo=UTC)
NONE_YET = object()  # an invoice may be there without a status


class BilledService(ContractService):
    """Answers as told, until its quote is confirmed.

    Args:
        invoice: the status of the experiment's invoice.
        quote: its fields; without any it is not there yet.
        status: of the experiment, with its `costs`.
        listed: what the list of invoices has of it; an error is a page that somebody else has written.
        refusal: the conflict that a confirmation and a submission meet.
    """

    service_time = None  # its answers have no date

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
        super().__init__(base_url="https://lab.example", is_compared=False)
        self.invoice, self.offered, self.status, self.costs = invoice, quote, status, costs
        self.listed, self.refusal, self.confirmed = listed, refusal, []
        client = self.client()
        self.experiments, self.invoices = client.experiments, client.invoices

    def get_client(self):
        return nullcontext(self)

    def experiments_get(self, experiment_id, **_):
        shown = {"id": experiment_id, "code": "LAB-1", "status": self.status, "created_at": NOW.isoformat()}
        return shown | ({} if self.costs is None else {"costs": self.costs})

    def experiments_get_invoice(self, experiment_id, **_):
        if experiment_id not in self.confirmed and self.invoice is NONE_YET:
            return forms.refuse(404, "no invoice")
        status = "open" if self.invoice is NONE_YET else self.invoice
        return {
            "experiment_id": experiment_id,
            "status": status,
            "provider_invoice_url": "https://pay.example/1",
        }

    def experiments_get_quote(self, experiment_id, **_):
        return forms.refuse(404, "not generated") if self.offered is None else self.offered

    def experiments_confirm_quote(self, experiment_id, **_):
        if self.refusal is not None:
            return self._conflict()
        self.confirmed.append(experiment_id)
        return {"id": "q", "status": "accepted", "invoice_id": f"inv-{experiment_id}"}

    def experiments_submit(self, experiment_id, **_):
        return self._conflict()

    def invoices_list(self, **_):
        if isinstance(self.listed, Exception):
            return self.listed.status_code, b"<html>no route matched</html>", {}
        return forms.page([] if self.listed is None else [self.listed])

    def _conflict(self):
        error = {"error": self.refusal.message, "request_id": self.refusal.request_id or "req_1"}
        return 409, error | ({"error_kind": self.refusal.code} if self.refusal.code else {}), {}
