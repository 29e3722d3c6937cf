"""The browser pages behind the links of the API: an experiment, a quote, an invoice, a data package.

No bearer token: the unguessable key in the address opens the page, as with a real provider's hosted pages.
"""

from typing import Any

from fastapi import APIRouter, Response
from fastapi.responses import RedirectResponse

from prefect_assay.lab.billing import documents, invoices
from prefect_assay.lab.experiments import acceptance, experiments, records
from prefect_assay.lab.kernel.refusals import Refusal
from prefect_assay.lab.kernel.store import Db, Row, load
from prefect_assay.lab.laboratory import machine, measuring
from prefect_assay.lab.portal import experiment_html as pages
from prefect_assay.lab.portal.base import Core, Form, page
from prefect_assay.lab.requests.core import Lab
from prefect_assay.lab.service.core import LabCore

router = APIRouter()


def _experiment(lab: Lab, db: Db, row: Row) -> dict[str, Any]:
    return experiments.record(lab, db, row) | {"eta": row["eta"]}


@router.get("/experiments/{key}/")
def experiment_page(core: Core, key: str) -> Response:
    """Progress, updates and results."""
    lab = core.lab
    with lab.store.transaction() as db:
        row = db.opened("experiments", key)
        updates = db.all(
            "SELECT id, type, name, description, created_at AS timestamp FROM updates"
            " WHERE experiment_id = ? ORDER BY seq",
            row["id"],
        )
        measuring.measure_released(db, row["org_id"], row["id"])
        results = db.all("SELECT * FROM results WHERE experiment_id = ? ORDER BY position", row["id"])
        shown = [records.result(lab, result) for result in results]
        return page(pages.experiment_page(_experiment(lab, db, row), updates, shown))


@router.get("/quotes/{key}/")
def quote_page(core: Core, key: str) -> Response:
    """A quote, with buttons."""
    with core.lab.store.transaction() as db:
        quote = load(db.opened("quotes", key), "line_items")
        experiment = db.known("experiments", quote["experiment_id"], "experiment")
        return page(pages.quote_page(_public(quote), _experiment(core.lab, db, experiment)))


@router.get("/invoices/{key}/")
def invoice_page(core: Core, key: str) -> Response:
    """A hosted invoice, with a button."""
    with core.lab.store.transaction() as db:
        invoice = db.opened("invoices", key)
        experiment = db.known("experiments", invoice["experiment_id"], "experiment")
        names = ("amount_cents", "payment_method", "paid_at")
        view = invoices.view(core.lab, invoice) | {name: invoice[name] for name in names}
        return page(pages.invoice_page(view, _experiment(core.lab, db, experiment)))


def _public(row: Row) -> Row:
    return {name: value for name, value in row.items() if name not in ("portal_key", "seq", "org_id")}


@router.get("/invoices/{key}/pdf")
def invoice_pdf(core: Core, key: str) -> Response:
    """The invoice as a file."""
    content = documents.hosted_invoice(core.lab, key)
    return Response(content, media_type=documents.MEDIA_TYPE, headers={"Cache-Control": "no-store"})


@router.get("/packages/{key}/")
def package(core: Core, key: str) -> Response:
    """The data package of a result (`data_package_url`)."""
    with core.lab.store.transaction() as db:
        found = measuring.package(db, key)
    if found is None:
        raise Refusal(404, "no such page")
    disposition = f'attachment; filename="{found[0]}"'
    return Response(found[1], media_type="application/zip", headers={"Content-Disposition": disposition})


def _done(core: LabCore) -> Response:
    core.lab.changed()
    return RedirectResponse("./", status_code=303)


@router.post("/quotes/{key}/accept")
def accept(core: Core, key: str) -> Response:
    """Accept the quote, as `quote/confirm` does."""
    with core.lab.store.transaction() as db:
        quote = db.opened("quotes", key)
        now = core.lab.clock.now(quote["org_id"])
        acceptance.accept(core.lab, db, quote, now, purchase_order_number=None, notes=None)
    return _done(core)


@router.post("/quotes/{key}/reject")
def reject(core: Core, key: str, fields: Form) -> Response:
    """Reject the quote; the form may carry a reason and feedback."""
    with core.lab.store.transaction() as db:
        quote = db.opened("quotes", key)
        reason, feedback = fields.get("reason") or "other", fields.get("feedback") or None
        acceptance.reject(db, quote, reason, feedback, core.lab.clock.now(quote["org_id"]))
    return _done(core)


@router.post("/invoices/{key}/pay")
def pay(core: Core, key: str) -> Response:
    """A person pays the hosted invoice."""
    with core.lab.store.transaction() as db:
        invoice = db.opened("invoices", key)
        if invoice["status"] not in invoices.PAYABLE:
            raise Refusal(409, f"the invoice is {invoice['status']} and cannot be paid")
        machine.settle(core.lab, db, invoice, core.lab.clock.now(invoice["org_id"]))
    return _done(core)
