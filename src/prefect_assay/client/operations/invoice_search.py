"""Find the invoice of an experiment, which the experiment's own billing record does not name (contract 2.8)."""

from http import HTTPStatus
from typing import Final

from prefect_assay.client.filters import eq
from prefect_assay.client.http.request import Answer, Operation, succeeded
from prefect_assay.client.operations.invoices import iter_invoices
from prefect_assay.models.billing import Invoice
from prefect_assay.models.page import Page
from prefect_assay.models.vocabulary import InvoiceStatus

_REFUSED: Final = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY})


class InvoiceSearch:
    """A walk that yields at most one invoice: the newest that is not void, else the newest void one.

    The contract does not say that invoices can be filtered by experiment. Filtering is tried first, because it
    saves reading the whole list; a service that refuses it is read page by page. Each row is compared in any
    case, so that a filter which is silently ignored cannot bring up another experiment's invoice.
    """

    def __init__(self, experiment_id: str) -> None:
        self._experiment_id = experiment_id
        self._filtered = True
        self._void: Invoice | None = None
        self._found = False
        self._pager = iter_invoices(filter=eq("experiment_id", experiment_id))

    def operation(self) -> Operation[Page[Invoice] | None] | None:
        """The next page; its value is None when the service refuses the filter."""
        following = None if self._found else self._pager.operation()
        if following is None:
            return None
        inner = following
        filtered = self._filtered

        def read(answer: Answer) -> Page[Invoice] | None:
            return inner.read(answer) if succeeded(answer.status) else None

        def accepts(status: int) -> bool:
            return succeeded(status) or (filtered and status in _REFUSED)

        return Operation(request=inner.request, read=read, accepts=accepts)

    def feed(self, answer: Page[Invoice] | None) -> tuple[Invoice, ...]:
        """Look through one page."""
        if answer is None:
            self._filtered = False
            self._pager = iter_invoices()
            return ()
        for row in self._pager.feed(answer):
            if row.experiment_id != self._experiment_id:
                continue
            if row.status != InvoiceStatus.VOID:  # contract 4.2, create rule 5: void ones are failed tries
                self._found = True
                return (row,)
            self._void = self._void or row
        if self._void is not None and self._pager.operation() is None:
            self._found = True
            return (self._void,)
        return ()


def find_invoice(experiment_id: str) -> InvoiceSearch:
    """The invoice of an experiment, or None when it has none."""
    return InvoiceSearch(experiment_id)
