"""Quotes of the organization (contract 2.6, 2.7 and 4.5). The quote of one experiment: `experiments.get_quote`."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Final

from prefect_assay.errors import InvalidRequest
from prefect_assay.service.client.answers import require_record
from prefect_assay.service.client.checks import one_of
from prefect_assay.service.client.decoding import build_act, build_read
from prefect_assay.service.client.filters import Condition, Sorting
from prefect_assay.service.client.http.request import Operation, drop_none, quote_segment
from prefect_assay.service.client.parameters import FieldTest
from prefect_assay.service.client.resources.resource import ListQuery, Resource
from prefect_assay.service.models.base import Page
from prefect_assay.service.models.billing import Quote
from prefect_assay.service.models.experiment import QuoteAcceptance
from prefect_assay.service.models.vocabulary import PAGE_LIMIT_MAX, QuoteStatus

_READ_AGAIN: Final = "Read the quote before anything else"


def _key(row: Quote) -> str:
    return row.id or row.quote_number or row.provider_quote_url or repr(row)


_QUOTES: Final = ListQuery(path="/quotes", row=Quote, key=_key)


class RejectReason(StrEnum):
    """Why a quote is rejected."""

    PRICE = "price"
    SCOPE = "scope"
    TIMELINE = "timeline"
    BUDGET = "budget"
    OTHER = "other"


class Quotes(Resource):
    """Prices to accept or reject (contract 4.5). The quote of one experiment: `experiments.get_quote`."""

    def list(
        self,
        *,
        status: QuoteStatus | str | None = None,
        filter: Condition | None = None,
        search: str | None = None,
        sort: Sorting | None = None,
        where: Sequence[FieldTest] = (),
        limit: int | None = None,
        offset: int | None = None,
    ) -> Page[Quote]:
        """List one page, newest first: GET /quotes (contract 2.7 and 4.5).

        The other parameters are those of `experiments.list`; `where` takes tests of `created_at`.

        Example:
            ```python
            print(client.quotes.list(status="pending").total)
            ```
        """
        return self._sender.run(
            _QUOTES.select(filter, search, sort, where, fields={"status": status}).build_page(limit, offset)
        )

    def iterate(
        self,
        *,
        status: QuoteStatus | str | None = None,
        filter: Condition | None = None,
        search: str | None = None,
        sort: Sorting | None = None,
        where: Sequence[FieldTest] = (),
        page_size: int = PAGE_LIMIT_MAX,
    ) -> Iterator[Quote]:
        """Yield all matching quotes, page by page; parameters as in `list` (contract 2.7 and 4.5).

        Example:
            ```python
            for quote in client.quotes.iterate(where=[p.geq("created_at", since)]):
                print(quote.id, quote.status)
            ```
        """
        return _QUOTES.select(filter, search, sort, where, fields={"status": status}).iterate(
            self._sender, page_size
        )

    def get(self, quote_id: str) -> Quote:
        """Read one quote: GET /quotes/{id} (contract 4.5).

        Example:
            ```python
            print(client.quotes.get(quote_id).expires_at)
            ```
        """
        return self._sender.run(require_record(build_read(_path(quote_id), Quote), quote_id))

    def confirm(
        self, quote_id: str, purchase_order_number: str | None = None, notes: str | None = None
    ) -> QuoteAcceptance:
        """Accept a quote by its own id, sent once: POST /quotes/{id}/confirm (contract 2.6 and 4.5).

        This orders, as `experiments.confirm_quote` does. It raises the same errors.

        Example:
            ```python
            client.quotes.confirm(quote_id, purchase_order_number="PO-17")
            ```
        """
        operation = build_confirmation(_path(quote_id), purchase_order_number, notes)
        return self._sender.run(require_record(operation, quote_id))

    def reject(self, quote_id: str, reason: RejectReason | str, feedback: str | None = None) -> Quote:
        """Reject a quote, sent once: POST /quotes/{id}/reject (contract 4.5). The experiment becomes a draft again.

        Raises:
            InvalidRequest: the service does not know the reason; nothing was sent.
            Conflict: the quote is settled already.
            OutcomeUnknown: the answer was lost: read the quote.

        Example:
            ```python
            client.quotes.reject(quote_id, RejectReason.PRICE, "over our budget")
            ```
        """
        InvalidRequest.check([*one_of("reason", str(reason), [*RejectReason])])
        body = drop_none(reason=str(reason), feedback=feedback)
        operation = build_act("POST", f"{_path(quote_id)}/reject", Quote, _READ_AGAIN, body)
        return self._sender.run(require_record(operation, quote_id))


def build_confirmation(
    path: str, purchase_order_number: str | None, notes: str | None
) -> Operation[QuoteAcceptance]:
    """The acceptance of the quote at a path, sent once."""
    body = drop_none(purchase_order_number=purchase_order_number, notes=notes)
    # a JSON body is required, an empty object will do (service-shapes)
    return build_act("POST", f"{path}/confirm", QuoteAcceptance, _READ_AGAIN, body)


def _path(quote_id: str) -> str:
    return f"/quotes/{quote_segment(quote_id)}"
