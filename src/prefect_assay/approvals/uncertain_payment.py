"""Ask a person about a payment with an unknown outcome: money may have moved, and the invoice does not show it.

The invoice decides, whatever a person answers: the run continues when it is paid. Paying again is offered only where a
second settlement is impossible, because the rail gives every authorisation for one invoice the same nonce.
"""

from collections.abc import Callable, Iterable
from typing import Final, Literal
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.objects import FlowRun
from pydantic import Field

from prefect_assay.approvals.questions import Question, answers, ask, form_text, is_about, topic_of
from prefect_assay.blocks import SpendingPolicy
from prefect_assay.blocks.of_runs import credentials_of
from prefect_assay.errors import ApprovalExpired, ApprovalRejected
from prefect_assay.models.vocabulary import PaymentMethod
from prefect_assay.models.words import in_words
from prefect_assay.payments.reconciliation import PaymentStatus, read_payment_status
from prefect_assay.reporting.artifacts import payment_lines
from prefect_assay.runs.states import resume
from prefect_assay.runs.tags import EXPERIMENT_TAG, tag_values
from prefect_assay.waiting import WaitsFor

_PAID: Final = "paid: the invoice is read again, and must say so. "
_STOP: Final = "stop: end this run; the order remains."


class PaymentDoubt(Question):
    """The form for a rail on which two payments of one invoice could both settle."""

    decision: Literal["paid", "stop"] = Field(
        title="Decision", description=_PAID + _STOP, json_schema_extra={"position": 0}
    )


class RepeatablePaymentDoubt(Question):
    """The form for a rail on which one invoice can be paid only once."""

    decision: Literal["paid", "pay_again", "stop"] = Field(
        title="Decision",
        description=f"{_PAID}pay_again: sign again with the same nonce, so that only one can settle. {_STOP}",
        json_schema_extra={"position": 0},
    )


_FORMS: Final = {PaymentMethod.X402_EXACT: RepeatablePaymentDoubt}


def ask_about_payment(
    policy: SpendingPolicy,
    method: PaymentMethod,
    *,
    key: str,
    what: str,
    why: str,
    status: PaymentStatus,
    repeatable: bool,
) -> None:
    """Suspend until a person has answered. Never returns: `payment_decision` finds the answer in the next execution.

    Paying again is offered if the invoice may be paid, `repeatable`, and the rail allows it. `what`, the experiment, and
    `why` are for the form.
    """
    ask(
        _FORMS.get(method, PaymentDoubt) if repeatable else PaymentDoubt,
        question=topic_of(WaitsFor.PAYMENT_ANSWER, key),
        title=f"The payment of {what} may or may not have been made",
        description=form_text(
            f"**The payment of {what} may or may not have been made.** Nothing is paid again before you decide.\n\n{why}",
            payment_lines(status),
            policy.approval_hours,
            unless=", unless the invoice is paid by then",
        ),
        hours=policy.approval_hours,
    )


def payment_decision(
    key: str, what: str, read_status: Callable[[], PaymentStatus]
) -> Literal["paid", "pay_again"] | None:
    """A person's decision about a payment; None if this run did not ask. An answer counts once.

    Raises:
        ApprovalRejected: a person stopped the run.
        ApprovalExpired: the question expired, and the invoice is still not paid.
    """
    given = answers(topic_of(WaitsFor.PAYMENT_ANSWER, key))
    if not given:
        return None
    status = read_status()
    for answer in given:
        answer.discard()
    last = given[0]
    if status.paid:
        return "paid"
    remains = (
        f"its invoice is {in_words(status.invoice.status) if status.invoice else 'not listed'}, and money may have moved. The "
        "order remains; running the flow again reads the invoice first"
    )
    if last.late:
        raise ApprovalExpired(f"the question about the payment of {what} expired unanswered; {remains}")
    if last.decision == "stop":
        raise ApprovalRejected(f"a person stopped the payment of {what}{last.note}; {remains}")
    return "pay_again" if last.decision == "pay_again" else "paid"


def answer_paid(client: SyncPrefectClient, runs: Iterable[FlowRun], problems: list[str]) -> list[UUID]:
    """Wake the runs that ask about a payment whose invoice is paid by now; returns their ids.

    A person would read the same invoice, and the run reads it again before it continues.
    """
    woken = []
    for run in runs:
        if not is_about(run, f"{WaitsFor.PAYMENT_ANSWER}-"):
            continue
        try:
            paid = any(_is_paid(run, experiment_id) for experiment_id in tag_values(run.tags, EXPERIMENT_TAG))
            if paid and resume(client, run.id, {"decision": "paid", "note": "The invoice is paid."}):
                woken.append(run.id)
        except Exception as error:  # noqa: BLE001 - one revoked token must not delay the other runs
            problems.append(f"run {run.name}, which asks about a payment: {error}")
    return woken


def _is_paid(run: FlowRun, experiment_id: str) -> bool:
    with credentials_of(run).get_client() as service:
        return read_payment_status(service, None, experiment_id).paid
