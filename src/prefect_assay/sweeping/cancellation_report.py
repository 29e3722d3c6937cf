"""What is left at the service of a canceled run, and its text for people. No request is made here."""

from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import assert_never

from prefect_assay.models.base import Model
from prefect_assay.models.billing import Quote, usd
from prefect_assay.models.job import Order
from prefect_assay.payments.reconciliation import PaymentStatus
from prefect_assay.reporting.artifacts import payment_lines


class CanceledOrderState(StrEnum):
    """The state of a canceled run's order at the service; part of a tag, so the texts never change."""

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


def report_text(report: CancellationReport, others: Sequence[str], *, reject: bool) -> str:
    """Return the Markdown report of a canceled run; `others` are the names of runs that share its order."""
    order = report.order
    lines = ["# This run was canceled", ""]
    if order is not None:
        code = order.experiment_code or order.experiment_id
        link = f"[{code}]({order.experiment_url})" if order.experiment_url else code
        lines += [f"Ordered: experiment {link}, status {order.status}.", ""]
    if others:
        lines += [
            f"The order goes on, because {', '.join(others)} works on it, too. Nothing was rejected.",
            "",
        ]
    lines.append(_still_to_come(report, reject=reject))
    lines += ["", f"State of the service at {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC."]
    return "\n".join(lines)


def _still_to_come(report: CancellationReport, *, reject: bool) -> str:  # noqa: PLR0911 - one text per state
    match report.state:
        case CanceledOrderState.NOTHING:
            return "Nothing was ordered: the service has no experiment of this run. Nothing will be billed."
        case CanceledOrderState.DRAFT:
            return "The experiment is a draft. The laboratory does nothing with it, and nothing is billed."
        case CanceledOrderState.QUOTE_PENDING:
            then = "The sweep rejects it when it comes." if reject else "It will not be rejected."
            return f"The laboratory prepares a quote. Nothing is billed unless somebody accepts it. {then}"
        case CanceledOrderState.QUOTE_OPEN:
            price = usd(report.quote.amount_total if report.quote else None)
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
            return "\n".join(_billed(report.payment))
        case CanceledOrderState.CANCELED:
            return "The service has canceled the experiment. The laboratory does nothing more."
        case _:
            assert_never(report.state)


def _billed(payment: PaymentStatus) -> list[str]:
    """Describe an order with an invoice, which the service has no operation to cancel."""
    amount = usd(payment.invoice.amount if payment.invoice else None)
    if payment.paid:
        lines = [
            (
                f"**The laboratory does the work, and {amount} is billed and paid.** The service has no operation that "
                "cancels it; ask the laboratory. To get the results, start the flow again with the same campaign id: it "
                "finds the order, and orders and pays nothing."
            )
        ]
    else:
        status = payment.invoice.status if payment.invoice else "not listed"
        lines = [
            (
                f"**The order remains in force, and {amount} is billed**, in an invoice that is {status}. The service has "
                "no operation that cancels it; the laboratory starts when the invoice is paid. If the work is not wanted "
                "any more, do not pay, and ask the laboratory to cancel it."
            )
        ]
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
