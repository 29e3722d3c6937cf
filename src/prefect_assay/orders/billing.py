"""The stages of an order between its creation and its invoice, as the service shows them. Only reads and records."""

from datetime import datetime
from enum import StrEnum
from typing import Final

from prefect_assay.errors import NotReady, PaymentRefused, TransientError, UnexpectedAnswer
from prefect_assay.orders.ledger import OrderLedger
from prefect_assay.orders.ledger.log import Withdrawn
from prefect_assay.service.client import AssayClient
from prefect_assay.service.client.http.dates import time_at
from prefect_assay.service.models.base import Model
from prefect_assay.service.models.billing import Quote
from prefect_assay.service.models.status_questions import (
    is_accepted,
    is_invoice_paid,
    is_quote_expired,
    is_quote_open,
    is_quote_rejected,
)
from prefect_assay.service.models.vocabulary import (
    ExperimentStatus,
    InvoiceStatus,
    QuoteStatus,
)


class BillingStage(StrEnum):
    """In order of time; the last three end the order without an invoice."""

    NOT_SUBMITTED = "not_submitted"
    QUOTE_PENDING = "quote_pending"
    QUOTE_OPEN = "quote_open"
    QUOTE_UNKNOWN = "quote_unknown"  # sent (contract 3), with a status that this version does not know
    INVOICED = "invoiced"
    QUOTE_REJECTED = "quote_rejected"
    QUOTE_EXPIRED = "quote_expired"
    CANCELED = "canceled"


class Billing(Model):
    """A stage, and its quote, if any. Amounts are US cents without VAT."""

    stage: BillingStage
    quote: Quote | None = None


# A person confirms one with an unknown status; a flow asks.
CONFIRMABLE: Final = frozenset({BillingStage.QUOTE_OPEN, BillingStage.QUOTE_UNKNOWN})


def read_billing(client: AssayClient, experiment_id: str, now: datetime | None = None) -> Billing:
    """Read the stage. The invoice comes first: it exists only after acceptance (contract 4.2).

    A void one decides nothing: it is left of a failed try (create rule 5), of a cancellation, or of an accepted quote.
    A quote expires by the service's clock (its `Date`), because this machine's may be wrong.
    """
    try:
        if client.experiments.get_invoice(experiment_id).status != InvoiceStatus.VOID:
            return Billing(stage=BillingStage.INVOICED)
    except NotReady:
        pass
    except UnexpectedAnswer:  # an answer that shows no invoice holds back neither payment nor results
        if not _has_invoice(client, experiment_id):
            raise
        return Billing(stage=BillingStage.INVOICED)
    status = client.experiments.get(experiment_id).status
    if status == ExperimentStatus.CANCELED:
        return Billing(stage=BillingStage.CANCELED)
    try:
        quote = client.experiments.get_quote(experiment_id)
    except NotReady:
        draft = status == ExperimentStatus.DRAFT
        return Billing(stage=BillingStage.NOT_SUBMITTED if draft else BillingStage.QUOTE_PENDING)
    stage = _stage_of(quote, now or time_at(client))
    if stage is BillingStage.QUOTE_PENDING and status == ExperimentStatus.QUOTE_SENT and not is_known(quote):
        stage = BillingStage.QUOTE_UNKNOWN
    return Billing(stage=stage, quote=quote)


def _has_invoice(client: AssayClient, experiment_id: str) -> bool:
    """Whether the experiment or its quote says that an invoice exists (contract 3, 4.2)."""
    if is_accepted(client.experiments.get(experiment_id).status):
        return True
    try:
        return client.experiments.get_quote(experiment_id).status == QuoteStatus.ACCEPTED
    except NotReady:
        return False


def is_hosted_invoice_paid(client: AssayClient, experiment_id: str) -> bool:
    """Whether an experiment's invoice reads as paid, by one plain reading; one that is not shown now is not."""
    try:
        return is_invoice_paid(client.experiments.get_invoice(experiment_id).status)
    except NotReady:
        return False


def is_known(quote: Quote) -> bool:
    """Whether the quote's status is a word of either vocabulary (contract 2.6, 2.7)."""
    return isinstance(quote.status, QuoteStatus)


def _stage_of(quote: Quote, now: datetime) -> BillingStage:
    if quote.status == QuoteStatus.ACCEPTED:
        return BillingStage.INVOICED
    if is_quote_rejected(quote.status):
        return BillingStage.QUOTE_REJECTED
    if is_quote_expired(quote.status) or (quote.expires_at is not None and quote.expires_at <= now):
        return BillingStage.QUOTE_EXPIRED
    # A draft is being prepared (contract 2.7). A status of a later version may ask for anything: it is neither accepted
    # nor rejected.
    return BillingStage.QUOTE_OPEN if is_quote_open(quote.status) else BillingStage.QUOTE_PENDING


def check_total(quote: Quote, experiment_id: str) -> int | None:
    """The total of a quote in US cents without tax, None if none can be read; PaymentRefused for another currency."""
    if quote.money.currency:
        raise PaymentRefused(
            f"the quote of experiment {experiment_id} cannot be accepted: {quote.money.currency}. Nothing was accepted; ask "
            "the laboratory for a quote in US dollars"
        )
    return quote.total


def require_order(ledger: OrderLedger, experiment_id: str) -> None:
    """Raise TransientError if the order's log names another experiment by now.

    Another run may have found an older experiment of the order, and confirmed or paid that one.
    """
    ordered = ledger.state.ordered
    if ordered is None or ordered.experiment_id != experiment_id:
        raise TransientError(
            f"experiment {experiment_id} is no longer the experiment of the order; nothing was accepted or paid for it"
        )


def withdraw_order(ledger: OrderLedger, reason: str) -> None:
    """Record that an order ended without an invoice; it no longer counts against a cap.

    An order of unknown outcome stays as it is: the laboratory may have it.
    """
    ended = ledger.record(
        lambda state: (
            None
            if state.settled or state.payment or state.withdrawn or state.open_attempts
            else Withdrawn(reason=reason)
        )
    )
    if ended is not None:
        ledger.ledgers.budget.release(ledger.order_key)
