"""The price of a whole campaign, checked before the first order. Over the cap, the run asks in Prefect's own form.

The question is in the campaign's log as well, so that `approve`, `reject` and the deployment `decide` answer it, and a
run that is started in place of this one finds the answer.
"""

from contextlib import suppress
from datetime import timedelta
from typing import Any, Final, Literal

from prefect.flow_runs import suspend_flow_run
from prefect.input import RunInput
from pydantic import ConfigDict, Field

from prefect_assay.books.campaign_log import EXPIRED, Answered, Asked
from prefect_assay.books.log import Approved
from prefect_assay.campaigns.orders import CAMPAIGN_CAP, PlannedOrder
from prefect_assay.campaigns.questions import (
    form_markdown,
    question_id,
    report_answer,
    report_budget,
    show_question,
)
from prefect_assay.errors import ApprovalExpired, ApprovalRejected, BudgetExceeded, Conflict
from prefect_assay.events import emit, kinds
from prefect_assay.models.billing import CostEstimate, usd
from prefect_assay.models.question import Question, QuestionKind
from prefect_assay.models.words import many
from prefect_assay.ordering.next_action import APPROVE, spending_question
from prefect_assay.reporting import artifacts
from prefect_assay.runs.current import can_suspend, this_run
from prefect_assay.tasks.estimate import estimate_cost, open_price

_BACKUP: Final = timedelta(days=365)  # until Prefect itself ends a suspension whose question has expired


class PriceApproval(RunInput):
    """The form of a campaign's price.

    `decision` has no default: Prefect refuses an empty answer, and the question stays open.
    """

    model_config = ConfigDict(title="Approve the price")

    decision: Literal["approve", "reject"] = Field(
        title="Decision",
        description="approve: exactly this amount is ordered, and an order cannot be withdrawn. reject: nothing is ordered, "
        "and the campaign ends. Without a choice Resume is refused.",
        json_schema_extra={"position": 0},
    )
    decided_by: str = Field(
        default="",
        max_length=200,
        title="Your name",
        description="Recorded with the decision.",
        json_schema_extra={"position": 1},
    )


def price_question_id(campaign_id: str) -> str:
    """The id of the question about a campaign's price."""
    return question_id(campaign_id, QuestionKind.SPENDING)


def approve_orders(orders: list[PlannedOrder], account: str) -> dict[str, CostEstimate]:
    """Check the price of all orders that are not placed yet; returns their estimates by order key.

    Raises:
        BudgetExceeded: it is over the cap, and this run cannot ask; nothing was ordered.
        ApprovalRejected: a person has rejected the price; nothing was ordered.
        ApprovalExpired: nobody has answered in time; nothing was ordered.
    """
    first = orders[0]
    setup, plan = first.setup, first.plan
    estimates: dict[str, CostEstimate] = {}
    if all(_is_begun(order) for order in orders):
        return estimates
    committed_cents, totals = 0, {}
    for order in orders:
        if not _is_begun(order):
            estimates[order.key] = estimate_cost(setup.credentials, order.spec)
            totals[order.key] = estimates[order.key].total_cents
            continue
        price = open_price(setup.credentials, order.planned, book=order.book)
        if price.committed:
            committed_cents += price.total_cents or 0
        else:
            totals[order.key] = price.total_cents
    artifacts.show_campaign_estimate(plan, totals)
    known_cents = sum(total for total in totals.values() if total is not None)
    unpriced = [key for key, total in totals.items() if total is None]
    emit(
        kinds.EstimateCompleted(
            campaign_id=plan.campaign_id,
            experiments=len(totals),
            designs=sum(len(order.spec.sequences) for order in orders if order.key in totals),
            total_cents=known_cents,
            unpriced=len(unpriced),
        )
    )
    total_cents = committed_cents + known_cents
    cap_cents = first.campaign_cap_cents
    if total_cents <= cap_cents:
        return estimates
    question = spending_question(
        f"Campaign {plan.campaign_id} ({many(len(orders), 'experiment')})",
        total_cents,
        cap_cents,
        CAMPAIGN_CAP,
        [],
        {
            **artifacts.bought(
                plan.campaign_id, [order.spec for order in orders if order.key in totals], plan.target_name
            ),
            "campaign": artifacts.verbatim(plan.campaign_id),
            "account": artifacts.verbatim(account),
            "paid": setup.how_paid,
            **({"ordered already": usd(committed_cents)} if committed_cents else {}),
            **({"still to be ordered": usd(known_cents)} if committed_cents else {}),
            **({"experiments without a price yet": str(len(unpriced))} if unpriced else {}),
            **artifacts.reading_figures(plan),
        },
    )
    answered = _decide(first, question, account)
    if answered.decision == EXPIRED:
        raise ApprovalExpired(
            f"the price of campaign {plan.campaign_id}, {usd(total_cents)}, was not approved in time; nothing was ordered"
        )
    if answered.decision != APPROVE:
        raise ApprovalRejected(
            f"{answered.answerer} has not approved the price of campaign {plan.campaign_id}, {usd(total_cents)}; nothing was "
            "ordered"
        )
    for order in orders:
        total = totals.get(order.key)
        if total is not None:
            _record_approval(order, total, answered)
    setup.books.budget.raise_cap(plan.campaign_id, total_cents, answered.answerer)
    return estimates


def _is_begun(order: PlannedOrder) -> bool:
    """Whether the order is placed, or may be, or came to its end without being placed."""
    state = order.book.read()
    return bool(state.ordered or state.open_attempts or state.withdrawn or state.stopped)


def _record_approval(order: PlannedOrder, total_cents: int, answered: Answered) -> None:
    """Record a person's approval of the order's price in its ledger, unless a higher one stands."""
    new = Approved(amount_cents=total_cents, approver=answered.answerer, by_person=True)
    order.book.record(
        lambda state: (
            None
            if state.approved and state.approved.by_person and state.approved.amount_cents >= total_cents
            else new
        )
    )


def _decide(order: PlannedOrder, question: Question, account: str) -> Answered:
    """The answer to exactly this question; suspends the run with a form until there is one."""
    log, policy = order.log, order.setup.policy
    key = price_question_id(order.plan.campaign_id)
    now = order.setup.read_service_time()
    while True:
        answered = log.read().decision_for(key, question)
        if answered is not None:
            report_answer(key, question, answered)
            return answered
        cap_cents = order.campaign_cap_cents
        report_budget(order.plan.campaign_id, question.subject, question.amount_cents, cap_cents)
        ceiling_cents = policy.answer_ceiling_cents
        if (question.amount_cents or 0) > ceiling_cents:
            raise BudgetExceeded(
                f"{question.subject} No answer may approve more than {usd(ceiling_cents)}; nothing was ordered. To approve "
                f"it, raise `answer_ceiling_cents` of the spending policy to {question.amount_cents}, and start it again"
            )
        if not can_suspend():
            amount_cents = question.amount_cents or 0
            raised = (
                ""
                if amount_cents <= policy.per_campaign_cents
                else f" with `per_campaign_cents={amount_cents}` in its policy"
            )
            raise BudgetExceeded(
                f"{question.subject} It was not approved, and this run cannot ask; nothing was ordered. To approve exactly this, "
                f"start it again with `spend_up_to_usd={amount_cents / 100:.2f}`{raised}, or from its deployment to be asked"
            )
        asked_now = log.ask(
            key, question, order_key=None, now=now, expires_at=now + timedelta(hours=policy.approval_hours)
        )
        asked = log.read().open_questions.get(key)
        if asked is None:
            continue  # answered meanwhile
        details = show_question(order.plan.campaign_id, asked, account)
        if asked_now:
            emit(
                kinds.ApprovalRequested(
                    approval=f"{key}-{asked.revision}",
                    about="spending",
                    question=question.subject,
                    until=asked.expires_at,
                )
            )
        text = form_markdown(question, account, details)
        _answer_with_form(order, asked, text, policy.approval_hours)


def _answer_with_form(order: PlannedOrder, asked: Asked, text: str, hours: float) -> None:
    """Suspend this run with Prefect's form, and record what a person has filled in; of two answers the first counts."""
    form = PriceApproval.with_initial_data(description=text)
    values: Any = suspend_flow_run(
        wait_for_input=form,
        timeout=int(hours * 3600 + _BACKUP.total_seconds()),
        key=f"price-{asked.question_id}-{asked.revision}",
    )
    now = order.setup.read_service_time()
    decision = EXPIRED if now > asked.expires_at else values.decision
    person = values.decided_by.strip() or "a person who gave no name"
    with suppress(Conflict):  # it was answered by a command; that answer counts
        order.log.answer(
            asked.question_id,
            asked.revision,
            decision,
            amount_cents=asked.question.amount_cents,
            answerer=person,
            how=f"the form of flow run {this_run().id}",
            now=now,
            ceiling_cents=order.setup.policy.answer_ceiling_cents,
        )
