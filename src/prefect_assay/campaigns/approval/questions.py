"""Questions of a campaign after its price: asked once in the log, shown by an artifact and an event, and answered there.

The other orders advance meanwhile. An answer counts for exactly the question that was shown; its effect, such as an
approval in an order's ledger, is carried out by the next execution that meets the question again.
"""

import hashlib
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Literal
from uuid import UUID

from prefect.artifacts import MarkdownArtifact
from prefect.logging import get_run_logger

from prefect_assay.analysis.results.formats import make_markdown_cell
from prefect_assay.archive.plans import find_plan
from prefect_assay.campaigns.approval.purchase_text import itemise_experiments, purchase_markdown
from prefect_assay.campaigns.artifacts import begin_sentence, label_of, show_once
from prefect_assay.campaigns.events import emit_fact, kinds
from prefect_assay.orders.ledger.campaign_log import (
    CLOSED,
    EXPIRED,
    Answered,
    Asked,
    CampaignLog,
    Offered,
)
from prefect_assay.orders.next_action import Answerer
from prefect_assay.orders.purchase import PurchaseSummary
from prefect_assay.orders.question import REJECT, Question, QuestionKind
from prefect_assay.service.models.billing import usd
from prefect_assay.service.words import listed, many
from prefect_assay.tasks.current_run import can_suspend

_ID_LENGTH: Final = 8


def question_id(subject: str, kind: QuestionKind, topic: str = "") -> str:
    """The id under which a question is asked again with other figures; `subject` is an order key or a campaign's id."""
    return hashlib.sha256(f"{subject}/{kind}/{topic}".encode()).hexdigest()[:_ID_LENGTH]


@dataclass
class Questions:
    """The questions of one campaign during one execution. `now` is the service's clock."""

    log: CampaignLog
    now: datetime
    hours: float
    account: str  # names the account, and whether it is live or simulated, for people
    standing: set[str] = field(default_factory=set)  # ids of questions that this execution has met

    def decide(
        self,
        question: Question,
        *,
        order_key: str | None,
        topic: str = "",
        may_expire: bool = True,
        anew: bool = False,
    ) -> str | None:
        """A person's decision on exactly this question; asks it and returns None without one.

        An expired question counts as rejected if it may expire; else it is asked again in its next revision. With `anew`,
        earlier answers do not count.
        """
        key = question_id(order_key or self.log.name, question.kind, topic)
        self.standing.add(key)
        answered = self.log.read().decision_for(key, question)
        if answered is not None and answered.decision != CLOSED and not anew:
            if order_key is None:
                report_answer(key, question, answered)
            if answered.decision != EXPIRED:
                return answered.decision
            if may_expire:
                return REJECT
        self._ask(key, question, order_key, anew=anew)
        return None

    def decisions_for(self, order_key: str) -> tuple[dict[str, str], dict[str, Answerer]]:
        """The decisions about an order and who has taken them, by the questions' digests; expired is rejected."""
        decisions: dict[str, str] = {}
        answerers: dict[str, Answerer] = {}
        for key, (asked, answered) in self.log.state.decisions.items():
            if asked.order_key == order_key and answered.decision != CLOSED:
                report_answer(key, asked.question, answered)
                digest = asked.question.digest
                decisions[digest] = REJECT if answered.decision == EXPIRED else answered.decision
                answerers[digest] = Answerer(answered.answerer, answered.how)
        return decisions, answerers

    def _ask(self, key: str, question: Question, order_key: str | None, *, anew: bool) -> None:
        expires_at = self.now + timedelta(hours=self.hours)
        if not self.log.ask(
            key, question, order_key=order_key, now=self.now, expires_at=expires_at, anew=anew
        ):
            return
        asked = self.log.state.open_questions[key]
        get_run_logger().warning("A decision is needed: %s", question.text)
        show_question(self.log.name, asked, self.account, estimate=estimate_of_order(self.log, order_key))
        emit_fact(
            kinds.ApprovalRequested(
                approval=f"{key}-{asked.revision}",
                about=about_of(question),
                question=question.subject,
                until=asked.expires_at,
                order_key=order_key,
            )
        )

    def close_moot(self, order_key: str | None) -> None:
        """Close the open questions about an order that this execution has not met: they are no longer true."""
        for key, asked in self.log.read().open_questions.items():
            if asked.order_key == order_key and key not in self.standing:
                self.log.close_question(key, asked.revision)


def about_of(question: Question) -> Literal["spending", "payment"]:
    """What a question is about, for the events."""
    return "payment" if question.kind is QuestionKind.PAYMENT_OUTCOME else "spending"


def report_budget(key: str, what: str, amount_cents: int | None, cap_cents: int) -> None:
    """Send the event of an amount over its cap."""
    if amount_cents is not None and amount_cents > cap_cents:
        emit_fact(
            kinds.BudgetReached(
                key=key, what=what, amount_cents=amount_cents, cap_cents=cap_cents, asks=can_suspend()
            )
        )


def report_answer(key: str, question: Question, answered: Answered) -> None:
    """Send the event of an answer, or of a question that nobody has answered in time."""
    approval, about = f"{key}-{answered.revision}", about_of(question)
    if answered.decision == EXPIRED:
        emit_fact(kinds.ApprovalExpired(approval=approval, about=about))
    else:
        emit_fact(kinds.ApprovalAnswered(approval=approval, about=about, decision=answered.decision))


def estimate_of_order(log: CampaignLog, order_key: str | None) -> str | None:
    """The price lines of an order that were shown before it, where an estimate has them.

    Next to the question, and not one of its facts: an answer counts for the amount, however its estimate was itemised.
    """
    plan = find_plan(log.store, log.prefix, log.name) if log.state.offered and order_key else None
    if plan is None:
        return None
    numbers = {one.batch_index + 1 for one in plan.experiments if one.order_key == order_key}
    # A later summary itemises what was new then; this order's lines are in the last one before it was placed.
    offers = [record.purchase for record in reversed(log.records()) if isinstance(record, Offered)]
    texts = (
        itemise_experiments([one for one in offer.experiments if one.number in numbers]) for offer in offers
    )
    return next(filter(None, texts), None)


def show_question(
    campaign_id: str,
    asked: Asked,
    account: str,
    purchase: PurchaseSummary | None = None,
    *,
    estimate: str | None = None,
) -> UUID:
    """The artifact of a question, once: what is asked, the choices, how to answer, and then the facts. Returns its id.

    `estimate` are the price lines of the order that is asked about.
    """
    return show_once(
        MarkdownArtifact(
            key=f"assay-question-{label_of(campaign_id)}-{asked.question_id}",
            markdown=question_markdown(campaign_id, asked, account, purchase, estimate),
            description=make_markdown_cell(asked.question.subject),
        )
    )


def form_markdown(
    question: Question, account: str, details: UUID, purchase: PurchaseSummary, refusal: str | None = None
) -> str:
    """The text above the fields of a form, short enough to leave the decision in a telephone's window.

    `refusal` is why the last answer did not count.
    """
    # Relative, so that it leads to the artifact in each interface, whatever its address.
    link = f"[All details](../../artifacts/artifact/{details})"
    known = len(purchase.earlier_designs)
    campaigns = listed([one.campaign_id for one in purchase.earlier], 2)
    was = "was" if known == 1 else "were"
    before = f" **{known} of the {many(purchase.designs, 'design')} {was} ordered before**, in {campaigns}, and would be bought again."
    refused = f"**Your answer was refused:** {make_markdown_cell(refusal)}.\n\n" if refusal else ""
    items = itemise_experiments(purchase.new)
    price = f"Without VAT: {make_markdown_cell(items)}.\n\n" if items else ""
    return (
        f"{refused}**{make_markdown_cell(question.subject)}** {begin_sentence(account)}.\n\n{price}"
        f"{question.reason}{before if known else ''} Nothing is ordered before you approve. {link}"
    )


def question_markdown(
    campaign_id: str,
    asked: Asked,
    account: str,
    purchase: PurchaseSummary | None = None,
    estimate: str | None = None,
) -> str:
    """A question for people: the decision and how to answer come first, what it is about follows."""
    question = asked.question
    amount = f" \\\n  --usd {question.amount_cents / 100:.2f}" if question.amount_cents is not None else ""
    names = f"--question {asked.question_id} --revision {asked.revision}"
    until = f"until {asked.expires_at:%Y-%m-%d %H:%M} UTC, by the service's clock"
    if question.kind is QuestionKind.SPENDING and asked.order_key is None:
        how = "*Resume* the run"
    else:
        price = f", amount {usd(question.amount_cents)}" if question.amount_cents is not None else ""
        how = f"Run the deployment `assay-decide` (question {asked.question_id}, revision {asked.revision}{price})"
    others = "Nothing is ordered" if asked.order_key is None else "The other orders of the campaign go on"
    lines = [
        f"## {make_markdown_cell(question.subject)}",
        "",
        f"**{begin_sentence(account)}.** {question.reason}",
        "",
        *(f"- `{choice.decision}`: {choice.effect}" for choice in question.choices),
        "",
        f"{how}, or answer by command, {until}. {others} meanwhile.",
        "",
        "```",
        # On lines that a telephone shows without scrolling.
        f"prefect-assay approve {campaign_id} \\",
        f"  {names}{amount}",
        f"prefect-assay reject {campaign_id} \\",
        f"  {names}",
        "```",
    ]
    facts = (
        purchase_markdown(purchase) if purchase else [f"- {one.name}: {one.value}" for one in question.facts]
    )
    facts += [f"- estimate: {make_markdown_cell(estimate)}"] if estimate else []
    return "\n".join([*lines, *(["", "### What it is about", "", *facts] if facts else [])])
