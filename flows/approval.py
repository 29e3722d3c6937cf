"""Asking a person before money is spent: a suspended run with a form in the Prefect UI that shows the figures."""

import hashlib
import json
from datetime import UTC, datetime
from typing import Literal
from uuid import uuid4

from prefect.client.orchestration import get_client
from prefect.context import FlowRunContext
from prefect.flow_runs import suspend_flow_run
from prefect.input import RunInput
from pydantic import Field

from prefect_assay.blocks import SpendingPolicy
from prefect_assay.errors import ApprovalRejected, BudgetExceeded
from prefect_assay.flows.money import usd
from prefect_assay.waiting import can_suspend


class SpendingApproval(RunInput):
    """The form. `decision` has no default: a run that is resumed without an answer must stay suspended."""

    decision: Literal["approve", "reject"] = Field(
        title="Decision", description="approve orders at the amount shown; reject orders nothing."
    )
    approved_cents: int | None = Field(
        default=None,
        ge=0,
        title="Approved amount (cents)",
        description="Empty: exactly the amount shown. More leaves room for quotes that are still to come; "
        "less than it costs is a rejection.",
    )


def approve_spending(
    policy: SpendingPolicy, *, key: str, what: str, amount_cents: int, cap_cents: int
) -> int:
    """Return the approved amount in US cents: the amount itself when it is within the cap, else what a person says.

    Args:
        policy: gives the time for an answer.
        key: names this question; an approval of the same amount under the same key is found, not asked again.
        what: one sentence for the form.
        amount_cents: what it would cost, without VAT.
        cap_cents: what may be spent without asking.

    Raises:
        BudgetExceeded: over the cap, and this run cannot ask because it is not deployed.
        ApprovalRejected: a person declined, or approved less than it costs. A retry of the run asks again.
    """
    if amount_cents <= cap_cents:
        return amount_cents
    if not can_suspend():
        raise BudgetExceeded(
            f"{what} costs {usd(amount_cents)}, the cap is {usd(cap_cents)}; nothing was ordered. "
            "Raise the cap in the spending policy, or start the flow from its deployment to be asked"
        )
    # Prefect takes lower case, digits and dashes in a question's name.
    question = f"approve-{hashlib.sha256(key.encode()).hexdigest()[:20]}-{amount_cents}"
    answer = _answer_to(question)
    if answer is None:
        form = SpendingApproval.with_initial_data(
            description=f"**{what}** costs **{usd(amount_cents)}** without VAT. "
            f"The cap is {usd(cap_cents)}. Nothing is ordered before you approve."
        )
        # A name of its own for each asking: Prefect lets a name that fired once pass, and stores a form once.
        answer = suspend_flow_run(
            wait_for_input=form, key=f"{question}-{uuid4()}", timeout=policy.approval_hours * 3600
        )
    approved = amount_cents if answer.approved_cents is None else answer.approved_cents
    if answer.decision == "reject" or approved < amount_cents:
        raise ApprovalRejected(f"{what} was not approved at {usd(amount_cents)}; nothing was ordered")
    return approved


def _answer_to(question: str) -> SpendingApproval | None:
    """The last answer that a person has given to this question in this run.

    A rejection is taken from the record as it is read, so that it ends this execution and not every retry.
    """
    context = FlowRunContext.get()
    if context is None or context.flow_run is None:
        return None
    run_id = context.flow_run.id
    with get_client(sync_client=True) as client:
        # Prefect's own naming of what it stores for a suspended run.
        stored = client.filter_flow_run_input(
            flow_run_id=run_id, key_prefix=f"suspended-{question}-", limit=200, exclude_keys=set()
        )
        answers = [entry for entry in stored if entry.key.endswith("-response")]
        if not answers:
            return None
        last = max(answers, key=lambda entry: entry.created or datetime.min.replace(tzinfo=UTC))
        answer = SpendingApproval.model_validate(json.loads(last.value))
        if answer.decision == "reject":
            for entry in answers:
                client.delete_flow_run_input(run_id, entry.key)
    return answer
