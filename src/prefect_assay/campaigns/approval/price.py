"""The price of a whole campaign, checked before the first order. What nobody has approved is asked in Prefect's own form.

The question is in the campaign's log as well, so that `approve`, `reject` and the deployment `decide` answer it, and a
run that is started in place of this one finds the answer.
"""

import logging
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final, Literal

from prefect.flow_runs import suspend_flow_run
from prefect.input import RunInput
from pydantic import ConfigDict, Field

from prefect_assay.campaigns import artifacts
from prefect_assay.campaigns.approval.purchase import purchase_of_orders
from prefect_assay.campaigns.approval.questions import (
    form_markdown,
    question_id,
    report_answer,
    report_budget,
    show_question,
)
from prefect_assay.campaigns.events import emit_fact, kinds
from prefect_assay.campaigns.orders import CAMPAIGN_CAP, PlannedOrder
from prefect_assay.errors import (
    ApprovalExpired,
    ApprovalRejected,
    BudgetExceeded,
    ConfigurationError,
    Conflict,
    InputError,
)
from prefect_assay.foreign_text import quote_markdown
from prefect_assay.orders.ledger.campaign_log import (
    CLOSED,
    EXPIRED,
    Answered,
    Asked,
    Offered,
)
from prefect_assay.orders.ledger.log import Approved
from prefect_assay.orders.next_action import APPROVE, CAMPAIGN_ENDS, spending_question
from prefect_assay.orders.purchase import PurchaseState, PurchaseSummary
from prefect_assay.orders.question import UNNAMED, Question, QuestionKind
from prefect_assay.service.models.billing import CostEstimate, usd
from prefect_assay.service.words import many
from prefect_assay.tasks.current_run import can_suspend, this_run

_BACKUP: Final = timedelta(days=365)  # until Prefect itself ends a suspension whose question has expired
_log = logging.getLogger("prefect_assay.flows")


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


def approve_orders(
    orders: list[PlannedOrder], account: str
) -> tuple[dict[str, CostEstimate], PurchaseSummary]:
    """Check the price of all orders that are not placed yet; returns their estimates by order key, and the purchase.

    Once an order is placed, this asks nobody: each of the others asks for itself, if a cap requires it, while the placed
    ones go on.

    Raises:
        BudgetExceeded: nobody has approved it, and this run cannot ask; nothing was ordered.
        ConfigurationError: the policy asks for two persons, and who asks for it is not known; nothing was ordered.
        ApprovalRejected: a person has rejected the price; nothing was ordered.
        ApprovalExpired: nobody has answered in time; nothing was ordered.
    """
    first = orders[0]
    plan = first.plan
    estimates, purchase = purchase_of_orders(orders)
    if not any(one.state is PurchaseState.NEW for one in purchase.experiments):
        if not purchase.new:
            _log.info("Campaign %s: %s", plan.campaign_id, purchase.due)
        return estimates, purchase
    _show_purchase(first, purchase)
    is_within = purchase.total_cents <= first.campaign_cap_cents or not purchase.due_cents
    if is_within or any(order.ledger.read().placed for order in orders):
        return estimates, purchase
    question = _price_question(first, purchase, account)
    answered = _suspend_for_answer(first, question, purchase, account)
    price = f"the price of campaign {plan.campaign_id}, {usd(purchase.total_cents)}"
    if answered.decision == EXPIRED:
        raise ApprovalExpired(f"{price}, was not approved in time; nothing was ordered")
    if answered.decision != APPROVE:
        raise ApprovalRejected(f"{answered.answerer} has not approved {price}; nothing was ordered")
    for order, one in zip(orders, purchase.experiments, strict=True):
        if one in purchase.new and one.cents is not None:
            _record_approval(order, one.cents, answered, purchase.requester)
    first.setup.ledgers.budget.raise_cap(plan.campaign_id, purchase.total_cents, answered.answerer)
    return estimates, purchase


def _show_purchase(order: PlannedOrder, purchase: PurchaseSummary) -> None:
    """Show what is bought, and keep it in the log: what was shown before the first order."""
    artifacts.show_purchase(order.plan, purchase)
    offered = order.log.read().offered
    if offered is None or offered.purchase != purchase:
        order.log.append(Offered(purchase=purchase))
        for warning in purchase.warnings:
            _log.warning("Campaign %s: %s", purchase.campaign_id, warning)
    emit_fact(
        kinds.EstimateCompleted(
            campaign_id=purchase.campaign_id,
            experiments=len(purchase.new),
            designs=sum(one.designs for one in purchase.new),
            total_cents=purchase.due_cents,
            unpriced=purchase.unpriced,
        )
    )


def _price_question(order: PlannedOrder, purchase: PurchaseSummary, account: str) -> Question:
    """Whether the campaign may cost what it costs. Its facts are those that an answer depends on."""
    limits = order.limits()
    needs_two = limits.needs_second_person(purchase.total_cents)
    if needs_two and purchase.requester is None:
        raise ConfigurationError(
            f"campaign {purchase.campaign_id} costs {usd(purchase.total_cents)}, and the policy asks for two persons above "
            f"{usd(limits.second_person_above_cents)}; who asks for it is not known, and nothing was ordered. Start it again "
            'with your name ("Your name" in the form, `--requester`, or an owner of the account)'
        )
    new = {one.number for one in purchase.new}
    specs = [one.spec for one in order.plan.experiments if one.batch_index + 1 in new]
    return spending_question(
        f"Campaign {purchase.campaign_id} ({many(len(purchase.experiments), 'experiment')})",
        purchase.total_cents,
        order.campaign_cap_cents,
        CAMPAIGN_CAP,
        [],
        {
            **artifacts.describe_purchase(purchase.campaign_id, specs, order.plan.target_name),
            "account": quote_markdown(account),
            "paid": purchase.paid,
            **({"experiments without a price yet": str(purchase.unpriced)} if purchase.unpriced else {}),
            **({"asked for by": quote_markdown(purchase.requester)} if purchase.requester else {}),
        },
        second_person=needs_two,
        rejected=CAMPAIGN_ENDS,
    )


def _record_approval(
    order: PlannedOrder, total_cents: int, answered: Answered, requester: str | None
) -> None:
    """Record a person's approval of the order's price in its ledger, unless a higher one stands."""
    new = Approved(
        amount_cents=total_cents,
        approver=answered.answerer,
        by_person=True,
        requester=requester,
        how=answered.how,
    )
    order.ledger.record(
        lambda state: (
            None
            if state.approved and state.approved.by_person and state.approved.amount_cents >= total_cents
            else new
        )
    )


def _suspend_for_answer(
    order: PlannedOrder, question: Question, purchase: PurchaseSummary, account: str
) -> Answered:
    """The answer to exactly this question; suspends the run with a form until there is one."""
    log, policy = order.log, order.setup.policy
    key = price_question_id(order.plan.campaign_id)
    now = order.setup.read_service_time()
    refusal: str | None = None  # why the last answer did not count
    while True:
        answered = log.read().decision_for(key, question)
        if answered is not None and answered.decision != CLOSED:
            report_answer(key, question, answered)
            return answered
        report_budget(
            order.plan.campaign_id, question.subject, question.amount_cents, order.campaign_cap_cents
        )
        _refuse_unanswerable(order, question)
        asked_now = log.ask(
            key, question, order_key=None, now=now, expires_at=now + timedelta(hours=policy.approval_hours)
        )
        asked = log.read().open_questions.get(key)
        if asked is None:
            continue  # answered meanwhile
        details = show_question(order.plan.campaign_id, asked, account, purchase)
        _log.warning(
            "%s %s. Resume this run to decide, or: prefect-assay approve %s",
            question.subject,
            artifacts.begin_sentence(account),
            order.plan.campaign_id,
        )
        if asked_now:
            emit_fact(
                kinds.ApprovalRequested(
                    approval=f"{key}-{asked.revision}",
                    about="spending",
                    question=question.subject,
                    until=asked.expires_at,
                )
            )
        text = form_markdown(question, account, details, purchase, refusal)
        refusal = _answer_with_form(order, asked, text, policy.approval_hours)


def _refuse_unanswerable(order: PlannedOrder, question: Question) -> None:
    """Raise BudgetExceeded for an amount that no answer may approve, or where this run cannot ask."""
    policy, amount_cents = order.setup.policy, question.amount_cents or 0
    if amount_cents > policy.answer_ceiling_cents:
        raise BudgetExceeded(
            f"{question.subject} No answer may approve more than {usd(policy.answer_ceiling_cents)}; nothing was ordered. To "
            f"approve it, raise `answer_ceiling_usd` of the spending policy to {amount_cents / 100:.2f}, and start it again"
        )
    if can_suspend():
        return
    if question.second_person:
        step = "Start the flow from its deployment, so that another person is asked"
    elif amount_cents > policy.per_campaign_cents:
        step = (
            f"To approve it, raise `per_campaign_usd` of the spending policy to {amount_cents / 100:.2f} and pass "
            f"`spend_up_to_usd={amount_cents / 100:.2f}`, or start the flow from its deployment to be asked"
        )
    else:
        step = (
            f"To approve it, pass `spend_up_to_usd={amount_cents / 100:.2f}` (`--max-usd`), or start the flow from its "
            "deployment to be asked"
        )
    raise BudgetExceeded(
        f"{question.subject} {usd(order.campaign_cap_cents)} may be spent without asking; nothing was ordered. {step}"
    )


def _answer_with_form(order: PlannedOrder, asked: Asked, text: str, hours: float) -> str | None:
    """Suspend this run with Prefect's form, and record what a person has filled in; of two answers the first counts.

    Returns why the answer is refused, if it is: then the question is asked again, in its next revision.
    """
    form = PriceApproval.with_initial_data(description=text)
    values: Any = suspend_flow_run(
        wait_for_input=form,
        timeout=int(hours * 3600 + _BACKUP.total_seconds()),
        key=f"price-{asked.question_id}-{asked.revision}",
    )
    now = order.setup.read_service_time()
    decision = EXPIRED if now > asked.expires_at else values.decision
    try:
        with suppress(Conflict):  # it was answered by a command; that answer counts
            order.log.answer(
                asked.question_id,
                asked.revision,
                decision,
                amount_cents=asked.question.amount_cents,
                answerer=values.decided_by.strip() or UNNAMED,
                how=f"the form of flow run {this_run().name}; the name was typed",
                now=now,
                ceiling_cents=order.setup.policy.answer_ceiling_cents,
            )
    except InputError as refused:
        order.log.close_question(asked.question_id, asked.revision)
        return refused.message
    return None
