"""Orders that break after their invoice was made (contract 4.2, create rules 5 and 6): lab faults only.

In both cases the invoice is voided. A broken confirmation is taken back, so that the same request works the next
time; a broken create leaves its experiment, which gets a quote as after a submission.
"""

from typing import Any, Final

from prefect_assay.lab.billing import invoices
from prefect_assay.lab.experiments import orders
from prefect_assay.lab.kernel import schedule, times
from prefect_assay.lab.kernel.store import Db
from prefect_assay.lab.requests.core import Lab
from prefect_assay.lab.webhooks import updates
from prefect_assay.models.vocabulary import ExperimentStatus, InvoiceStatus, QuoteStatus

_CONFIRM: Final = "/confirm"


def break_order(lab: Lab, db: Db, invoice_id: str, path: str) -> dict[str, Any]:
    """Undo what an order has made; the further fields of the error body of create rule 6.

    `invoice_id` is the invoice's own id or the provider's. The path tells a confirmation from a create.
    """
    if not path.endswith(_CONFIRM):
        return orders.fail_after_creation(lab, db, invoice_id)
    invoice = db.one("SELECT * FROM invoices WHERE id = ?", invoice_id)
    experiment = db.one("SELECT * FROM experiments WHERE id = ?", (invoice or {}).get("experiment_id"))
    quote = db.one("SELECT * FROM quotes WHERE id = ?", (invoice or {}).get("quote_id"))
    if invoice is None or experiment is None or quote is None:
        return {}
    at = lab.clock.now(experiment["org_id"])
    db.update("invoices", invoice["id"], status=InvoiceStatus.VOID)
    db.update("quotes", quote["id"], status=QuoteStatus.PENDING, updated_at=at)
    schedule.forget(db, experiment["id"])
    db.run("UPDATE experiments SET work_started_at = NULL, eta = NULL WHERE id = ?", experiment["id"])
    updates.move(db, experiment, ExperimentStatus.QUOTE_SENT, at)
    valid_until = times.read(quote["valid_until"])
    expiry = schedule.entry(experiment, valid_until, "quote_expires", detail=quote["id"], passive=True)
    schedule.add(db, expiry)
    return {
        "experiment_id": experiment["id"],
        "provider_invoice_id": invoice["provider_invoice_id"],
        "provider_hosted_invoice_url": invoices.url(lab, invoice),
    }
