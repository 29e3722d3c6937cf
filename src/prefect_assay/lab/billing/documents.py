"""Quotes and invoices as PDF files (service shapes, Quotes and invoices).

The quote's file needs the token. The invoice's call redirects to a file under `/portal`, which the key in its address
opens, as at a provider, so that the token is not sent there.
"""

from collections.abc import Sequence
from typing import Any, Final

from prefect_assay.lab.billing import invoices, pdf, quotes
from prefect_assay.lab.kernel.store import Db, Row, load
from prefect_assay.lab.requests.core import Answer, Call, Lab, experiment_of

MEDIA_TYPE: Final = "application/pdf"


def quote_pdf(call: Call) -> Answer:
    """GET /experiments/{id}/quote/pdf: 404 until the quote exists."""
    with call.lab.store.transaction() as db:
        experiment = experiment_of(db, call)
        quote = load(quotes.of(db, experiment), "line_items")
    about = [
        ("Quote", quote["quote_number"]),
        ("Organization", call.who.org_name),
        ("Experiment", f"{experiment['code']}  {experiment['name'] or ''}"),
        ("Status", quotes.acceptance_word(quote["status"])),
        ("Issued", quote["created_at"][:10]),
        ("Valid until", quote["valid_until"][:10]),
    ]
    content = pdf.document(f"Quote {quote['quote_number']}", [*_pairs(about), "", *_items(quote)])
    disposition = {"Content-Disposition": f'attachment; filename="{quote["quote_number"]}.pdf"'}
    return Answer(content, 200, disposition, MEDIA_TYPE)


def invoice_pdf(call: Call) -> Answer:
    """GET /invoices/{invoice_id}/pdf: redirects to the file, which is fetched without the token."""
    with call.lab.store.transaction() as db:
        invoice = invoices.find(db, call)
    return Answer(None, 307, {"Location": f"{invoices.url(call.lab, invoice)}pdf"})


def hosted_invoice(lab: Lab, key: str) -> bytes:
    """The invoice that the portal key opens, as a PDF; 404 for an unknown key."""
    with lab.store.transaction() as db:
        return _invoice(db, db.opened("invoices", key))


def _invoice(db: Db, invoice: Row) -> bytes:
    quote = load(db.get("quotes", invoice["quote_id"]) or {}, "line_items")
    experiment = db.get("experiments", invoice["experiment_id"]) or {}
    organization = db.get("organizations", invoice["org_id"]) or {}
    about = [
        ("Invoice", invoice["provider_invoice_id"]),
        ("Organization", organization["name"]),
        ("Experiment", f"{experiment['code']}  {experiment['name'] or ''}"),
        ("Quote", quote["quote_number"]),
        ("Purchase order", quote["purchase_order_number"] or "-"),
        ("Status", invoice["status"]),
        ("Issued", invoice["created_at"][:10]),
        ("Paid", (invoice["paid_at"] or "-")[:10]),
    ]
    return pdf.document("Invoice", [*_pairs(about), "", *_items(quote)])


def _pairs(pairs: Sequence[tuple[str, Any]]) -> list[str]:
    return [f"{name:<16}{value}" for name, value in pairs]


def _items(quote: Row) -> list[str]:
    currency, lines = quote["currency"].upper(), quote["line_items"]
    rule = "-" * pdf.WIDTH
    return [
        _row("Description", "Quantity", f"Total {currency}"),
        rule,
        *(_row(line["description"], str(line["quantity"]), _money(line["total_cents"])) for line in lines),
        rule,
        _row("Total, excluding VAT", "", _money(quote["total_cents"])),
        "",
        "This document comes from a local lab and is not binding.",
    ]


def _row(description: str, quantity: str, total: str) -> str:
    return f"{description[:49]:<50}{quantity:>10}{total:>20}"


def _money(cents: int) -> str:
    return f"{cents // 100:,}.{cents % 100:02d}"
