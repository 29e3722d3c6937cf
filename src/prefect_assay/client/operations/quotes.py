"""Operations on quotes (contract 2.6, 2.7, 4.2 and 4.5)."""

from enum import StrEnum
from functools import partial
from typing import Final, Unpack

from prefect_assay.client.checks import one_of
from prefect_assay.client.decoding import get, once
from prefect_assay.client.http.pagination import Pager
from prefect_assay.client.http.request import Operation, given, segment
from prefect_assay.client.lists import PageOptions, WalkOptions, listed, walked
from prefect_assay.errors import InvalidRequest, NotReady
from prefect_assay.models.billing import Quote
from prefect_assay.models.experiment import QuoteAcceptance
from prefect_assay.models.page import Page
from prefect_assay.models.vocabulary import QuoteStatus

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
    return get(f"/experiments/{segment(experiment_id)}/quote", Quote, NotReady)


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
    body = given(purchase_order_number=purchase_order_number, notes=notes)
    # a JSON body is required, an empty object will do (service-shapes)
    return once("POST", f"{path}/confirm", QuoteAcceptance, _READ_AGAIN, body)


def quotes(
    *,
    status: QuoteStatus | str | None = None,
    **chosen: Unpack[PageOptions],
) -> Operation[Page[Quote]]:
    """GET /quotes: one page of the organization's quotes, newest first."""
    return listed("/quotes", Quote, {"status": status}, **chosen)


def iter_quotes(
    *,
    status: QuoteStatus | str | None = None,
    **chosen: Unpack[WalkOptions],
) -> Pager[Quote]:
    """All matching quotes, page by page as they are asked for."""
    return walked(partial(quotes, status=status), key=_identity, **chosen)


def _identity(row: Quote) -> str:
    return row.id or row.quote_number or row.provider_quote_url or repr(row)


def quote_by_id(quote_id: str) -> Operation[Quote]:
    """GET /quotes/{id}: one quote by its own id."""
    return get(f"/quotes/{segment(quote_id)}", Quote)


def reject_quote(quote_id: str, reason: RejectReason | str, feedback: str | None = None) -> Operation[Quote]:
    """POST /quotes/{id}/reject, once. The experiment becomes a draft again.

    Raises:
        InvalidRequest: the reason is none of those that the service knows; nothing was sent.
        Conflict: the quote is settled already.
        OutcomeUnknown: the answer was lost: read the quote.
    """
    InvalidRequest.check(list(one_of("reason", str(reason), list(RejectReason))))
    body = given(reason=str(reason), feedback=feedback)
    return once("POST", f"/quotes/{segment(quote_id)}/reject", Quote, _READ_AGAIN, body)
