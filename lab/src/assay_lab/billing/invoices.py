"""Invoices: creating and reading them (contract 2.8 and 4.2). Knows nothing of paying."""

import secrets
import uuid
from datetime import datetime
from functools import partial
from typing import Any, Final

from assay_lab.billing import quotes
from assay_lab.kernel.refusals import Refusal, not_found
from assay_lab.kernel.settings import API_PREFIX
from assay_lab.kernel.store import Db, Row
from assay_lab.requests import lists
from assay_lab.requests.core import Answer, Call, Lab, uuid_or_none
from assay_lab.requests.lists import Column, Listing
from assay_lab.vocabulary import InvoiceStatus, QuoteStatus

PAYABLE: Final = frozenset({InvoiceStatus.DRAFT, InvoiceStatus.OPEN})
LISTING: Final = Listing(
    source="invoices",
    columns={
        "id": Column("invoices.id"),
        "provider_invoice_id": Column("provider_invoice_id"),
        "experiment_id": Column("invoices.experiment_id", "uuid"),
        "quote_id": Column("quote_id"),
        "status": Column("invoices.status", "enum", frozenset(InvoiceStatus)),
        "amount": Column("amount_cents", "int"),
        "currency": Column("currency"),
        "created_at": Column("invoices.created_at", "timestamp"),
    },
    search=("provider_invoice_id",),
    plain=("status", "experiment_id"),
)


def create_invoice(db: Db, experiment: Row, quote: Row, created_at: datetime, *, status: str) -> Row:
    """The invoice of an accepted quote; its rail is the experiment's for life (contract 4.2)."""
    row = {
        "id": str(uuid.uuid4()),
        "org_id": experiment["org_id"],
        "experiment_id": experiment["id"],
        "quote_id": quote["id"],
        "provider_invoice_id": f"in_{secrets.token_hex(12)}",
        "status": status,
        "amount_cents": quote["total_cents"],
        "currency": quote["currency"],
        "payment_method": experiment["payment_method"],
        "created_at": created_at,
        "portal_key": secrets.token_urlsafe(18),
    }
    db.insert("invoices", row)
    return row


def find_latest(db: Db, experiment_id: str) -> Row | None:
    """The experiment's newest invoice that is not void (contract 4.2, create rule 5)."""
    return db.one(
        "SELECT * FROM invoices WHERE experiment_id = ? AND status <> 'void' ORDER BY seq DESC LIMIT 1",
        experiment_id,
    )


def find_newest(db: Db, experiment_id: str) -> Row | None:
    """The experiment's newest invoice, void or not."""
    return db.one("SELECT * FROM invoices WHERE experiment_id = ? ORDER BY seq DESC LIMIT 1", experiment_id)


def link_invoice(lab: Lab, invoice: Row) -> str:
    """The hosted page where a person pays."""
    return lab.portal_url("invoices", invoice["portal_key"])


def pay_path(invoice: Row) -> str:
    """The payment pointer's `pay_url` (contract 2.6)."""
    return f"{API_PREFIX}/invoices/{invoice['id']}/pay"


def of_experiment(call: Call) -> Answer:
    """GET /experiments/{id}/invoice: 404 names the next call (contract 4.2, rules for invoice).

    An accepted quote has its invoice, void or not; that of a failed try is not answered with (create rule 5).
    """
    with call.lab.store.transaction() as db:
        experiment = _find_experiment(db, call)
        quote = quotes.find_current(db, experiment)
        accepted = quote is not None and quote["status"] == QuoteStatus.ACCEPTED
        invoice = find_latest(db, experiment["id"]) or (
            find_newest(db, experiment["id"]) if accepted else None
        )
    if invoice is None:
        pending = quote is not None and quote["status"] == QuoteStatus.PENDING
        step = "quote/confirm" if pending else "submit"
        raise Refusal(404, f"no invoice yet; the next call is POST /experiments/{experiment['id']}/{step}")
    body = {"experiment_id": experiment["id"], "status": invoice["status"]}
    return Answer(body | {"provider_invoice_url": link_invoice(call.lab, invoice)})


def _find_experiment(db: Db, call: Call) -> Row:
    """The experiment that the path names. Only this call distinguishes unknown (400) and forbidden (403), contract 7."""
    row = db.get("experiments", uuid_or_none(call.path["experiment_id"]))
    if row is None:
        raise Refusal(400, "unknown experiment")
    if row["org_id"] != call.who.org_id:
        raise Refusal(403, "this token has no access to this experiment")
    return row


def find_invoice(db: Db, call: Call) -> Row:
    """The invoice that the path names by its own or the provider's id."""
    invoice_id = call.path["invoice_id"]
    row = db.one(
        "SELECT * FROM invoices WHERE (id = ? OR provider_invoice_id = ?) AND org_id = ?",
        invoice_id,
        invoice_id,
        call.who.org_id,
    )
    if row is None:
        raise not_found("invoice")
    return row


def view_invoice(lab: Lab, invoice: Row) -> dict[str, Any]:
    """An invoice as its own record."""
    return {
        **{name: invoice[name] for name in ("id", "provider_invoice_id", "status", "currency")},
        "amount": invoice["amount_cents"],
        **{name: invoice[name] for name in ("experiment_id", "quote_id")},
        "provider_hosted_invoice_url": link_invoice(lab, invoice),
    }


def view_costs(lab: Lab, invoice: Row) -> dict[str, Any]:
    """`costs` of an experiment that has an invoice."""
    return {
        "type": "invoiced",
        **{name: invoice[name] for name in ("amount_cents", "currency", "status")},
        "provider_invoice_url": link_invoice(lab, invoice),
    }


def list_invoices(call: Call) -> Answer:
    """GET /invoices."""
    return lists.make_page(call, LISTING, partial(view_invoice, call.lab))


def get_invoice(call: Call) -> Answer:
    """GET /invoices/{invoice_id}."""
    with call.lab.store.transaction() as db:
        return Answer(view_invoice(call.lab, find_invoice(db, call)))
