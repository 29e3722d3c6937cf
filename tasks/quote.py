"""The stages of an order between its creation and its invoice, and the confirmation of its quote."""

from datetime import datetime
from enum import StrEnum

from prefect import task

from prefect_assay.blocks import AssayCredentials
from prefect_assay.books import OrderBook
from prefect_assay.books.log import Confirming, Withdrawn
from prefect_assay.client import AssayClient
from prefect_assay.client.http.dates import time_at
from prefect_assay.errors import (
    BudgetExceeded,
    Conflict,
    NotReady,
    PaymentRefused,
    RequestRefused,
    TransientError,
    UnexpectedAnswer,
)
from prefect_assay.models.base import Model
from prefect_assay.models.billing import Quote, is_far_below, usd
from prefect_assay.models.vocabulary import (
    AFTER_MATERIALS,
    OPEN_QUOTES,
    ExperimentStatus,
    InvoiceStatus,
    QuoteStatus,
)
from prefect_assay.ordering import acceptance_of
from prefect_assay.runs.transient_failures import ONCE


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
CONFIRMABLE = frozenset({BillingStage.QUOTE_OPEN, BillingStage.QUOTE_UNKNOWN})
_REJECTED = {QuoteStatus.REJECTED, QuoteStatus.CANCELED}
_EXPIRED = {QuoteStatus.EXPIRED, QuoteStatus.STALE}
_INVOICED = AFTER_MATERIALS | {ExperimentStatus.WAITING_FOR_MATERIALS}
_PASSES = {"rate_limited", "upstream_server_error"}  # service-shapes, submit 409


def read_billing(client: AssayClient, experiment_id: str, now: datetime | None = None) -> Billing:
    """Read the stage. The invoice comes first: it exists only after acceptance (contract 4.2).

    A void one decides nothing: it is left of a failed try (create rule 5), of a cancellation, or of an accepted quote.
    A quote expires by the service's clock (its `Date`), because this machine's may be wrong.
    """
    try:
        if client.invoice(experiment_id).status != InvoiceStatus.VOID:
            return Billing(stage=BillingStage.INVOICED)
    except NotReady:
        pass
    except UnexpectedAnswer:  # an answer that shows no invoice holds back neither payment nor results
        if not _has_invoice(client, experiment_id):
            raise
        return Billing(stage=BillingStage.INVOICED)
    status = client.experiment(experiment_id).status
    if status == ExperimentStatus.CANCELED:
        return Billing(stage=BillingStage.CANCELED)
    try:
        quote = client.quote(experiment_id)
    except NotReady:
        draft = status == ExperimentStatus.DRAFT
        return Billing(stage=BillingStage.NOT_SUBMITTED if draft else BillingStage.QUOTE_PENDING)
    stage = _stage_of(quote, now or time_at(client))
    if stage is BillingStage.QUOTE_PENDING and status == ExperimentStatus.QUOTE_SENT and not is_known(quote):
        stage = BillingStage.QUOTE_UNKNOWN
    return Billing(stage=stage, quote=quote)


def _has_invoice(client: AssayClient, experiment_id: str) -> bool:
    """Whether the experiment or its quote says that an invoice exists (contract 3, 4.2)."""
    if client.experiment(experiment_id).status in _INVOICED:
        return True
    try:
        return client.quote(experiment_id).status == QuoteStatus.ACCEPTED
    except NotReady:
        return False


def is_known(quote: Quote) -> bool:
    """Whether the quote's status is a word of either vocabulary (contract 2.6, 2.7)."""
    return isinstance(quote.status, QuoteStatus)


def _stage_of(quote: Quote, now: datetime) -> BillingStage:
    if quote.status == QuoteStatus.ACCEPTED:
        return BillingStage.INVOICED
    if quote.status in _REJECTED:
        return BillingStage.QUOTE_REJECTED
    if quote.status in _EXPIRED or (quote.expires_at is not None and quote.expires_at <= now):
        return BillingStage.QUOTE_EXPIRED
    # A draft is being prepared (contract 2.7). A status of a later version may ask for anything: it is neither accepted
    # nor rejected.
    return BillingStage.QUOTE_OPEN if quote.status in OPEN_QUOTES else BillingStage.QUOTE_PENDING


@task(name="poll-quote", task_run_name="poll-quote-{experiment_id}", **ONCE)
def poll_quote(credentials: AssayCredentials, experiment_id: str) -> Billing:
    """Read the stage once. The flow suspends between two reads."""
    with credentials.get_client() as client:
        return read_billing(client, experiment_id)


@task(name="confirm-quote", task_run_name="confirm-quote-{experiment_id}", **ONCE)
def confirm_quote(
    credentials: AssayCredentials,
    experiment_id: str,
    *,
    book: OrderBook,
    approved_cents: int,
    campaign_cap_cents: int | None = None,
    untotaled: bool = False,
) -> Billing:
    """Accept an open quote if its total is within the approved amount. Safe to run again.

    Args:
        credentials: the token that ordered.
        experiment_id: the order's experiment.
        book: the order's log.
        approved_cents: the approved amount, in US cents.
        campaign_cap_cents: the cap of all orders of the campaign; None sets no cap.
        untotaled: a person has approved the quote although it shows no total that can be read; then what was approved
            counts.

    Raises:
        BudgetExceeded: the quote's total is over the approved amount or far below it, or the campaign would exceed its
            cap (`cap`); nothing was accepted.
        DecisionNeeded: the order's log and the budget contradict each other; nothing was accepted.
        OrderOutcomeUnknown: the order is in another log of the archive; nothing was accepted.
        PaymentRefused: the quote is not in US dollars; nothing was accepted.
        TransientError: the order has another experiment by now, or the service did not accept an open quote; nothing was
            accepted.
    """
    with credentials.get_client() as client:
        billing = read_billing(client, experiment_id)
        if billing.stage not in CONFIRMABLE or billing.quote is None:
            return billing
        total = check_total(billing.quote, experiment_id)
        if total is None:
            if not untotaled:
                raise TransientError(f"the quote of experiment {experiment_id} shows no total any more")
            total = approved_cents
        if total > approved_cents or (total != approved_cents and is_far_below(total, approved_cents)):
            raise BudgetExceeded(
                f"the quote of experiment {experiment_id} is {usd(total)}, approved were {usd(approved_cents)}; "
                "nothing was accepted. Run the flow again to approve the new total"
            )
        book.require_only_log()
        book.require_agreement()
        budget = book.books.budget
        budget.reserve(book.order_key, book.campaign_id, total, campaign_cap_cents=campaign_cap_cents)
        book.record(
            lambda state: (
                Confirming(amount_cents=total)
                if state.ordered and state.ordered.experiment_id == experiment_id and not state.confirmed
                else None
            )
        )
        require_order(book, experiment_id)
        try:
            answer = client.confirm_quote(experiment_id)
        except Conflict as refusal:
            return _refused(client, experiment_id, refusal)
        book.record(lambda _: acceptance_of(client, answer, experiment_id))
        return read_billing(client, experiment_id)


def _refused(client: AssayClient, experiment_id: str, refusal: Conflict) -> Billing:
    """The stage of an order whose quote was not accepted: the present state counts, which may lag behind the refusal."""
    billing = read_billing(client, experiment_id)
    if billing.stage not in CONFIRMABLE:
        return billing  # accepted meanwhile by someone else, rejected, or expired
    if "expired" in refusal.message.lower():  # service-shapes: 409 for one that has expired or is confirmed
        return billing.model_copy(update={"stage": BillingStage.QUOTE_EXPIRED})
    raise TransientError(
        f"{refusal.message}, and the quote of experiment {experiment_id} reads as open: it is read again later",
        request_id=refusal.request_id,
        status_code=refusal.status_code,
    ) from refusal


def check_total(quote: Quote, experiment_id: str) -> int | None:
    """The total of a quote in US cents without tax, None if none can be read; PaymentRefused for another currency."""
    if quote.money.currency:
        raise PaymentRefused(
            f"the quote of experiment {experiment_id} cannot be accepted: {quote.money.currency}. Nothing was accepted; ask "
            "the laboratory for a quote in US dollars"
        )
    return quote.total


def require_order(book: OrderBook, experiment_id: str) -> None:
    """Raise TransientError if the order's log names another experiment by now.

    Another run may have found an older experiment of the order, and confirmed or paid that one.
    """
    ordered = book.state.ordered
    if ordered is None or ordered.experiment_id != experiment_id:
        raise TransientError(
            f"experiment {experiment_id} is no longer the experiment of the order; nothing was accepted or paid for it"
        )


def withdraw(book: OrderBook, reason: str) -> None:
    """Record that an order ended without an invoice; it no longer counts against a cap."""
    ended = book.record(
        lambda state: None if state.settled or state.payment or state.withdrawn else Withdrawn(reason=reason)
    )
    if ended is not None:
        book.books.budget.release(book.order_key)


@task(name="submit-draft", task_run_name="submit-draft-{experiment_id}", **ONCE)
def submit_draft(credentials: AssayCredentials, experiment_id: str) -> None:
    """Submit an order that is still a draft after a failure. Submitting twice changes nothing.

    Raises:
        TransientError: the service could not do it now.
        RequestRefused: it does not do it; `code` is the reason.
    """
    with credentials.get_client() as client:
        if client.experiment(experiment_id).status != ExperimentStatus.DRAFT:
            return
        try:
            client.submit(experiment_id)
        except Conflict as refusal:
            if client.experiment(experiment_id).status != ExperimentStatus.DRAFT:
                return  # submitted meanwhile by someone else
            if refusal.code in _PASSES:
                raise TransientError(
                    refusal.message, request_id=refusal.request_id, status_code=409
                ) from refusal
            raise RequestRefused.of(refusal) from refusal
