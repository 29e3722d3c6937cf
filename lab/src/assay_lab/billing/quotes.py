"""Quotes: issuing and reading them (contract 2.6, 2.7 and 4.5). Knows nothing of accepting."""

import secrets
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from assay_lab.billing import pricing, specs
from assay_lab.kernel import schedule, times
from assay_lab.kernel.refusals import Refusal
from assay_lab.kernel.store import Db, Row, decode_row
from assay_lab.requests import lists
from assay_lab.requests.core import Answer, Call, Lab, experiment_of, require_owned
from assay_lab.requests.lists import Column, Listing
from assay_lab.vocabulary import QuoteStatus

_VALID_DAYS: Final = 30
# Stored in the words of contract 2.7; the experiment's own quote has those of 2.6.
_ACCEPTANCE_WORDS: Final[dict[str, str]] = {
    QuoteStatus.PENDING: QuoteStatus.OPEN,
    QuoteStatus.REJECTED: QuoteStatus.CANCELED,
    QuoteStatus.EXPIRED: QuoteStatus.STALE,
}

LISTING: Final = Listing(
    source="quotes",
    columns={
        "id": Column("quotes.id"),
        "quote_number": Column("quote_number"),
        "experiment_id": Column("quotes.experiment_id", "uuid"),
        "status": Column(
            "quotes.status",
            "enum",
            frozenset({"draft", "pending", "accepted", "rejected", "expired"}),
            aliases={word: stored for stored, word in _ACCEPTANCE_WORDS.items()},
        ),
        "amount_cents": Column("total_cents", "int"),
        "currency": Column("currency"),
        "valid_until": Column("valid_until", "timestamp"),
        "expires_at": Column("valid_until", "timestamp"),
        "created_at": Column("quotes.created_at", "timestamp"),
    },
    search=("quote_number",),
    plain=("status", "experiment_id", "created_at"),
)


def issue_quote(
    db: Db, experiment: Row, issued_at: datetime, *, status: QuoteStatus = QuoteStatus.PENDING
) -> Row:
    """Write a quote for the experiment in its present form; `accepted` at once for auto_accept_quote."""
    lines = pricing.line_items(specs.price_of(db, experiment))
    total = sum(line["total_cents"] for line in lines)
    valid_until = issued_at + timedelta(days=_VALID_DAYS)
    [earlier] = db.column("SELECT count(*) FROM quotes WHERE org_id = ?", experiment["org_id"])
    row = {
        "id": f"qt_{secrets.token_hex(12)}",
        "org_id": experiment["org_id"],
        "experiment_id": experiment["id"],
        "quote_number": f"QT-{earlier + 1:05d}",
        "status": status,
        "line_items": lines,
        "subtotal_cents": total,
        "total_cents": total,  # excluding VAT (contract 1)
        "currency": "usd",
        "valid_until": times.stamp(valid_until),
        "created_at": times.stamp(issued_at),
        "updated_at": times.stamp(issued_at),
        "portal_key": secrets.token_urlsafe(18),
    }
    db.insert("quotes", row)
    if status == QuoteStatus.PENDING:
        schedule_expiry(db, experiment, row)
    return row


def schedule_expiry(db: Db, experiment: Row, quote: Row) -> None:
    """Queue the end of a pending quote's validity."""
    valid_until = times.read(quote["valid_until"])
    schedule.add_entries(
        db, schedule.make_entry(experiment, valid_until, "quote_expires", detail=quote["id"], passive=True)
    )


def find_current(db: Db, experiment: Row) -> Row | None:
    """The experiment's valid quote; None while a new one is being prepared."""
    newest = "SELECT * FROM quotes WHERE experiment_id = ? ORDER BY seq DESC LIMIT 1"
    quote = db.one(newest, experiment["id"])
    return None if quote is None or schedule.find_queued(db, experiment["id"], "quote_ready") else quote


def require_current(db: Db, experiment: Row) -> Row:
    """The experiment's current quote; 404 means not yet (contract 4.2, rules for quote)."""
    quote = find_current(db, experiment)
    if quote is None:
        raise Refusal(404, "the quote is not generated yet; submit the experiment and ask again later")
    return quote


def acceptance_word(status: str) -> str:
    """A quote status in the vocabulary of contract 2.6."""
    return str(_ACCEPTANCE_WORDS.get(status, status))


def link_quote(lab: Lab, quote: Row) -> str:
    """The page where a person decides on the quote."""
    return lab.portal_url("quotes", quote["portal_key"])


def of_experiment(call: Call) -> Answer:
    """GET /experiments/{id}/quote: 404 means not yet (contract 4.2)."""
    with call.lab.store.transaction() as db:
        experiment = experiment_of(db, call)
        quote = require_current(db, experiment)
    return Answer(
        {
            "experiment_id": experiment["id"],
            "provider_quote_url": link_quote(call.lab, quote),
            "amount_total": quote["total_cents"],
            "amount_subtotal": quote["subtotal_cents"],
            "currency": quote["currency"],
            "status": acceptance_word(quote["status"]),
            "expires_at": quote["valid_until"],
            "updated_at": quote["updated_at"],
        }
    )


def list_quotes(call: Call) -> Answer:
    """GET /quotes."""
    return lists.make_page(call, LISTING, partial(_view_item, call))


def _view_item(call: Call, quote: Row) -> dict[str, Any]:
    return {
        "id": quote["id"],
        "quote_number": quote["quote_number"],
        "organization": call.who.org_name,
        "amount_cents": quote["total_cents"],
        **_view_common(call.lab, quote),
    }


def _view_common(lab: Lab, quote: Row) -> dict[str, Any]:
    return {
        **{name: quote[name] for name in ("currency", "status", "valid_until", "created_at")},
        "expires_at": quote["valid_until"],  # the same under the name of contract 2.7
        "provider_quote_url": link_quote(lab, quote),
    }


def find_quote(db: Db, call: Call) -> Row:
    """The quote that the path names."""
    return require_owned(db, call, "quotes", call.path["quote_id"], "quote")


def get_quote(call: Call) -> Answer:
    """GET /quotes/{quote_id}."""
    with call.lab.store.transaction() as db:
        quote = decode_row(find_quote(db, call), "line_items")
    return Answer(
        {
            "id": quote["id"],
            "quote_number": quote["quote_number"],
            "organization_id": quote["org_id"],
            "organization_name": call.who.org_name,
            **{name: quote[name] for name in ("line_items", "subtotal_cents")},
            "tax_cents": 0,
            "total_cents": quote["total_cents"],
            "notes": quote["notes"],
            "terms_and_conditions": "Prices exclude VAT. This quote comes from a local lab and is not binding.",
            **_view_common(call.lab, quote),
        }
    )
