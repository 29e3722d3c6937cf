"""Asking a person before money is spent: a suspended run with a form in the Prefect UI that shows the figures."""

import hashlib
from contextlib import suppress
from typing import Literal

from prefect.client.orchestration import get_client
from prefect.context import FlowRunContext
from prefect.exceptions import ObjectNotFound
from prefect.flow_runs import suspend_flow_run
from prefect.input import RunInput
from prefect.input.run_input import keyset_from_paused_state
from prefect.states import Suspended
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


def _question(key: str, amount_cents: int) -> str:
    """The name of a question; Prefect takes lower case, digits and dashes only."""
    return f"approve-{hashlib.sha256(key.encode()).hexdigest()[:20]}-{amount_cents}"


def _forget_unanswered(question: str) -> None:
    """Clear what an earlier asking left behind, unless it was answered.

    A run that is retried after its form timed out asks again under the same name, and Prefect refuses to store
    the same form twice. A question that was answered is among the run's pause keys, and its answer is kept.
    """
    context = FlowRunContext.get()
    if (
        context is None
        or context.flow_run is None
        or question in (context.flow_run.empirical_policy.pause_keys or ())
    ):
        return
    keyset = keyset_from_paused_state(Suspended(pause_key=question, timeout_seconds=60))
    with get_client(sync_client=True) as client:
        for name in keyset.values():
            with suppress(ObjectNotFound):
                client.delete_flow_run_input(context.flow_run.id, str(name))


def approve_spending(
    policy: SpendingPolicy, *, key: str, what: str, amount_cents: int, cap_cents: int
) -> int:
    """Return the approved amount in US cents: the amount itself when it is within the cap, else what a person says.

    Args:
        policy: gives the time for an answer.
        key: names this question; asked again under the same key, an answered question returns its answer.
        what: one sentence for the form.
        amount_cents: what it would cost, without VAT.
        cap_cents: what may be spent without asking.

    Raises:
        BudgetExceeded: over the cap, and this run cannot ask because it is not deployed.
        ApprovalRejected: a person declined, or approved less than it costs.
    """
    if amount_cents <= cap_cents:
        return amount_cents
    if not can_suspend():
        raise BudgetExceeded(
            f"{what} costs {usd(amount_cents)}, the cap is {usd(cap_cents)}; nothing was ordered. "
            "Raise the cap in the spending policy, or start the flow from its deployment to be asked"
        )
    question = _question(key, amount_cents)
    _forget_unanswered(question)
    form = SpendingApproval.with_initial_data(
        description=f"**{what}** costs **{usd(amount_cents)}** without VAT. "
        f"The cap is {usd(cap_cents)}. Nothing is ordered before you approve."
    )
    answer = suspend_flow_run(wait_for_input=form, key=question, timeout=policy.approval_hours * 3600)
    approved = amount_cents if answer.approved_cents is None else answer.approved_cents
    if answer.decision == "reject" or approved < amount_cents:
        raise ApprovalRejected(f"{what} was not approved at {usd(amount_cents)}; nothing was ordered")
    return approved
