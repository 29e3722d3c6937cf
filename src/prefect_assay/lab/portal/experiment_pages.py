"""Pages of an experiment, a quote, an invoice and a data package, opened by the unguessable key in their address."""

from collections.abc import Sequence
from typing import Any, Final

from fastapi import APIRouter, Response
from fastapi.responses import RedirectResponse
from markupsafe import Markup

from prefect_assay.lab.billing import documents, invoices
from prefect_assay.lab.experiments import experiments, purchase, results, state_machine
from prefect_assay.lab.kernel.refusals import Refusal
from prefect_assay.lab.kernel.store import Db, Row, load
from prefect_assay.lab.portal import charts, pages
from prefect_assay.lab.portal.pages import Form, TheLab, page
from prefect_assay.lab.requests.core import Lab
from prefect_assay.models.vocabulary import ExperimentStatus, InvoiceStatus, QuoteStatus

Record = dict[str, Any]

CURVES_MAX: Final = 6
REJECT_REASONS: Final = ("price", "scope", "timeline", "budget", "other")
_OPEN_QUOTES: Final = frozenset({QuoteStatus.OPEN, QuoteStatus.PENDING})
_FINAL: Final = frozenset({ExperimentStatus.DONE, ExperimentStatus.CANCELED})


def _scientific(value: float) -> Markup:
    mantissa, exponent = f"{value:.2e}".split("e")
    return Markup("{}&times;10<sup>{}</sup>").format(mantissa, int(exponent))


_COLUMNS: Final = (
    ("Call", "_call", pages.chip),
    (Markup("K<sub>D</sub>"), "kd_mean", charts.molar),
    (Markup("k<sub>on</sub> 1/(M s)"), "kon_mean", _scientific),
    (Markup("k<sub>off</sub> 1/s"), "koff_mean", _scientific),
    ("Tm °C", "tm", "{:.2f}".format),
    ("Bin", "bin", str),
    ("Active", "active", str),
    ("Expression", "expression", str),
    ("Source", "data_source", str),
)
# The one number of the assays that have no K_D.
_BARS: Final = (("tm", "°C"), ("intensity_mean", "RFU"), ("yield_mean", "mg/L"), ("kcat_mean", "1/s"))


def experiment_page(experiment: Record, updates: list[Record], results: list[Record]) -> str:
    """One experiment: its progress, its results with curves and data packages, its updates."""
    status = str(experiment.get("status", ""))
    kind, created = experiment.get("experiment_type"), experiment.get("created_at")
    return pages.render(
        "experiment.html",
        title=str(experiment.get("code") or "Experiment"),
        heading=experiment.get("code"),
        status=status,
        facts=[experiment.get("name"), pages.words(kind), pages.day(created)],
        progress=None if status == ExperimentStatus.CANCELED else charts.progress(status),
        results=[_result(result) for result in results],
        updates=updates,
        refresh=status not in _FINAL,
    )


def _result(result: Record) -> Record:
    entries = [{**entry, "_call": _call(entry)} for entry in result.get("summary") or []]
    columns = [column for column in _COLUMNS if any(entry.get(column[1]) is not None for entry in entries)]
    url = result.get("data_package_url")
    return {
        "title": result.get("title") or "Result",
        "picture": charts.kd_plot(entries) or charts.bar_plot(*_bars(entries)),
        "heads": [head for head, _, _ in columns],
        "rows": [
            (
                charts.design(entry),
                entry.get("positive_control"),
                [
                    Markup("&ndash;") if entry.get(name) is None else show(entry[name])
                    for _, name, show in columns
                ],
            )
            for entry in entries
        ],
        "curves": [charts.binding_curves(entry) for entry in charts.fitted(entries)[:CURVES_MAX]],
        # A link may lead to a web address or a path of this server, and never run a script.
        "package_url": url if isinstance(url, str) and url.startswith(("http://", "https://", "/")) else None,
    }


def _call(entry: Record) -> Any:
    """In progress is neither a call nor the lack of one."""
    states = (entry.get("binding"), entry.get("state"))
    return "in_progress" if "in_progress" in states else entry.get("binding_strength")


def _bars(entries: Sequence[Record]) -> tuple[list[tuple[str, float]], str]:
    for field, unit in _BARS:
        rows = [
            (charts.design(entry), float(entry[field])) for entry in entries if entry.get(field) is not None
        ]
        if rows:
            return rows, unit
    return [], ""


def quote_page(quote: Record, experiment: Record) -> str:
    """A quote: its lines and total, and, while it is open, the decision (`./accept`, `./reject`)."""
    title, status = f"Quote {quote.get('quote_number') or quote.get('id')}", str(quote.get("status", ""))
    return pages.render(
        "quote.html",
        title=title,
        heading=title,
        status=status,
        facts=[experiment.get("name"), experiment.get("code")],
        quote=quote,
        total=quote.get("total_cents", quote.get("amount_total")),
        until=quote.get("valid_until") or quote.get("expires_at"),
        open=status in _OPEN_QUOTES,
        reasons=REJECT_REASONS,
    )


def invoice_page(invoice: Record, experiment: Record, quote: Record) -> str:
    """An invoice with the lines of its quote, and, while it is unpaid, the button that pays it (`./pay`)."""
    status = str(invoice.get("status", ""))
    return pages.render(
        "invoice.html",
        title=f"Invoice {experiment.get('code') or ''}".strip(),
        heading="Invoice",
        status=status,
        facts=[experiment.get("name"), experiment.get("code")],
        invoice=invoice,
        quote=quote,
        payable=status in invoices.PAYABLE,
        paid=status == InvoiceStatus.PAID,
    )


router = APIRouter()


def _experiment(lab: Lab, db: Db, row: Row) -> dict[str, Any]:
    return experiments.record(lab, db, row) | {"eta": row["eta"]}


@router.get("/experiments/{key}/")
def show_experiment(lab: TheLab, key: str) -> Response:
    """Progress, updates and results."""
    with lab.store.transaction() as db:
        row = db.opened("experiments", key)
        updates = db.all(
            "SELECT id, type, name, description, created_at AS timestamp FROM updates"
            " WHERE experiment_id = ? ORDER BY seq",
            row["id"],
        )
        results.measure_released(db, row["org_id"], row["id"])
        rows = db.all("SELECT * FROM results WHERE experiment_id = ? ORDER BY position", row["id"])
        shown = [results.view(lab, result) for result in rows]
        return page(experiment_page(_experiment(lab, db, row), updates, shown))


@router.get("/quotes/{key}/")
def show_quote(lab: TheLab, key: str) -> Response:
    """A quote, with buttons."""
    with lab.store.transaction() as db:
        quote = load(db.opened("quotes", key), "line_items")
        experiment = db.known("experiments", quote["experiment_id"], "experiment")
        return page(quote_page(_public(quote), _experiment(lab, db, experiment)))


@router.get("/invoices/{key}/")
def show_invoice(lab: TheLab, key: str) -> Response:
    """A hosted invoice, with a button."""
    with lab.store.transaction() as db:
        invoice = db.opened("invoices", key)
        experiment = db.known("experiments", invoice["experiment_id"], "experiment")
        names = ("amount_cents", "payment_method", "paid_at")
        view = invoices.view(lab, invoice) | {name: invoice[name] for name in names}
        quote = load(db.get("quotes", invoice["quote_id"]) or {}, "line_items")
        return page(invoice_page(view, _experiment(lab, db, experiment), quote))


def _public(row: Row) -> Row:
    return {name: value for name, value in row.items() if name not in ("portal_key", "seq", "org_id")}


@router.get("/invoices/{key}/pdf")
def invoice_pdf(lab: TheLab, key: str) -> Response:
    """The invoice as a file."""
    content = documents.hosted_invoice(lab, key)
    return Response(content, media_type=documents.MEDIA_TYPE, headers={"Cache-Control": "no-store"})


@router.get("/packages/{key}/")
def package(lab: TheLab, key: str) -> Response:
    """The data package of a result (`data_package_url`)."""
    with lab.store.transaction() as db:
        found = results.package(db, key)
    if found is None:
        raise Refusal(404, "no such page")
    disposition = f'attachment; filename="{found[0]}"'
    return Response(found[1], media_type="application/zip", headers={"Content-Disposition": disposition})


def _done(lab: Lab) -> Response:
    lab.changed()
    return RedirectResponse("./", status_code=303)


@router.post("/quotes/{key}/accept")
def accept(lab: TheLab, key: str) -> Response:
    """Accept the quote, as `quote/confirm` does."""
    with lab.store.transaction() as db:
        quote = db.opened("quotes", key)
        now = lab.clock.now(quote["org_id"])
        purchase.accept(lab, db, quote, now, purchase_order_number=None, notes=None)
    return _done(lab)


@router.post("/quotes/{key}/reject")
def reject(lab: TheLab, key: str, fields: Form) -> Response:
    """Reject the quote; the form may carry a reason and feedback."""
    with lab.store.transaction() as db:
        quote = db.opened("quotes", key)
        reason, feedback = fields.get("reason") or "other", fields.get("feedback") or None
        purchase.reject(db, quote, reason, feedback, lab.clock.now(quote["org_id"]))
    return _done(lab)


@router.post("/invoices/{key}/pay")
def pay(lab: TheLab, key: str) -> Response:
    """A person pays the hosted invoice."""
    with lab.store.transaction() as db:
        invoice = db.opened("invoices", key)
        if invoice["status"] not in invoices.PAYABLE:
            raise Refusal(409, f"the invoice is {invoice['status']} and cannot be paid")
        state_machine.settle(lab, db, invoice, lab.clock.now(invoice["org_id"]))
    return _done(lab)
