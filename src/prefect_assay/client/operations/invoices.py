"""Operations on invoices (contract 2.8, 4.2 and 4.5). Paying stands in `paying`."""

from functools import partial
from typing import Unpack

from prefect_assay.client.decoding import get
from prefect_assay.client.http.pagination import Pager
from prefect_assay.client.http.request import Operation, segment
from prefect_assay.client.lists import PageOptions, WalkOptions, listed, walked
from prefect_assay.errors import NotReady
from prefect_assay.models.billing import ExperimentInvoice, Invoice
from prefect_assay.models.page import Page
from prefect_assay.models.vocabulary import InvoiceStatus


def invoice(experiment_id: str) -> Operation[ExperimentInvoice]:
    """GET /experiments/{id}/invoice.

    Raises:
        NotReady: the quote is not accepted yet; the message names the next call (contract 4.2).
    """
    return get(f"/experiments/{segment(experiment_id)}/invoice", ExperimentInvoice, NotReady)


def invoices(
    *,
    status: InvoiceStatus | str | None = None,
    **chosen: Unpack[PageOptions],
) -> Operation[Page[Invoice]]:
    """GET /invoices: one page of the organization's invoices, newest first."""
    return listed("/invoices", Invoice, {"status": status}, **chosen)


def iter_invoices(
    *,
    status: InvoiceStatus | str | None = None,
    **chosen: Unpack[WalkOptions],
) -> Pager[Invoice]:
    """All matching invoices, page by page as they are asked for."""
    return walked(partial(invoices, status=status), **chosen)


def invoice_by_id(invoice_id: str) -> Operation[Invoice]:
    """GET /invoices/{id}, by its own id or the provider's."""
    return get(f"/invoices/{segment(invoice_id)}", Invoice)
