"""Operations on quotes and invoices (contract 2.6 to 2.8, 4.2 and 4.5). Paying stands in `paying`."""

from enum import StrEnum
from typing import Final

from prefect_assay.client.read import model, page
from prefect_assay.client.request import Operation, Request, query, segment
from prefect_assay.client.walking import Pager
from prefect_assay.errors import NotReady, OutcomeUnknown
from prefect_assay.models.billing import ExperimentInvoice, Invoice, Quote
from prefect_assay.models.experiment import QuoteAcceptance
from prefect_assay.models.page import Page
from prefect_assay.models.vocabulary import PAGE_LIMIT_MAX

_READ_AGAIN: Final = "Read the quote before anything else"


class RejectReason(StrEnum):
    """Why a quote is rejected."""

    PRICE = "price"
    SCOPE = "scope"
    TIMELINE = "timeline"
    BUDGET = "budget"
    OTHER = "other"


def quote(experiment_id: str) -> Operation[Quote]:
    """GET /experiments/{id}/quote.

    Raises:
        NotReady: it does not exist yet (contract 4.2, rules for quote).
    """
    return Operation(
        request=Request(
            method="GET",
            path=f"/experiments/{segment(experiment_id)}/quote",
            repeatable=True,
            absent=NotReady,
        ),
        read=model(Quote),
    )


def confirm_quote(
    experiment_id: str, purchase_order_number: str | None = None, notes: str | None = None
) -> Operation[QuoteAcceptance]:
    """POST /experiments/{id}/quote/confirm, once: accept the quote. An invoice exists from then on.

    Raises:
        Conflict: it is accepted already, expired or rejected.
        OutcomeUnknown: the answer was lost: read the quote.
    """
    named = {"purchase_order_number": purchase_order_number, "notes": notes}
    return Operation(
        request=Request(
            method="POST",
            path=f"/experiments/{segment(experiment_id)}/quote/confirm",
            # a JSON body is required, an empty object will do (service-shapes)
            json={name: value for name, value in named.items() if value is not None},
            lost=OutcomeUnknown,
            after_loss=_READ_AGAIN,
        ),
        read=model(QuoteAcceptance),
    )


def quotes(*, limit: int | None = None, offset: int | None = None) -> Operation[Page[Quote]]:
    """GET /quotes: one page of the organization's quotes, newest first."""
    return Operation(
        request=Request(
            method="GET", path="/quotes", params=query(limit=limit, offset=offset), repeatable=True
        ),
        read=page(Quote),
    )


def quote_by_id(quote_id: str) -> Operation[Quote]:
    """GET /quotes/{id}: one quote by its own id."""
    return Operation(
        request=Request(method="GET", path=f"/quotes/{segment(quote_id)}", repeatable=True),
        read=model(Quote),
    )


def reject_quote(quote_id: str, reason: RejectReason | str, feedback: str | None = None) -> Operation[Quote]:
    """POST /quotes/{id}/reject, once. The experiment becomes a draft again.

    Raises:
        Conflict: the quote is settled already.
        OutcomeUnknown: the answer was lost: read the quote.
    """
    body = {"reason": str(reason), "feedback": feedback}
    return Operation(
        request=Request(
            method="POST",
            path=f"/quotes/{segment(quote_id)}/reject",
            json={name: value for name, value in body.items() if value is not None},
            lost=OutcomeUnknown,
            after_loss=_READ_AGAIN,
        ),
        read=model(Quote),
    )


def invoice(experiment_id: str) -> Operation[ExperimentInvoice]:
    """GET /experiments/{id}/invoice.

    Raises:
        NotReady: the quote is not accepted yet; the message names the next call (contract 4.2).
    """
    return Operation(
        request=Request(
            method="GET",
            path=f"/experiments/{segment(experiment_id)}/invoice",
            repeatable=True,
            absent=NotReady,
        ),
        read=model(ExperimentInvoice),
    )


def invoices(
    *,
    filter: str | None = None,  # noqa: A002 - the contract's parameter name
    sort: str | None = None,
    limit: int | None = None,
    offset: int | None = None,
) -> Operation[Page[Invoice]]:
    """GET /invoices: one page."""
    return Operation(
        request=Request(
            method="GET",
            path="/invoices",
            params=query(filter=filter, sort=sort, limit=limit, offset=offset),
            repeatable=True,
        ),
        read=page(Invoice),
    )


def iter_invoices(
    *,
    filter: str | None = None,  # noqa: A002 - the contract's parameter name
    sort: str | None = None,
    page_size: int = PAGE_LIMIT_MAX,
) -> Pager[Invoice]:
    """All matching invoices, page by page as they are asked for."""
    return Pager(
        lambda limit, offset: invoices(filter=filter, sort=sort, limit=limit, offset=offset),
        lambda row: row.id,
        limit=page_size,
    )


def invoice_by_id(invoice_id: str) -> Operation[Invoice]:
    """GET /invoices/{id}, by its own id or the provider's."""
    return Operation(
        request=Request(method="GET", path=f"/invoices/{segment(invoice_id)}", repeatable=True),
        read=model(Invoice),
    )
