"""What the service still does and bills for an order whose run was canceled. It has no operation that cancels.

An open quote can be rejected, and nothing is billed then. What has its invoice goes on, whatever this side does.
"""

from enum import StrEnum

from prefect_assay.client import AssayClient
from prefect_assay.client.quotes import RejectReason
from prefect_assay.errors import Conflict, NotFound, OutcomeUnknown
from prefect_assay.models.base import Model
from prefect_assay.models.billing import Quote
from prefect_assay.models.job import Order
from prefect_assay.models.vocabulary import QuoteStatus
from prefect_assay.payments import Ledger
from prefect_assay.tasks.facts import MoneyFacts, money_facts
from prefect_assay.tasks.quote import BillingStage, read_billing

_FEEDBACK = "The run that asked for this quote was canceled."


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
    facts: MoneyFacts = MoneyFacts(invoice=None, entry=None)


_KINDS = {
    BillingStage.NOT_SUBMITTED: Remainder.DRAFT,
    BillingStage.QUOTE_PENDING: Remainder.QUOTE_PENDING,
    BillingStage.QUOTE_OPEN: Remainder.QUOTE_OPEN,
    BillingStage.QUOTE_REJECTED: Remainder.QUOTE_REJECTED,
    BillingStage.QUOTE_EXPIRED: Remainder.QUOTE_ENDED,
    BillingStage.INVOICED: Remainder.INVOICED,
    BillingStage.CANCELED: Remainder.CANCELED,
}


def wind_up(client: AssayClient, ledger: Ledger, order: Order | None, *, reject: bool) -> Remains:
    """Reject the order's open quote, if wanted, and say what remains. Safe to run again.

    Args:
        client: the service.
        ledger: the record of payments.
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
        rejected = _reject(client, order.experiment_id)
        after = read_billing(client, order.experiment_id)
        billing = after.model_copy(update={"quote": after.quote or billing.quote})
    invoiced = billing.stage is BillingStage.INVOICED
    return Remains(
        kind=Remainder.QUOTE_REJECTED if rejected and not invoiced else _KINDS[billing.stage],
        order=order,
        quote=billing.quote,
        rejected=rejected,
        facts=money_facts(client, ledger, order.experiment_id)
        if invoiced
        else MoneyFacts(invoice=None, entry=None),
    )


def _reject(client: AssayClient, experiment_id: str) -> bool:
    """True when the quote is rejected now; False when somebody was faster, or it cannot be named."""
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
            return client.quote_by_id(known).id or known
        except NotFound:  # the provider's id, and not the service's
            pass
    page = client.quote(experiment_id).provider_quote_url
    for quote in client.iter_quotes():
        if quote.experiment_id == experiment_id or (page and quote.provider_quote_url == page):
            return quote.id
    return None
