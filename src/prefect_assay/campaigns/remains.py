"""What remains of the orders of a canceled campaign: withdraws what can be withdrawn, and reports the rest.

The service has no operation that cancels an order: an open quote can be rejected, an order with an invoice goes on.
"""

import logging
from collections.abc import Iterable
from enum import StrEnum
from typing import Final, assert_never

from prefect_assay.campaigns.artifacts import payment_lines
from prefect_assay.errors import AssayError, Conflict, NotFound, OutcomeUnknown
from prefect_assay.foreign_text import link_markdown
from prefect_assay.orders.billing import BillingStage, read_billing, withdraw_order
from prefect_assay.orders.job import Order
from prefect_assay.orders.ledger import OrderLedger
from prefect_assay.orders.payments.reconciliation import PaymentStatus, read_payment_status
from prefect_assay.service.client import AssayClient, RejectReason
from prefect_assay.service.models.base import Model
from prefect_assay.service.models.billing import Quote, usd
from prefect_assay.service.models.status_questions import has_work_begun, is_quote_rejected
from prefect_assay.service.models.vocabulary import ExperimentStatus
from prefect_assay.service.words import in_words

_logger = logging.getLogger(__name__)


class CanceledOrderState(StrEnum):
    """The state of a canceled order at the service."""

    NOTHING = "nothing"
    DRAFT = "draft"
    QUOTE_PENDING = "quote-pending"
    QUOTE_OPEN = "quote-open"
    QUOTE_REJECTED = "quote-rejected"
    QUOTE_ENDED = "quote-ended"
    INVOICED = "invoiced"
    CANCELED = "canceled"


class CancellationReport(Model):
    """The state with its figures."""

    state: CanceledOrderState
    order: Order | None = None
    quote: Quote | None = None
    payment: PaymentStatus = PaymentStatus()

    @property
    def must_not_be_paid(self) -> bool:
        """The experiment is canceled, which need not void its invoice."""
        return self._canceled and not self.payment.paid

    @property
    def must_be_refunded(self) -> bool:
        """The experiment is canceled and paid: no results come."""
        return self._canceled and self.payment.paid

    @property
    def _canceled(self) -> bool:
        return self.order is not None and self.order.status == ExperimentStatus.CANCELED


_FEEDBACK: Final = (
    "This quote is not wanted any more: its campaign was canceled, or the order was made twice."
)
_STATES: Final = {
    BillingStage.NOT_SUBMITTED: CanceledOrderState.DRAFT,
    BillingStage.QUOTE_PENDING: CanceledOrderState.QUOTE_PENDING,
    BillingStage.QUOTE_UNKNOWN: CanceledOrderState.QUOTE_PENDING,
    BillingStage.QUOTE_OPEN: CanceledOrderState.QUOTE_OPEN,
    BillingStage.QUOTE_REJECTED: CanceledOrderState.QUOTE_REJECTED,
    BillingStage.QUOTE_EXPIRED: CanceledOrderState.QUOTE_ENDED,
    BillingStage.INVOICED: CanceledOrderState.INVOICED,
    BillingStage.CANCELED: CanceledOrderState.CANCELED,
}


def settle_cancellation(
    client: AssayClient, ledger: OrderLedger, order: Order | None, *, reject: bool
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
        withdraw_order(ledger, "its campaign was canceled, and its quote rejected")
    return CancellationReport(
        state=CanceledOrderState.QUOTE_REJECTED if rejected and not invoiced else _STATES[billing.stage],
        order=order,
        quote=billing.quote,
        payment=read_payment_status(client, ledger.read().payment, order.experiment_id)
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
        client.quotes.reject(quote_id, RejectReason.OTHER, _FEEDBACK)
    except OutcomeUnknown:
        return is_quote_rejected(client.quotes.get(quote_id).status)
    except (Conflict, NotFound):
        return False
    return True


def _quote_id(client: AssayClient, experiment_id: str) -> str | None:
    """Find the quote's id, which the experiment's quote lacks: in the detail record, else in the list."""
    known = client.experiments.get(experiment_id).provider_quote_id
    if known is not None:
        try:
            named = client.quotes.get(known)
            if named.experiment_id in {None, experiment_id}:
                return named.id or known
        except NotFound:  # the provider's id, and not the service's
            pass
    page = client.experiments.get_quote(experiment_id).provider_quote_url
    same_page = []
    for quote in client.quotes.iterate():
        if quote.experiment_id == experiment_id:
            return quote.id
        if page and quote.provider_quote_url == page:
            same_page.append(quote)
    # An address shared by several quotes identifies none of them, and one of another experiment doesn't either.
    only = same_page[0] if len(same_page) == 1 else None
    return only.id if only and only.experiment_id is None else None


def order_text(report: CancellationReport, *, reject: bool) -> str:
    """Return the Markdown lines about one canceled order; `reject` if open quotes are rejected."""
    order = report.order
    lines = []
    if order is not None:
        code = order.experiment_code or order.experiment_id
        link = link_markdown(code, order.experiment_url)
        lines += [f"Ordered: experiment {link}, status {in_words(order.status)}.", ""]
    lines.append(_still_to_come(report, reject=reject))
    return "\n".join(lines)


def order_line(report: CancellationReport) -> str:  # noqa: PLR0911 - one text per state
    """Return what remains of one canceled order, in one line without markup."""
    match report.state:
        case CanceledOrderState.NOTHING:
            return "not ordered: nothing is billed"
        case CanceledOrderState.DRAFT:
            return "a draft at the laboratory: nothing is billed"
        case CanceledOrderState.QUOTE_PENDING:
            return "its quote is still to come: nothing is billed unless somebody accepts it"
        case CanceledOrderState.QUOTE_OPEN:
            price = usd(report.quote.total if report.quote else None)
            return f"its quote over {price} is open: nothing is billed unless somebody accepts it"
        case CanceledOrderState.QUOTE_REJECTED:
            return "withdrawn, its quote is rejected: nothing is billed"
        case CanceledOrderState.QUOTE_ENDED:
            return "its quote has expired: nothing is billed"
        case CanceledOrderState.INVOICED:
            return _billed_line(report)
        case CanceledOrderState.CANCELED:
            return "canceled by the laboratory"
        case _:
            assert_never(report.state)


def _billed_line(report: CancellationReport) -> str:
    invoice = report.payment.invoice
    amount = usd(invoice.amount if invoice else None)
    doubt = "; a payment was sent and may have been made" if report.payment.in_doubt else ""
    if report.must_not_be_paid:
        return f"canceled by the laboratory; its invoice over {amount} must not be paid{doubt}"
    if report.must_be_refunded:
        return f"canceled by the laboratory, and {amount} is paid: ask it for a refund"
    if report.payment.paid:
        return f"ordered and billed: {amount}, paid; reopen the campaign to get its results"
    billed = f"ordered and billed: {amount}, invoice {in_words(invoice.status) if invoice else 'not listed'}{doubt}"
    if report.order is None:
        return billed
    if report.order.status == ExperimentStatus.DONE:
        return f"{billed}; the work is done: pay it"
    status = in_words(report.order.status)
    return f"{billed}; the laboratory may be at work ({status}): ask it whether it can stop, or pay it"


def _still_to_come(report: CancellationReport, *, reject: bool) -> str:  # noqa: PLR0911 - one text per state
    match report.state:
        case CanceledOrderState.NOTHING:
            return "Nothing was ordered: the service has no experiment of this order. Nothing will be billed."
        case CanceledOrderState.DRAFT:
            return "The experiment is a draft. The laboratory does nothing with it, and nothing is billed."
        case CanceledOrderState.QUOTE_PENDING:
            then = "The sweep rejects it when it comes." if reject else "It will not be rejected."
            return f"The laboratory prepares a quote. Nothing is billed unless somebody accepts it. {then}"
        case CanceledOrderState.QUOTE_OPEN:
            price = usd(report.quote.total if report.quote else None)
            why = "could not be rejected" if reject else "was not rejected"
            return (
                f"Its quote over {price} is open and {why}. Nothing is billed unless somebody accepts it: reject it in "
                "the portal, or let it expire."
            )
        case CanceledOrderState.QUOTE_REJECTED:
            return "Its quote is rejected. The laboratory does nothing, and nothing is billed."
        case CanceledOrderState.QUOTE_ENDED:
            return "Its quote has expired. The laboratory does nothing, and nothing is billed."
        case CanceledOrderState.INVOICED:
            return "\n".join(_list_billed(report))
        case CanceledOrderState.CANCELED:
            return "The service has canceled the experiment. The laboratory does nothing more."
        case _:
            assert_never(report.state)


def _list_billed(report: CancellationReport) -> list[str]:
    order, payment = report.order, report.payment
    amount = usd(payment.invoice.amount if payment.invoice else None)
    done = order is not None and order.status == ExperimentStatus.DONE
    works = order is not None and has_work_begun(order.status)
    results = (
        "To get the results, reopen the campaign: start it again with the same campaign id and `--reopen`. It finds the "
        "order, and orders it only once."
    )
    if report.must_be_refunded:
        lines = [
            f"**The laboratory has canceled the experiment, and {amount} is paid.** Ask it for a refund."
        ]
    elif payment.paid:
        work = "has done" if done else "does"
        cannot = "" if done else " The service has no operation that cancels it; ask the laboratory."
        lines = [f"**The laboratory {work} the work, and {amount} is billed and paid.**{cannot} {results}"]
    elif report.must_not_be_paid:
        refusal = f"**The experiment is canceled, and its invoice over {amount} must not be paid.**"
        lines = [f"{refusal} Ask the laboratory to void it."]
    else:
        status = in_words(payment.invoice.status) if payment.invoice else "not listed"
        billed = f"**The order remains in force, and {amount} is billed**, in an invoice that is {status}."
        if done:
            then = f"The laboratory has done the work, and its invoice is due. {results}"
        else:
            begun = (
                "The laboratory works on it, although the invoice is not paid."
                if works
                else "The laboratory may have begun: nothing says that it waits for the payment."
            )
            then = (
                f"{begun} The service has no operation that cancels an order: if the work is not wanted any more, ask the "
                "laboratory at once whether it can stop, and what it bills. What it has done is due."
            )
        lines = [f"{billed} {then}"]
    if payment.in_doubt:
        lines += [
            "",
            (
                "**A payment was sent, and may have been made.** The invoice does not show it. Look at the invoice and at "
                "the wallet."
            ),
        ]
    rows = payment_lines(payment)
    return [*lines, "", "| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows.items())]
