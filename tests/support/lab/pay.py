"""The two calls of `PayApi` on a lab in the test's own process, and what can happen on the way to it."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime

from prefect_assay.errors import PaymentOutcomeUnknown
from prefect_assay.lab.kernel.faults import PaymentFault
from prefect_assay.lab.kernel.refusals import Refusal
from prefect_assay.lab.service.core import LabCore
from prefect_assay.models.billing import Invoice
from support.lab.core import get, order


@dataclass(frozen=True)
class Answer:
    status_code: int
    headers: dict
    body: dict


@dataclass
class LabPayApi:
    """`on_the_way` names what befalls requests with a credential: lost_before, lost_after, doubled, error_after."""

    core: LabCore
    base_url: str
    on_the_way: str = ""
    sent: list[dict] = field(default_factory=list)
    probes: int = 0
    stale: Invoice | None = None  # what readings show instead of the truth

    def invoice_by_id(self, invoice_id):
        return self.stale or Invoice.model_validate(get(self.core, f"/invoices/{invoice_id}"))

    def pay(self, invoice_id, headers=None):
        if not headers:
            self.probes += 1
            return self._perform(invoice_id, {})
        self.sent.append(dict(headers))
        if self.on_the_way == "lost_before":
            raise PaymentOutcomeUnknown("no answer")
        answer = self._perform(invoice_id, headers)
        if self.on_the_way == "lost_after":
            raise PaymentOutcomeUnknown("no answer")
        if self.on_the_way == "error_after":
            raise PaymentOutcomeUnknown("no verdict", status_code=502)
        return self._perform(invoice_id, headers) if self.on_the_way == "doubled" else answer

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
