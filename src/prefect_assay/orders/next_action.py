"""What comes next for an order: a pure function of its ledger and of what the service shows. No Prefect, no I/O, no clock.

Whoever advances an order reads the ledger and the experiment's row in the service's list, asks `next_action`, performs
the action, adds what it has seen, and asks again until the action is `Wait` or `End`. Anybody may do so at any time, and
two may do so at once: each acting call follows the actor's own record in the ledger.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from prefect_assay.orders.billing import Billing, BillingStage, is_known
from prefect_assay.orders.job import (
    Order,
    OrderRoute,
    OutcomeKind,
    Payment,
)
from prefect_assay.orders.ledger import OrderState
from prefect_assay.orders.ledger.log import Approved
from prefect_assay.orders.question import (
    REJECT,
    UNNAMED,
    Question,
    QuestionKind,
)
from prefect_assay.orders.stages import Stage
from prefect_assay.orders.wait_decision import (
    PARTIAL_WAIT,
    NotYet,
    deadline_of,
    decide_wait,
)
from prefect_assay.service.models.billing import (
    LOWEST_PERCENT,
    CostEstimate,
    Quote,
    is_far_below,
    usd,
)
from prefect_assay.service.models.experiment import ExperimentSummary
from prefect_assay.service.models.status_questions import has_work_begun
from prefect_assay.service.models.vocabulary import ExperimentStatus, ResultsStatus

APPROVE: Final = "approve"
CAMPAIGN_ENDS: Final = (
    "nothing is ordered, and the campaign ends"  # what rejecting a whole campaign's price does
)
RULE: Final = "the spending policy"  # the approver of what is within its caps
EVERY_QUOTE: Final = "the policy leaves every quote to a person (accept_quotes is off)"


@dataclass(frozen=True)
class OrderLimits:
    """What an order may do without a person. Amounts are US cents without VAT."""

    name: str  # the experiment's name, for people
    experiment_cap_cents: int
    cap_name: str
    accept_quotes: bool
    by_quote: bool  # ordered by quote, although an estimate may be complete
    by_machine: bool  # the rail by which it is paid
    patience: timedelta  # from the order to the deadline
    bought: Mapping[str, str] = field(default_factory=dict)  # what the forms show of it
    second_person_above_cents: int | None = None  # more needs another person than the requester
    requester: str | None = None  # who has asked for the campaign
    approver: str | None = None  # who has said the amount that may be spent without asking
    how: str | None = None  # how that was said

    def needs_second_person(self, amount_cents: int) -> bool:
        """Whether another person than the requester has to approve the amount."""
        return self.second_person_above_cents is not None and amount_cents > self.second_person_above_cents


class Answerer(NamedTuple):
    """Who has answered a question, and how."""

    name: str
    how: str | None = None


@dataclass(frozen=True)
class Seen:
    """What this execution has seen and done so far; None and False are "not yet"."""

    now: datetime  # by the service's clock
    row: ExperimentSummary | None = None  # the experiment in the service's list
    order: Order | None = None  # found or placed by this execution
    searched: bool = False  # by the order's key
    estimate: CostEstimate | None = None
    checked_again: bool = False  # searched for older experiments before money is committed
    billing: Billing | None = None
    confirmed: bool = False  # a confirmation was sent by this execution
    due_read: bool = False
    due_cents: int | None = None  # of the open invoice; None once `due_read` is an invoice that is paid
    payment: Payment | None = None
    payment_problem: bool = False  # it cannot be paid now, and nothing waits for that
    retrieved: bool = False
    unread: bool = False  # the released results are archived, and no row of them can be read
    decisions: Mapping[str, str] = field(default_factory=dict)  # of a person, by the question's digest
    answerers: Mapping[str, Answerer] = field(default_factory=dict)  # who has decided, likewise

    def add(self, **changes: object) -> "Seen":
        """What is known after an action."""
        return replace(self, **changes)  # type: ignore[arg-type]

    @property
    def status(self) -> str | None:
        """The experiment's status: the list's row decides (contract 2.1); right after the order, its answer."""
        if self.row is not None:
            return self.row.status
        return self.order.status if self.order is not None else None


@dataclass(frozen=True)
class FindOrder:
    """Search for the experiment by the ledger and by the order's key."""


@dataclass(frozen=True)
class Estimate:
    """Ask for the price."""


@dataclass(frozen=True)
class Create:
    """Create the experiment, once."""

    route: OrderRoute
    amount_cents: int  # 0 while the price is a quote


@dataclass(frozen=True)
class SearchAgain:
    """Search for older experiments of the order before money is committed."""


@dataclass(frozen=True)
class PollQuote:
    """Read the quote and whether there is an invoice."""


@dataclass(frozen=True)
class ConfirmQuote:
    """Accept the quote, once; `untotaled` if a person has approved one that shows no total."""

    amount_cents: int
    untotaled: bool


@dataclass(frozen=True)
class RejectQuote:
    """Reject the quote, as a person has decided."""


@dataclass(frozen=True)
class Withdraw:
    """Record that the order ended without an invoice."""

    reason: str


@dataclass(frozen=True)
class ReadDue:
    """Read the open amount that a machine is to pay."""


@dataclass(frozen=True)
class ReadHosted:
    """Read whether a hosted invoice that is recorded has been paid."""


@dataclass(frozen=True)
class Pay:
    """Pay exactly this amount by machine, once; or read a hosted invoice, or one that is paid."""

    limit_cents: int


@dataclass(frozen=True)
class Retrieve:
    """Archive what the laboratory has released."""


@dataclass(frozen=True)
class Approve:
    """Record that the order may cost this much, under an approval that exists."""

    approval: Approved


@dataclass(frozen=True)
class Ask:
    """Ask a person; the other orders advance."""

    question: Question


@dataclass(frozen=True)
class NotePartial:
    """Record when a finished experiment was first seen with partial results."""


@dataclass(frozen=True)
class Wait:
    """Nothing can be done now."""

    stage: Stage


@dataclass(frozen=True)
class End:
    """The order is over."""

    stage: Stage


Action = (
    FindOrder
    | Estimate
    | Create
    | SearchAgain
    | PollQuote
    | ConfirmQuote
    | RejectQuote
    | Withdraw
    | ReadDue
    | ReadHosted
    | Pay
    | Retrieve
    | Approve
    | Ask
    | NotePartial
    | Wait
    | End
)


def next_action(state: OrderState, seen: Seen, limits: OrderLimits) -> Action:  # noqa: PLR0911 - one return per case
    """The next action of an order whose ledger holds `state`."""
    if state.delivered is not None:
        return End(Stage.UNREAD if seen.unread else Stage.MEASURED)
    if state.stopped is not None:
        return End(Stage.STOPPED)
    if state.ordered is None:
        return End(Stage.REFUSED) if state.withdrawn else _next_before_order(state, seen, limits)
    if seen.status == ExperimentStatus.CANCELED:
        return _next_of_canceled(state, seen)
    if state.withdrawn:
        is_canceled = seen.billing is not None and seen.billing.stage is BillingStage.CANCELED
        return End(Stage.CANCELED if is_canceled else Stage.NO_QUOTE)
    if seen.status is None:
        return Wait(Stage.ORDERED) if seen.searched else FindOrder()
    if not has_work_begun(seen.status):
        action = _next_before_invoice(state, seen, limits)
        if action is not None:
            return action
    payment = _next_payment(state, seen, limits)
    return payment if payment is not None else _next_results(state, seen, limits)


def _next_before_order(state: OrderState, seen: Seen, limits: OrderLimits) -> Action:  # noqa: PLR0911 - one return per case
    if not seen.searched:
        return FindOrder()
    if seen.order is not None and state.open_attempts:
        return _adopt_sent_order(state)
    if seen.estimate is None:
        return Estimate()
    total = None if limits.by_quote else seen.estimate.total_cents
    if total is None:
        return Create(OrderRoute.QUOTED, 0)
    verdict = judge_price(state, seen, limits, what=f"Experiment {limits.name}", amount_cents=total)
    match verdict:
        case Approved():
            return Approve(verdict)
        case Question():
            return _next_of_price_question(state, seen, verdict)
    return Create(OrderRoute.SELF_SERVICE, total)


def _adopt_sent_order(state: OrderState) -> Create:
    """An order whose answer was lost is listed: it is recorded and not sent again, whatever it would cost or is asked now."""
    if state.route is OrderRoute.SELF_SERVICE and state.approved is not None:
        return Create(OrderRoute.SELF_SERVICE, state.approved.amount_cents)
    return Create(OrderRoute.QUOTED, 0)


def _next_of_price_question(state: OrderState, seen: Seen, question: Question) -> Action:
    if not _is_rejected(seen, question):
        return Ask(question)
    if state.open_attempts:  # the laboratory may have it, so it is searched for at each look
        return Wait(Stage.ORDERED)
    return Withdraw("a person did not approve its price")


def _next_of_canceled(state: OrderState, seen: Seen) -> Action:
    if seen.row is not None and seen.row.results_status != ResultsStatus.NONE and not seen.retrieved:
        return Retrieve()
    if not (state.withdrawn or state.payment or state.settled):
        return Withdraw("the experiment was canceled")
    in_doubt = state.payment is not None and state.payment.in_doubt and state.settled is None
    if in_doubt and not (seen.payment or seen.payment_problem):
        return Pay(0)  # reads the invoice: a payment that was sent may still settle
    return End(Stage.CANCELED)


def _next_before_invoice(state: OrderState, seen: Seen, limits: OrderLimits) -> Action | None:  # noqa: C901, PLR0911 - one return per case
    """The action until the invoice exists; None once it does."""
    if state.settled is not None:
        return None  # it is paid: its quote says nothing more
    if state.invoiced is not None and not limits.by_machine:
        return None  # it was seen, and a person pays it
    if seen.billing is None:
        return PollQuote()
    match seen.billing.stage:
        case BillingStage.INVOICED:
            return None if seen.checked_again or state.committed else SearchAgain()
        case BillingStage.QUOTE_REJECTED:
            return Withdraw("the quote was rejected")
        case BillingStage.QUOTE_EXPIRED:
            return Withdraw("the quote expired")
        case BillingStage.NOT_SUBMITTED:
            return Withdraw(
                "the experiment is a draft: it was not submitted, or its quote was rejected or withdrawn"
            )
        case BillingStage.CANCELED:
            return Withdraw("the experiment was canceled")
        case BillingStage.QUOTE_PENDING:
            return Wait(Stage.QUOTE)
        case BillingStage.QUOTE_OPEN | BillingStage.QUOTE_UNKNOWN:
            quote = seen.billing.quote
            if quote is None or seen.confirmed or state.is_confirmation_answered:
                return Wait(Stage.QUOTE)  # an acting call is sent once, and then waited for
            return _next_of_quote(state, seen, limits, quote)


def _next_of_quote(state: OrderState, seen: Seen, limits: OrderLimits, quote: Quote) -> Action:
    if not seen.checked_again:
        return SearchAgain()
    known = state.approved
    if seen.estimate is None and (known is None or (known.by_person and state.approved_before is None)):
        return (
            Estimate()
        )  # nothing was approved before the quote, so the estimate is what it is compared with
    amount, verdict = _judge_open_quote(state, seen, limits, quote)
    match verdict:
        case Approved():
            return Approve(verdict)
        case Question() if not _is_approved(state, seen, limits, quote):
            return RejectQuote() if _is_rejected(seen, verdict) else Ask(verdict)
    return ConfirmQuote(amount, untotaled=quote.total is None)


def _judge_open_quote(
    state: OrderState, seen: Seen, limits: OrderLimits, quote: Quote
) -> tuple[int, Approved | Question | None]:
    amount, reasons, figures = judge_quote(state, seen, limits, quote)
    verdict = judge_price(
        state,
        seen,
        limits,
        what=f"The quote for {limits.name}",
        amount_cents=amount,
        reasons=reasons,
        figures={**figures, **_describe_validity(quote)},
    )
    return amount, verdict


def _is_approved(state: OrderState, seen: Seen, limits: OrderLimits, quote: Quote) -> bool:
    """Whether the recorded approval is a person's answer about exactly this quote.

    What is shown names the approval that held before, so the question is compared as it was before that answer.
    """
    known = state.approved
    if known is None or not known.by_person:
        return False
    before = state.model_copy(update={"approved": state.approved_before})
    _, answer = _judge_open_quote(before, seen, limits, quote)
    return (
        isinstance(answer, Approved)
        and answer.by_person
        and (answer.amount_cents, answer.approver) == (known.amount_cents, known.approver)
    )


def _describe_validity(quote: Quote) -> dict[str, str]:
    ends = f"until {quote.expires_at:%Y-%m-%d %H:%M} UTC" if quote.expires_at else "without a stated end"
    begins = f"from {quote.created_at:%Y-%m-%d} " if quote.created_at else ""
    page = f", [its page]({quote.provider_quote_url})" if quote.provider_quote_url else ""
    return {"quote holds": f"{begins}{ends}{page}"}


def judge_quote(
    state: OrderState, seen: Seen, limits: OrderLimits, quote: Quote
) -> tuple[int, list[str], dict[str, str]]:
    """The amount to approve for a quote, why a person has to look at it, and what the question shows of it.

    Without a readable total the amount is what was approved for the order, else the estimate, else the cap.
    """
    expected, source = None, "the estimate"
    if state.approved is not None:
        expected, source = state.approved.amount_cents, "the amount approved before"
    elif seen.estimate is not None:
        expected = seen.estimate.total_cents
    figures = {source: usd(expected)} if expected is not None else {}
    reasons = []
    total = quote.total
    if total is None:
        stated = "; ".join(f"{name} {text}" for name, text in quote.money.stated)
        figures |= {
            "read from the quote": stated or "no amount",
            "quote": quote.provider_quote_url or "without a page",
        }
        cause = quote.money.unreadable or "it shows none"
        amount = f"the amount here is {source if expected is not None else 'the cap'}"
        reasons.append(f"its total cannot be read ({cause}); {amount}: read the quote before you approve")
    elif is_far_below(total, expected or 0):
        reasons.append(
            f"it is less than {LOWEST_PERCENT} % of {source}" if total else "it is a quote of nothing"
        )
    if not is_known(quote):
        reasons.append(f"its status is {quote.status!a}, a word that this version does not know")
    if not (reasons or limits.accept_quotes):
        reasons.append(EVERY_QUOTE)
    fallback = limits.experiment_cap_cents if expected is None else expected
    return fallback if total is None else total, reasons, figures


def judge_price(
    state: OrderState,
    seen: Seen,
    limits: OrderLimits,
    *,
    what: str,
    amount_cents: int,
    reasons: list[str] | None = None,
    figures: Mapping[str, str] | None = None,
    exact: bool = False,
) -> Approved | Question | None:
    """None if the order may cost this much; else the approval to record first, or the question to ask.

    An earlier approval of the order is the limit: more is always a question, and so is less than `LOWEST_PERCENT` of it,
    or with `exact` any other amount. One by a person counts even above the cap, one by a rule only below it: a lowered
    cap asks again.
    """
    before = state.approved
    cap_cents, cap_name = limits.experiment_cap_cents, limits.cap_name
    why = list(reasons or ())
    approval = Approved(
        amount_cents=amount_cents,
        approver=limits.approver or RULE,
        requester=limits.requester,
        how=limits.how or f"within the {cap_name}, {usd(cap_cents)}",
    )
    if before is not None:
        allowed = before.amount_cents if before.by_person else min(before.amount_cents, cap_cents)
        lower = amount_cents < before.amount_cents and is_far_below(amount_cents, before.amount_cents)
        if amount_cents != before.amount_cents and (exact or lower) and not why:
            why = [f"{usd(before.amount_cents)} was approved for this order before"]
        if not why and amount_cents <= allowed:
            same = amount_cents == before.amount_cents
            return None if same else before.model_copy(update={"amount_cents": amount_cents})
        if before.amount_cents <= cap_cents:
            cap_cents, cap_name = before.amount_cents, "amount approved for this order before"
    if not why and amount_cents <= cap_cents:
        return approval
    question = spending_question(
        what,
        amount_cents,
        cap_cents,
        cap_name,
        why,
        {**limits.bought, **(figures or {})},
        second_person=limits.needs_second_person(amount_cents),
    )
    if seen.decisions.get(question.digest) != APPROVE:
        return question
    if before is not None and before.by_person and before.amount_cents == amount_cents:
        return None
    person = seen.answerers.get(question.digest, Answerer(UNNAMED))
    return Approved(
        amount_cents=amount_cents,
        approver=person.name,
        by_person=True,
        requester=limits.requester,
        how=person.how,
    )


def spending_question(
    what: str,
    amount_cents: int,
    cap_cents: int,
    cap_name: str,
    reasons: list[str],
    facts: Mapping[str, str],
    *,
    second_person: bool = False,
    rejected: str = "it is not spent, and the order ends",
) -> Question:
    """The question whether exactly this amount may be spent; `rejected` is what follows from a rejection."""
    over = amount_cents - cap_cents
    place = f"That is {usd(over)} over" if over > 0 else "That is within"
    limit = f"{place} the {cap_name}, {usd(cap_cents)}." if cap_cents else "Nothing was approved before."
    reason = f" You are asked because {', and '.join(reasons)}." if reasons else ""
    if second_person:
        reason += " The policy asks for two persons: whoever has asked for it cannot approve it."
    return Question.of(
        QuestionKind.SPENDING,
        subject=f"{what} costs {usd(amount_cents)} without VAT.",
        reason=f"{limit}{reason}",
        facts=facts,
        choices={
            APPROVE: "exactly the amount shown may be spent",
            REJECT: rejected,
        },
        amount_cents=amount_cents,
        second_person=second_person,
    )


def _is_rejected(seen: Seen, question: Question) -> bool:
    decision = seen.decisions.get(question.digest)
    return decision is not None and decision != APPROVE


def _next_payment(state: OrderState, seen: Seen, limits: OrderLimits) -> Action | None:  # noqa: PLR0911 - one return per case
    """The action that pays the order or reads how it is paid; None once that is settled or done in this execution."""
    if state.settled is not None or seen.payment is not None or seen.payment_problem:
        return None
    if not limits.by_machine:
        return Pay(0) if state.invoiced is None or seen.due_read else ReadHosted()
    if not seen.due_read:
        return ReadDue()
    if seen.due_cents is None:
        return Pay(0)  # records that it is paid
    verdict = judge_price(
        state, seen, limits, what=f"The invoice of {limits.name}", amount_cents=seen.due_cents, exact=True
    )
    match verdict:
        case Approved():
            return Approve(verdict)
        case Question():
            return Ask(verdict)
    return Pay(seen.due_cents)


def _next_results(state: OrderState, seen: Seen, limits: OrderLimits) -> Action:  # noqa: PLR0911 - one return per case
    row = seen.row
    unpaid = state.settled is None
    waiting = Stage.PAYMENT if unpaid and not has_work_begun(seen.status) else Stage.LABORATORY
    if row is None:
        return Wait(waiting)
    decision = decide_wait(
        row.status, row.results_status, seen.now, deadline_of(row.created_at, limits.patience)
    )
    match decision:
        case OutcomeKind.DONE | OutcomeKind.INCOMPLETE:
            if not seen.retrieved:
                return Retrieve()
            return End(Stage.UNREAD if seen.unread else Stage.MEASURED)
        case OutcomeKind.CANCELED:
            return End(Stage.CANCELED)
        case OutcomeKind.OVERDUE:
            return Retrieve() if _has_results(row) and not seen.retrieved else Wait(Stage.OVERDUE)
        case NotYet.PARTIAL:
            return _next_of_partial(state, seen, row)
        case NotYet.NOTHING:
            return Wait(waiting)


def _has_results(row: ExperimentSummary) -> bool:
    return row.results_status != ResultsStatus.NONE


def _next_of_partial(state: OrderState, seen: Seen, row: ExperimentSummary) -> Action:
    if not seen.retrieved:
        return Retrieve()
    if row.status != ExperimentStatus.DONE:
        return Wait(Stage.PARTLY_MEASURED)
    if state.partial is None:
        return NotePartial()
    if seen.now >= state.partial.seen + PARTIAL_WAIT:
        return End(Stage.INCOMPLETE)
    return Wait(Stage.PARTLY_MEASURED)
