"""The two calls of `InvoiceApi` on a lab in the test's own process, and what can happen on the way to it."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime

from assay_lab.kernel.faults import PaymentFault
from assay_lab.kernel.refusals import Refusal
from assay_lab.service.core import LabCore
from lab_support.core import get, order
from prefect_assay.errors import PaymentOutcomeUnknown
from prefect_assay.service.models.billing import Invoice


@dataclass(frozen=True)
class Answer:
    status_code: int
    headers: dict
    body: dict


@dataclass
class LabPayApi:
    """`loses` requests with a credential on the way to the lab."""

    core: LabCore
    base_url: str
    loses: bool = False
    sent: list[dict] = field(default_factory=list)
    probes: int = 0

    def get(self, invoice_id):
        return Invoice.model_validate(get(self.core, f"/invoices/{invoice_id}"))

    def pay(self, invoice_id, headers=None):
        if not headers:
            self.probes += 1
            return self._perform(invoice_id, {})
        self.sent.append(dict(headers))
        if self.loses:
            raise PaymentOutcomeUnknown("no answer")
        return self._perform(invoice_id, headers)

    def _perform(self, invoice_id, headers):
        try:
            found = self.core.request("POST", f"/invoices/{invoice_id}/pay", headers=dict(headers))
        except Refusal as refusal:
            return Answer(refusal.status, {}, {"error": refusal.message})
        date = format_datetime(datetime.now(UTC), usegmt=True)
        return Answer(found.status, {"date": date, **(found.headers or {})}, found.body)

    def settlements(self):
        """The lab's books: the judge of what was paid."""
        with self.core.lab.store.transaction() as db:
            return [dict(row) for row in db.all("SELECT * FROM settlements")]

    def fault(self, action, **details):
        self.core.lab.payment_faults.append(PaymentFault(action=action, **details))


def ordered_invoice(core: LabCore, method: str) -> str:
    """An order on a machine rail; its open invoice's id."""
    accepted = order(core, auto_accept_quote=True, payment={"method": method}).body
    return accepted["payment"]["pay_url"].removeprefix("/api/v1/invoices/").removesuffix("/pay")
