"""Pages of an experiment, a quote, an invoice and a data package, opened by the unguessable key in their address."""

from collections.abc import Callable
from typing import Any, Final

from fastapi import APIRouter, Response
from fastapi.responses import RedirectResponse

from assay_lab.billing import documents, invoices
from assay_lab.experiments import purchase, results, state_machine
from assay_lab.kernel.refusals import Refusal
from assay_lab.kernel.store import Row, decode_row
from assay_lab.measure.assays import ASSAY_TYPES
from assay_lab.portal.pages import Form, TheLab, chip, day, page, render, words
from assay_lab.requests.core import Lab
from assay_lab.vocabulary import ExperimentStatus, QuoteStatus

REJECT_REASONS: Final = ("price", "scope", "timeline", "budget", "other")
_FINAL: Final = frozenset({ExperimentStatus.DONE, ExperimentStatus.CANCELED})
# What the table of results shows, where any design has it: the title, the field of the summary, and its form.
_COLUMNS: Final[tuple[tuple[str, str, Callable[[Any], Any]], ...]] = (
    ("Call", "_call", chip),
    *((title, name, text.format) for one in ASSAY_TYPES.values() for title, name, text in one.columns),
    ("Expression", "expression", str),
    ("Source", "data_source", str),
)


router = APIRouter()


@router.get("/experiments/{key}/")
def show_experiment(lab: TheLab, key: str) -> Response:
    """Status, results with data packages, and updates."""
    with lab.store.transaction() as db:
        experiment = db.opened("experiments", key)
        updates = db.all("SELECT * FROM updates WHERE experiment_id = ? ORDER BY seq", experiment["id"])
        rows = db.all("SELECT * FROM results WHERE experiment_id = ? ORDER BY position", experiment["id"])
    return page(
        render(
            "experiment.html",
            title=experiment["code"],
            status=experiment["status"],
            facts=[
                experiment["name"] or "without a name",
                words(experiment["experiment_type"]),
                day(experiment["created_at"]),
            ],
            results=[_view_result(results.view_result(lab, result)) for result in rows],
            updates=updates,
            refresh=experiment["status"] not in _FINAL,
        )
    )


def _view_result(result: Row) -> dict[str, Any]:
    entries = [{**entry, "_call": _view_call(entry)} for entry in result["summary"]]
    columns = [column for column in _COLUMNS if any(entry.get(column[1]) is not None for entry in entries)]
    return {
        "title": result["title"],
        "heads": [head for head, _, _ in columns],
        "rows": [
            (
                entry.get("sequence_name") or entry["sequence"]["name"],
                entry.get("positive_control"),
                ["" if entry.get(name) is None else show(entry[name]) for _, name, show in columns],
            )
            for entry in entries
        ],
        "package_url": result["data_package_url"],
    }


def _view_call(entry: Row) -> Any:
    """In progress is neither a call nor the lack of one."""
    states = (entry.get("binding"), entry.get("state"))
    return "in_progress" if "in_progress" in states else entry.get("binding_strength")


@router.get("/quotes/{key}/")
def show_quote(lab: TheLab, key: str) -> Response:
    """A quote, and while it is open the decision."""
    with lab.store.transaction() as db:
        quote = decode_row(db.opened("quotes", key), "line_items")
        experiment = db.known("experiments", quote["experiment_id"], "experiment")
    return page(
        render(
            "quote.html",
            title=f"Quote {quote['quote_number']}",
            status=quote["status"],
            facts=[experiment["name"] or "without a name", experiment["code"]],
            quote=quote,
            open=quote["status"] == QuoteStatus.PENDING,
            reasons=REJECT_REASONS,
        )
    )


@router.get("/invoices/{key}/")
def show_invoice(lab: TheLab, key: str) -> Response:
    """A hosted invoice with the lines of its quote, and while it is unpaid the button that pays it."""
    with lab.store.transaction() as db:
        invoice = db.opened("invoices", key)
        experiment = db.known("experiments", invoice["experiment_id"], "experiment")
        quote = decode_row(db.known("quotes", invoice["quote_id"], "quote"), "line_items")
    return page(
        render(
            "invoice.html",
            title=f"Invoice {invoice['provider_invoice_id']}",
            status=invoice["status"],
            facts=[experiment["name"] or "without a name", experiment["code"]],
            invoice=invoice,
            quote=quote,
            payable=invoice["status"] in invoices.PAYABLE,
        )
    )


@router.get("/invoices/{key}/pdf")
def invoice_pdf(lab: TheLab, key: str) -> Response:
    """The invoice as a file."""
    content = documents.hosted_invoice(lab, key)
    return Response(content, media_type=documents.MEDIA_TYPE, headers={"Cache-Control": "no-store"})


@router.get("/packages/{key}/")
def send_package(lab: TheLab, key: str) -> Response:
    """The data package of a result (`data_package_url`)."""
    with lab.store.transaction() as db:
        package = results.find_package(db, key)
    if package is None:
        raise Refusal(404, "no such page")
    disposition = f'attachment; filename="{package[0]}"'
    return Response(package[1], media_type="application/zip", headers={"Content-Disposition": disposition})


def _go_back(lab: Lab) -> Response:
    lab.changed()
    return RedirectResponse("./", status_code=303)


@router.post("/quotes/{key}/accept")
def accept_on_page(lab: TheLab, key: str) -> Response:
    """Accept the quote, as `quote/confirm` does."""
    with lab.store.transaction() as db:
        quote = db.opened("quotes", key)
        now = lab.clock.now(quote["org_id"])
        purchase.accept_quote(lab, db, quote, now, purchase_order_number=None, notes=None)
    return _go_back(lab)


@router.post("/quotes/{key}/reject")
def reject_on_page(lab: TheLab, key: str, fields: Form) -> Response:
    """Reject the quote; the form may carry a reason and feedback."""
    with lab.store.transaction() as db:
        quote = db.opened("quotes", key)
        reason, feedback = fields.get("reason") or "other", fields.get("feedback") or None
        purchase.reject_quote(db, quote, reason, feedback, lab.clock.now(quote["org_id"]))
    return _go_back(lab)


@router.post("/invoices/{key}/pay")
def pay_on_page(lab: TheLab, key: str) -> Response:
    """A person pays the hosted invoice."""
    with lab.store.transaction() as db:
        invoice = db.opened("invoices", key)
        if invoice["status"] not in invoices.PAYABLE:
            raise Refusal(409, f"the invoice is {invoice['status']} and cannot be paid")
        state_machine.record_settlement(lab, db, invoice, lab.clock.now(invoice["org_id"]))
    return _go_back(lab)
