"""What is left at the service of a canceled run, in words. It looks at nothing and does nothing."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from prefect_assay.models.billing import usd
from prefect_assay.reporting.artifacts import payment_lines
from prefect_assay.sweeping.settle_cancellation import Remainder, Remains

_REMAINS: Final = {
    Remainder.NOTHING: "Nothing was ordered: the service has no experiment of this run. Nothing will be billed.",
    Remainder.DRAFT: "The experiment is a draft. The laboratory does nothing with it, and nothing is billed.",
    Remainder.QUOTE_REJECTED: "Its quote is rejected. The laboratory does nothing, and nothing is billed.",
    Remainder.QUOTE_ENDED: "Its quote has expired. The laboratory does nothing, and nothing is billed.",
    Remainder.CANCELED: "The service has canceled the experiment. The laboratory does nothing more.",
}


def remains_text(remains: Remains, others: Sequence[str], *, reject: bool) -> str:
    """What is left at the service of a canceled run, in words."""
    order = remains.order
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
    lines.append(_still_to_come(remains, reject=reject))
    lines += ["", f"As the service said it at {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC."]
    return "\n".join(lines)


def _still_to_come(remains: Remains, *, reject: bool) -> str:
    price = usd(remains.quote.amount_total if remains.quote else None)
    match remains.kind:
        case Remainder.QUOTE_PENDING:
            then = "The sweep rejects it when it comes." if reject else "It will not be rejected."
            return f"The laboratory prepares a quote. Nothing is billed unless somebody accepts it. {then}"
        case Remainder.QUOTE_OPEN:
            why = "could not be rejected" if reject else "was not rejected"
            return (
                f"Its quote over {price} is open and {why}. Nothing is billed unless somebody accepts it: reject it in "
                "the portal, or let it expire."
            )
        case Remainder.INVOICED:
            return "\n".join(_billed(remains))
        case _:
            return _REMAINS[remains.kind]


def _billed(remains: Remains) -> list[str]:
    """An order with its invoice: the service has no operation that stops it."""
    facts = remains.facts
    amount = usd(facts.invoice.amount if facts.invoice else None)
    if facts.paid:
        lines = [
            (
                f"**The laboratory does the work, and {amount} is billed and paid.** The service has no operation that "
                "cancels it; ask the laboratory. To get the results, start the flow again with the same campaign id: it "
                "finds the order, and orders and pays nothing."
            )
        ]
    else:
        status = facts.invoice.status if facts.invoice else "not listed"
        lines = [
            (
                f"**The order stands, and {amount} is billed**, in an invoice that is {status}. The service has no "
                "operation that cancels it; the laboratory starts when the invoice is paid. If the work is not wanted any "
                "more, do not pay, and ask the laboratory to cancel it."
            )
        ]
    if facts.in_doubt:
        lines += [
            "",
            (
                "**A payment was sent, and may have been made.** The invoice does not show it. Look at the invoice and at "
                "the wallet."
            ),
        ]
    rows = payment_lines(facts)
    return [*lines, "", "| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows.items())]
