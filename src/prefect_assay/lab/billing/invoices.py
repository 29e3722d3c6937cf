"""Invoices: making and showing them (contract 2.8 and 4.2). Paying stands in `payment`."""

import secrets
import uuid
from datetime import datetime
from typing import Any, Final

from prefect_assay.lab.billing import quotes
from prefect_assay.lab.kernel.refusals import Refusal, not_found
from prefect_assay.lab.kernel.settings import API_PREFIX
from prefect_assay.lab.kernel.store import Db, Row
from prefect_assay.lab.requests import lists
from prefect_assay.lab.requests.core import Answer, Call, Lab, uuid_or_none
from prefect_assay.lab.requests.lists import Column, Listing
from prefect_assay.models.vocabulary import InvoiceStatus, QuoteStatus

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


def create(db: Db, experiment: Row, quote: Row, at: datetime, *, status: str) -> Row:
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
        "created_at": at,
        "portal_key": secrets.token_urlsafe(18),
    }
    db.insert("invoices", row)
    return row


def latest(db: Db, experiment_id: str) -> Row | None:
    """The experiment's newest invoice; a voided one counts as none (contract 4.2, create rule 5)."""
    return db.one(
        "SELECT * FROM invoices WHERE experiment_id = ? AND status <> 'void' ORDER BY seq DESC LIMIT 1",
        experiment_id,
    )


def url(lab: Lab, invoice: Row) -> str:
    """The hosted page where a person pays."""
    return lab.portal_url("invoices", invoice["portal_key"])


def pay_path(invoice: Row) -> str:
    """The payment pointer's `pay_url` (contract 2.6)."""
    return f"{API_PREFIX}/invoices/{invoice['id']}/pay"


def of_experiment(call: Call) -> Answer:
    """GET /experiments/{id}/invoice: 404 names the next call (contract 4.2, rules for invoice)."""
    with call.lab.store.transaction() as db:
        experiment = _experiment(db, call)
        invoice = latest(db, experiment["id"])
        quote = quotes.current(db, experiment)
    path = f"{API_PREFIX}/experiments/{experiment['id']}"
    if invoice is None:
        pending = quote is not None and quote["status"] == QuoteStatus.PENDING
        following = f"POST {path}/quote/confirm" if pending else f"POST {path}/submit"
        raise Refusal(404, f"no invoice yet; the next call is {following}")
    return Answer(
        {
            "experiment_id": experiment["id"],
            "status": invoice["status"],
            "provider_invoice_url": url(call.lab, invoice),
        }
    )


def _experiment(db: Db, call: Call) -> Row:
    """The experiment that the path names. This call alone tells unknown (400) from forbidden (403), contract 7."""
    row = db.one("SELECT * FROM experiments WHERE id = ?", uuid_or_none(call.path["experiment_id"]))
    if row is None:
        raise Refusal(400, "unknown experiment")
    if row["org_id"] != call.who.org_id:
        raise Refusal(403, "this token has no access to this experiment")
    return row


def find(db: Db, call: Call) -> Row:
    """The invoice that the path names by its own or the provider's id."""
    wanted = call.path["invoice_id"]
    row = db.one(
        "SELECT * FROM invoices WHERE (id = ? OR provider_invoice_id = ?) AND org_id = ?",
        wanted,
        wanted,
        call.who.org_id,
    )
    if row is None:
        raise not_found("invoice")
    return row


def view(lab: Lab, invoice: Row) -> dict[str, Any]:
    """An invoice as its own record."""
    return {
        "id": invoice["id"],
        "provider_invoice_id": invoice["provider_invoice_id"],
        "status": invoice["status"],
        "currency": invoice["currency"],
        "amount": invoice["amount_cents"],
        "experiment_id": invoice["experiment_id"],
        "quote_id": invoice["quote_id"],
        "provider_hosted_invoice_url": url(lab, invoice),
        "created_at": invoice["created_at"],
    }


def costs(lab: Lab, invoice: Row) -> dict[str, Any]:
    """`costs` of an experiment that has an invoice."""
    return {
        "type": "invoiced",
        "amount_cents": invoice["amount_cents"],
        "currency": invoice["currency"],
        "status": invoice["status"],
        "provider_invoice_url": url(lab, invoice),
    }


def listing(call: Call) -> Answer:
    """GET /invoices."""
    with call.lab.store.transaction() as db:
        return Answer(lists.page(db, LISTING, call, render=lambda _db, row: view(call.lab, row)))


def detail(call: Call) -> Answer:
    """GET /invoices/{invoice_id}."""
    with call.lab.store.transaction() as db:
        return Answer(view(call.lab, find(db, call)))
