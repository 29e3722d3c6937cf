"""What the service still does and bills for an order whose run was canceled. It has no operation that cancels.

An open quote can be rejected, and nothing is billed then. What has its invoice goes on, whatever this side does.
"""

import logging
from collections.abc import Iterable
from enum import StrEnum

from prefect_assay.books import OrderBook
from prefect_assay.client import AssayClient, RejectReason
from prefect_assay.errors import AssayError, Conflict, NotFound, OutcomeUnknown
from prefect_assay.models.base import Model
from prefect_assay.models.billing import Quote
from prefect_assay.models.job import Order
from prefect_assay.models.vocabulary import QuoteStatus
from prefect_assay.payments.reconciliation import PaymentStatus, read_payment_status
from prefect_assay.tasks.quote import BillingStage, read_billing, withdraw

logger = logging.getLogger(__name__)

_FEEDBACK = "This quote is not wanted any more: its run was canceled, or the order was made twice."


class Remainder(StrEnum):
    """What is left of a canceled run at the service."""

    NOTHING = "nothing"
    DRAFT = "draft"
    QUOTE_PENDING = "quote-pending"
    QUOTE_OPEN = "quote-open"
    QUOTE_REJECTED = "quote-rejected"
    QUOTE_ENDED = "quote-ended"
    INVOICED = "invoiced"
    CANCELED = "canceled"


class Remains(Model):
    """The remainder with its figures; `rejected` is what this look has done."""

    kind: Remainder
    order: Order | None = None
    quote: Quote | None = None
    rejected: bool = False
    facts: PaymentStatus = PaymentStatus()


_KINDS = {
    BillingStage.NOT_SUBMITTED: Remainder.DRAFT,
    BillingStage.QUOTE_PENDING: Remainder.QUOTE_PENDING,
    BillingStage.QUOTE_OPEN: Remainder.QUOTE_OPEN,
    BillingStage.QUOTE_REJECTED: Remainder.QUOTE_REJECTED,
    BillingStage.QUOTE_EXPIRED: Remainder.QUOTE_ENDED,
    BillingStage.INVOICED: Remainder.INVOICED,
    BillingStage.CANCELED: Remainder.CANCELED,
}


def wind_up(client: AssayClient, book: OrderBook, order: Order | None, *, reject: bool) -> Remains:
    """Reject the order's open quote, if wanted, and say what remains. Safe to run again.

    Args:
        client: the service.
        book: the order's log.
        order: the canceled run's order, None when it has none.
        reject: whether an open quote is rejected.

    Raises:
        AssayError: the service could not be asked; nothing is known.
    """
    if order is None:
        return Remains(kind=Remainder.NOTHING)
    billing = read_billing(client, order.experiment_id)
    rejected = False
    if billing.stage is BillingStage.QUOTE_OPEN and reject:
        rejected = reject_quote(client, order.experiment_id)
        after = read_billing(client, order.experiment_id)
        billing = after.model_copy(update={"quote": after.quote or billing.quote})
    invoiced = billing.stage is BillingStage.INVOICED
    if rejected and not invoiced:
        withdraw(book, "its run was canceled, and its quote rejected")
    return Remains(
        kind=Remainder.QUOTE_REJECTED if rejected and not invoiced else _KINDS[billing.stage],
        order=order,
        quote=billing.quote,
        rejected=rejected,
        facts=read_payment_status(client, book.read().payment, order.experiment_id)
        if invoiced
        else PaymentStatus(),
    )


def reject_surplus(client: AssayClient, experiment_ids: Iterable[str]) -> None:
    """Reject the open quotes of experiments that carry an order's key and are not the order."""
    for experiment_id in experiment_ids:
        try:
            if read_billing(client, experiment_id).stage is BillingStage.QUOTE_OPEN:
                reject_quote(client, experiment_id)
        except AssayError as error:  # it is neither confirmed nor paid, and the next execution looks again
            logger.warning("The quote of surplus experiment %s: %s", experiment_id, error)


def reject_quote(client: AssayClient, experiment_id: str) -> bool:
    """Reject the quote of an experiment. True when the quote is rejected now; False when somebody was faster, or it cannot be named."""
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
    """The quote's own id, which the experiment's quote does not show: by the detail record, else by the list."""
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
    # An address that several quotes share names none of them, nor does one that another experiment has.
    only = same_page[0] if len(same_page) == 1 else None
    return only.id if only and only.experiment_id is None else None
