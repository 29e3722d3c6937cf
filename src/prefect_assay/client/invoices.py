"""Operations on invoices (contract 2.8, 4.2 and 4.5). Paying stands in `paying`."""

from collections.abc import Sequence

from prefect_assay.client.listing import Condition, Sorting, listed
from prefect_assay.client.parameters import FieldTest
from prefect_assay.client.read import model
from prefect_assay.client.request import Operation, Request, segment
from prefect_assay.client.walking import Pager
from prefect_assay.errors import NotReady
from prefect_assay.models.billing import ExperimentInvoice, Invoice
from prefect_assay.models.page import Page
from prefect_assay.models.vocabulary import PAGE_LIMIT_MAX, InvoiceStatus


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
    filter: Condition | None = None,  # noqa: A002 - the contract's parameter name
    search: str | None = None,
    sort: Sorting | None = None,
    status: InvoiceStatus | str | None = None,
    where: Sequence[FieldTest] = (),
    limit: int | None = None,
    offset: int | None = None,
) -> Operation[Page[Invoice]]:
    """GET /invoices: one page of the organization's invoices, newest first."""
    return listed(
        "/invoices",
        Invoice,
        filter=filter,
        search=search,
        sort=sort,
        where=where,
        limit=limit,
        offset=offset,
        status=status,
    )


def iter_invoices(
    *,
    filter: Condition | None = None,  # noqa: A002 - the contract's parameter name
    search: str | None = None,
    sort: Sorting | None = None,
    status: InvoiceStatus | str | None = None,
    where: Sequence[FieldTest] = (),
    page_size: int = PAGE_LIMIT_MAX,
) -> Pager[Invoice]:
    """All matching invoices, page by page as they are asked for."""
    return Pager(
        lambda limit, offset: invoices(
            filter=filter, search=search, sort=sort, status=status, where=where, limit=limit, offset=offset
        ),
        lambda row: row.id,
        limit=page_size,
    )


def invoice_by_id(invoice_id: str) -> Operation[Invoice]:
    """GET /invoices/{id}, by its own id or the provider's."""
    return Operation(
        request=Request(method="GET", path=f"/invoices/{segment(invoice_id)}", repeatable=True),
        read=model(Invoice),
    )
