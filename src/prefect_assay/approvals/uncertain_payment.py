"""Asking a person about a payment whose outcome nobody knows: money may have moved, and the invoice does not show it.

The invoice decides, whatever a person says: work goes on when it is paid. Paying again is offered only where a second
settlement is impossible, because the rail gives every authorisation for one invoice the same nonce.
"""

import hashlib
from collections.abc import Callable, Iterable
from typing import Final, Literal, cast

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.objects import FlowRun
from pydantic import Field

from prefect_assay.approvals.questions import Question, answer_for_nobody, answers, ask, is_about
from prefect_assay.blocks import AssayCredentials, SpendingPolicy
from prefect_assay.errors import ApprovalExpired, ApprovalRejected
from prefect_assay.models.vocabulary import PaymentMethod
from prefect_assay.payments.reconciliation import PaymentStatus, read_payment_status
from prefect_assay.reporting.artifacts import money_lines
from prefect_assay.runs.tags import EXPERIMENT_TAG, tag_values

_TOPIC: Final = "doubt-"
_PAID = "paid: the invoice is read again, and must say so. "
_STOP = "stop: end this run; the order stands."


class PaymentDoubt(Question):
    """The form for a rail whose payments could be settled twice."""

    decision: Literal["paid", "stop"] = Field(title="Decision", description=_PAID + _STOP)


class RepeatablePaymentDoubt(Question):
    """The form for a rail that can pay one invoice only once."""

    decision: Literal["paid", "pay_again", "stop"] = Field(
        title="Decision",
        description=f"{_PAID}pay_again: sign anew with the same nonce, so that only one can settle. {_STOP}",
    )


_FORMS = {PaymentMethod.X402_EXACT: RepeatablePaymentDoubt}


def ask_about_payment(
    policy: SpendingPolicy, method: PaymentMethod, *, key: str, what: str, why: str, facts: PaymentStatus
) -> None:
    """Suspend until a person has looked. Never returns: `answered_doubt` finds the answer in the next execution.

    Args:
        policy: gives the time for an answer.
        method: the rail; it decides whether paying again is offered.
        key: names the payment.
        what: names what is paid, for the form.
        why: what happened, in the words of the error.
        facts: the invoice and the ledger's entry.
    """
    ask(
        _FORMS.get(method, PaymentDoubt),
        question=_question(key),
        description=_description(what, why, facts, policy.approval_hours),
        hours=policy.approval_hours,
    )


def answered_doubt(
    key: str, what: str, read_facts: Callable[[], PaymentStatus]
) -> Literal["paid", "pay_again"] | None:
    """What a person has said about the payment of this key; None when nobody was asked in this run.

    An answer counts once: it is taken from the record as it is read.

    Raises:
        ApprovalRejected: a person has stopped the run.
        ApprovalExpired: nobody has answered in time, and the invoice is still not paid.
    """
    given = answers(_question(key))
    if not given:
        return None
    facts = read_facts()
    for answer in given:
        answer.take()
    last = given[0]
    if facts.paid:
        return "paid"
    status = facts.invoice.status if facts.invoice else "not listed"
    stands = (
        f"its invoice is {status}, and money may have moved. The order stands; running the flow again reads the "
        "invoice first"
    )
    if last.late:
        raise ApprovalExpired(f"nobody has said in time what became of the payment of {what}; {stands}")
    if last.decision == "stop":
        note = f" ({last.values['note']})" if last.values.get("note") else ""
        raise ApprovalRejected(f"a person has stopped the payment of {what}{note}; {stands}")
    return "pay_again" if last.decision == "pay_again" else "paid"


def answer_paid(client: SyncPrefectClient, runs: Iterable[FlowRun], problems: list[str]) -> list[str]:
    """Wake the runs that ask about a payment whose invoice is paid by now; returns their ids.

    The invoice is what a person would have looked at, and the run reads it again before it goes on.
    """
    woken = []
    for run in runs:
        if not is_about(run, _TOPIC):
            continue
        try:
            paid = any(_is_paid(run, experiment_id) for experiment_id in tag_values(run.tags, EXPERIMENT_TAG))
            if paid and answer_for_nobody(client, run, {"decision": "paid", "note": "The invoice is paid."}):
                woken.append(str(run.id))
        except Exception as error:  # noqa: BLE001 - one revoked token must not keep the others waiting
            problems.append(f"run {run.name}, which asks about a payment: {error}")
    return woken


def _is_paid(run: FlowRun, experiment_id: str) -> bool:
    given = run.parameters["credentials"]["$ref"]
    reference = given if isinstance(given, dict) else {"block_document_id": str(given)}
    credentials = cast("AssayCredentials", AssayCredentials.load_from_ref(reference))
    with credentials.get_client() as service:
        return read_payment_status(service, None, experiment_id).paid


def _question(key: str) -> str:
    return f"{_TOPIC}{hashlib.sha256(key.encode()).hexdigest()[:20]}"


def _description(what: str, why: str, facts: PaymentStatus, hours: float) -> str:
    rows = "\n".join(f"| {name} | {value} |" for name, value in money_lines(facts).items())
    return (
        f"**The payment of {what} may or may not have been made.** Nothing is paid again before you decide.\n\n"
        f"{why}\n\n| | |\n|---|---|\n{rows}\n\n"
        f"Without an answer within {hours:g} hours, the run ends as ApprovalExpired, unless the invoice is paid by then."
    )
