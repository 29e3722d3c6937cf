"""Settles what a canceled run leaves at the service, which has no operation that cancels an order.

An open quote can be rejected, and nothing is billed then. An order with an invoice goes on, whatever this side does.
"""

import logging
from collections.abc import Iterable
from typing import Final

from prefect_assay.books import OrderBook
from prefect_assay.client import AssayClient, RejectReason
from prefect_assay.errors import AssayError, Conflict, NotFound, OutcomeUnknown
from prefect_assay.models.job import Order
from prefect_assay.models.vocabulary import QuoteStatus
from prefect_assay.payments.reconciliation import PaymentStatus, read_payment_status
from prefect_assay.sweeping.cancellation_report import CanceledOrderState, CancellationReport
from prefect_assay.tasks.quote import BillingStage, read_billing, withdraw

_logger = logging.getLogger(__name__)

_FEEDBACK: Final = "This quote is not wanted any more: its run was canceled, or the order was made twice."
_STATES: Final = {
    BillingStage.NOT_SUBMITTED: CanceledOrderState.DRAFT,
    BillingStage.QUOTE_PENDING: CanceledOrderState.QUOTE_PENDING,
    BillingStage.QUOTE_OPEN: CanceledOrderState.QUOTE_OPEN,
    BillingStage.QUOTE_REJECTED: CanceledOrderState.QUOTE_REJECTED,
    BillingStage.QUOTE_EXPIRED: CanceledOrderState.QUOTE_ENDED,
    BillingStage.INVOICED: CanceledOrderState.INVOICED,
    BillingStage.CANCELED: CanceledOrderState.CANCELED,
}


def settle_cancellation(
    client: AssayClient, book: OrderBook, order: Order | None, *, reject: bool
) -> CancellationReport:
    """Reject the order's open quote, if `reject`, and report what remains. Safe to repeat.

    Raises:
        AssayError: the service could not be read; nothing is known.
    """
    if order is None:
        return CancellationReport(state=CanceledOrderState.NOTHING)
    billing = read_billing(client, order.experiment_id)
    rejected = False
    if billing.stage is BillingStage.QUOTE_OPEN and reject:
        rejected = reject_quote(client, order.experiment_id)
        after = read_billing(client, order.experiment_id)
        billing = after.model_copy(update={"quote": after.quote or billing.quote})
    invoiced = billing.stage is BillingStage.INVOICED
    if rejected and not invoiced:
        withdraw(book, "its run was canceled, and its quote rejected")
    return CancellationReport(
        state=CanceledOrderState.QUOTE_REJECTED if rejected and not invoiced else _STATES[billing.stage],
        order=order,
        quote=billing.quote,
        payment=read_payment_status(client, book.read().payment, order.experiment_id)
        if invoiced
        else PaymentStatus(),
    )


def reject_surplus(client: AssayClient, experiment_ids: Iterable[str]) -> None:
    """Reject the open quotes of experiments that carry an order's key and are not the order."""
    for experiment_id in experiment_ids:
        try:
            if read_billing(client, experiment_id).stage is BillingStage.QUOTE_OPEN:
                reject_quote(client, experiment_id)
        except AssayError as error:  # neither confirmed nor paid; the next execution tries again
            _logger.warning("The quote of surplus experiment %s: %s", experiment_id, error)


def reject_quote(client: AssayClient, experiment_id: str) -> bool:
    """Reject the quote of an experiment; False if it was accepted meanwhile or its id cannot be found."""
    quote_id = _quote_id(client, experiment_id)
    if quote_id is None:
        return False
    try:
        client.reject_quote(quote_id, RejectReason.OTHER, _FEEDBACK)
    except OutcomeUnknown:
        return client.quote_by_id(quote_id).status in {QuoteStatus.REJECTED, QuoteStatus.CANCELED}
    except (Conflict, NotFound):
        return False
    return True


def _quote_id(client: AssayClient, experiment_id: str) -> str | None:
    """Find the quote's id, which the experiment's quote lacks: in the detail record, else in the list."""
    known = client.experiment(experiment_id).provider_quote_id
    if known is not None:
        try:
            named = client.quote_by_id(known)
            if named.experiment_id in {None, experiment_id}:
                return named.id or known
        except NotFound:  # the provider's id, and not the service's
            pass
    page = client.quote(experiment_id).provider_quote_url
    same_page = []
    for quote in client.iter_quotes():
        if quote.experiment_id == experiment_id:
            return quote.id
        if page and quote.provider_quote_url == page:
            same_page.append(quote)
    # An address shared by several quotes identifies none of them, nor does one of another experiment.
    only = same_page[0] if len(same_page) == 1 else None
    return only.id if only and only.experiment_id is None else None
