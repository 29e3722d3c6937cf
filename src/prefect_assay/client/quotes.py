"""Operations on quotes (contract 2.6, 2.7, 4.2 and 4.5)."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from prefect_assay.client.checks import one_of
from prefect_assay.client.listing import Condition, Sorting, listed
from prefect_assay.client.parameters import FieldTest
from prefect_assay.client.read import model
from prefect_assay.client.request import Operation, Request, segment
from prefect_assay.client.walking import Pager
from prefect_assay.errors import InvalidRequest, NotReady, OutcomeUnknown
from prefect_assay.models.billing import Quote
from prefect_assay.models.experiment import QuoteAcceptance
from prefect_assay.models.page import Page
from prefect_assay.models.vocabulary import PAGE_LIMIT_MAX, QuoteStatus

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
    return _confirmation(f"/experiments/{segment(experiment_id)}/quote", purchase_order_number, notes)


def confirm_quote_by_id(
    quote_id: str, purchase_order_number: str | None = None, notes: str | None = None
) -> Operation[QuoteAcceptance]:
    """POST /quotes/{id}/confirm, once: accept a quote by its own id. An invoice exists from then on.

    Raises:
        Conflict: it is accepted already, expired or rejected.
        OutcomeUnknown: the answer was lost: read the quote.
    """
    return _confirmation(f"/quotes/{segment(quote_id)}", purchase_order_number, notes)


def _confirmation(
    path: str, purchase_order_number: str | None, notes: str | None
) -> Operation[QuoteAcceptance]:
    named = {"purchase_order_number": purchase_order_number, "notes": notes}
    return Operation(
        request=Request(
            method="POST",
            path=f"{path}/confirm",
            # a JSON body is required, an empty object will do (service-shapes)
            json={name: value for name, value in named.items() if value is not None},
            lost=OutcomeUnknown,
            after_loss=_READ_AGAIN,
        ),
        read=model(QuoteAcceptance),
    )


def quotes(
    *,
    filter: Condition | None = None,  # noqa: A002 - the contract's parameter name
    search: str | None = None,
    sort: Sorting | None = None,
    status: QuoteStatus | str | None = None,
    where: Sequence[FieldTest] = (),
    limit: int | None = None,
    offset: int | None = None,
) -> Operation[Page[Quote]]:
    """GET /quotes: one page of the organization's quotes, newest first."""
    return listed(
        "/quotes",
        Quote,
        filter=filter,
        search=search,
        sort=sort,
        where=where,
        limit=limit,
        offset=offset,
        status=status,
    )


def iter_quotes(
    *,
    filter: Condition | None = None,  # noqa: A002 - the contract's parameter name
    search: str | None = None,
    sort: Sorting | None = None,
    status: QuoteStatus | str | None = None,
    where: Sequence[FieldTest] = (),
    page_size: int = PAGE_LIMIT_MAX,
) -> Pager[Quote]:
    """All matching quotes, page by page as they are asked for."""
    return Pager(
        lambda limit, offset: quotes(
            filter=filter, search=search, sort=sort, status=status, where=where, limit=limit, offset=offset
        ),
        lambda row: row.id or row.quote_number or row.provider_quote_url or repr(row),
        limit=page_size,
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
        InvalidRequest: the reason is none of those that the service knows; nothing was sent.
        Conflict: the quote is settled already.
        OutcomeUnknown: the answer was lost: read the quote.
    """
    InvalidRequest.check(list(one_of("reason", str(reason), list(RejectReason))))
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
