"""What comes next for an order: one row per situation, and what holds in every situation."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefect_assay.errors import ArchiveError
from prefect_assay.orders.billing import Billing, BillingStage
from prefect_assay.orders.job import Order, OrderRoute, Payment, PaymentState
from prefect_assay.orders.ledger.log import (
    Accepted,
    Approved,
    Confirming,
    Delivered,
    InDoubt,
    Invoiced,
    Ordered,
    Partial,
    Paying,
    Planned,
    Sending,
    Settled,
    Stopped,
    Withdrawn,
)
from prefect_assay.orders.ledger.state import NotBegun
from prefect_assay.orders.next_action import (
    APPROVE,
    Answerer,
    Approve,
    Ask,
    ConfirmQuote,
    Create,
    End,
    Estimate,
    FindOrder,
    NotePartial,
    OrderLimits,
    Pay,
    PollQuote,
    ReadDue,
    ReadHosted,
    RejectQuote,
    Retrieve,
    SearchAgain,
    Seen,
    Wait,
    Withdraw,
    next_action,
)
from prefect_assay.orders.question import REJECT, QuestionKind
from prefect_assay.orders.stages import Stage
from prefect_assay.service.models.billing import CostEstimate, Quote
from prefect_assay.service.models.experiment import ExperimentSummary
from prefect_assay.service.models.vocabulary import PaymentMethod
from support.next_actions import find_violation

NOW = datetime(2026, 11, 20, tzinfo=UTC)
ID = "11111111-1111-4111-8111-111111111111"

PLANNED = Planned(archive_id="a", campaign_id="c")
SENDING = Sending(attempt=1, route=OrderRoute.SELF_SERVICE, rail=PaymentMethod.X402_EXACT)
SENT_FOR_QUOTE = Sending(attempt=1, route=OrderRoute.QUOTED, rail=PaymentMethod.ASYNC_INVOICE)
ORDERED = Ordered(experiment_id=ID)
INVOICED = Invoiced(invoice_id="i", amount_cents=1000)
SETTLED = Settled(invoice_id="i", amount_cents=1000)
PAYING = Paying(
    invoice_id="i",
    rail=PaymentMethod.X402_EXACT,
    amount_cents=1000,
    nonce="n",
    network="net",
    asset="usdc",
    pay_to="lab",
    expires_at=NOW,
)
STOPPED = Stopped(person="Ada", how="a test")


def approved(cents=1000, *, by_person=False):
    return Approved(amount_cents=cents, approver="Ada", by_person=by_person)


class EverythingRejected(dict):
    """A person's decisions, whatever was asked."""

    def get(self, _digest, _default=None):
        return REJECT


def fold(*records):
    state = NotBegun()
    for record in records:
        state = state.next(record)
    return state


def limits(**changes):
    values = {
        "name": "c 1/1",
        "experiment_cap_cents": 5000,
        "cap_name": "cap",
        "accept_quotes": True,
        "by_quote": False,
        "by_machine": True,
        "patience": timedelta(days=45),
    }
    return OrderLimits(**{**values, **changes})


def row(status, results="none", days=1):
    return ExperimentSummary(
        id=ID, code="LAB-1-1", status=status, results_status=results, created_at=NOW - timedelta(days=days)
    )


def seen(**changes):
    return Seen(NOW, **changes)


def at_status(*status, **changes):
    return seen(row=row(*status), **changes)


def priced(cents):
    return CostEstimate.model_validate(
        {"breakdown": {"assay": {"subtotal_cents": cents}, "total_cents": cents}}
        if cents is not None
        else {"incomplete": True}
    )


def quote(cents=1000, status="open", **changes):
    return Quote.model_validate({"amount_total": cents, "currency": "usd", "status": status, **changes})


def billing(stage, the_quote=None):
    return Billing(stage=stage, quote=the_quote)


OPEN_QUOTE = billing(BillingStage.QUOTE_OPEN, quote())
BOUGHT = (PLANNED, SENDING, ORDERED)
QUOTED = (PLANNED, SENT_FOR_QUOTE, ORDERED)
PAID = (*BOUGHT, SETTLED)

SITUATIONS = {
    "nothing is known": ((), seen(), FindOrder),
    "searched, no price yet": ((), seen(searched=True), Estimate),
    "a price by quote only": (
        (),
        seen(searched=True, estimate=priced(1000)),
        Create(OrderRoute.QUOTED, 0),
        limits(by_quote=True),
    ),
    "a price within the cap is approved first": ((), seen(searched=True, estimate=priced(1000)), Approve),
    "an approved price": (
        (PLANNED, approved()),
        seen(searched=True, estimate=priced(1000)),
        Create(OrderRoute.SELF_SERVICE, 1000),
    ),
    "a price over the cap": ((), seen(searched=True, estimate=priced(9000)), Ask),
    "a price above what was approved": (
        (PLANNED, approved(900)),
        seen(searched=True, estimate=priced(1000)),
        Ask,
    ),
    "a price over the cap that a person has approved": (
        (PLANNED, approved(9000, by_person=True)),
        seen(searched=True, estimate=priced(9000)),
        Create(OrderRoute.SELF_SERVICE, 9000),
    ),
    "a rejected price": (
        (PLANNED,),
        seen(searched=True, estimate=priced(9000), decisions=EverythingRejected()),
        Withdraw("a person did not approve its price"),
    ),
    "a rejected price of an order that the laboratory may have": (
        (PLANNED, approved(), SENDING),
        seen(searched=True, estimate=priced(9000), decisions=EverythingRejected()),
        Wait(Stage.ORDERED),
    ),
    "the cap has fallen below what a rule approved": (
        (PLANNED, approved(1000)),
        seen(searched=True, estimate=priced(1000)),
        Ask,
        limits(experiment_cap_cents=500),
    ),
    "refused before the order": ((PLANNED, Withdrawn(reason="r")), seen(), End(Stage.REFUSED)),
    "ordered, and the list does not show it": (BOUGHT, seen(), FindOrder),
    "searched for, and still not shown": (BOUGHT, seen(searched=True), Wait(Stage.ORDERED)),
    "ordered, its invoice not read": (BOUGHT, at_status("waiting_for_materials"), PollQuote),
    "its quote is prepared": (
        QUOTED,
        at_status("waiting_for_confirmation", billing=billing(BillingStage.QUOTE_PENDING)),
        Wait(Stage.QUOTE),
    ),
    "an open quote: first search again": (QUOTED, at_status("quote_sent", billing=OPEN_QUOTE), SearchAgain),
    "an approved quote": (
        (*QUOTED, approved()),
        at_status("quote_sent", billing=OPEN_QUOTE, checked_again=True),
        ConfirmQuote(1000, untotaled=False),
    ),
    "an open quote, and nothing was approved before: compared with the estimate": (
        QUOTED,
        at_status("quote_sent", billing=OPEN_QUOTE, checked_again=True),
        Estimate,
    ),
    "a quote far below the estimate": (
        QUOTED,
        at_status("quote_sent", billing=OPEN_QUOTE, checked_again=True, estimate=priced(4000)),
        Ask,
    ),
    "a quote without a total": (
        QUOTED,
        at_status(
            "quote_sent",
            billing=billing(BillingStage.QUOTE_OPEN, quote(None)),
            checked_again=True,
            estimate=priced(None),
        ),
        Ask,
    ),
    "every quote is left to a person": (
        (*QUOTED, approved()),
        at_status("quote_sent", billing=OPEN_QUOTE, checked_again=True),
        Ask,
        limits(accept_quotes=False),
    ),
    "a confirmation was sent just now": (
        (*QUOTED, approved(), Confirming(amount_cents=1000)),
        at_status("quote_sent", billing=OPEN_QUOTE, checked_again=True, confirmed=True),
        Wait(Stage.QUOTE),
    ),
    "a confirmation was answered, and the quote reads as open": (
        (*QUOTED, approved(), Confirming(amount_cents=1000), Accepted(experiment_id=ID)),
        at_status("quote_sent", billing=OPEN_QUOTE),
        Wait(Stage.QUOTE),
    ),
    "a confirmation of unknown outcome is sent again": (
        (*QUOTED, approved(), Confirming(amount_cents=1000)),
        at_status("quote_sent", billing=OPEN_QUOTE, checked_again=True),
        ConfirmQuote(1000, untotaled=False),
    ),
    "a rejected quote": (
        QUOTED,
        at_status("quote_sent", billing=billing(BillingStage.QUOTE_REJECTED)),
        Withdraw,
    ),
    "an expired quote": (
        QUOTED,
        at_status("quote_sent", billing=billing(BillingStage.QUOTE_EXPIRED)),
        Withdraw,
    ),
    "withdrawn": ((*QUOTED, Withdrawn(reason="r")), at_status("quote_sent"), End(Stage.NO_QUOTE)),
    "invoiced: first search again": (
        BOUGHT,
        at_status("waiting_for_materials", billing=billing(BillingStage.INVOICED)),
        SearchAgain,
    ),
    "invoiced, by machine": (
        BOUGHT,
        at_status("waiting_for_materials", billing=billing(BillingStage.INVOICED), checked_again=True),
        ReadDue,
    ),
    "the approved amount is due": (
        (*BOUGHT, approved()),
        at_status(
            "waiting_for_materials",
            billing=billing(BillingStage.INVOICED),
            checked_again=True,
            due_read=True,
            due_cents=1000,
        ),
        Pay(1000),
    ),
    "another amount is due": (
        (*BOUGHT, approved()),
        at_status(
            "waiting_for_materials",
            billing=billing(BillingStage.INVOICED),
            checked_again=True,
            due_read=True,
            due_cents=999,
        ),
        Ask,
    ),
    "a hosted invoice, first seen": (
        QUOTED,
        at_status("waiting_for_materials", billing=billing(BillingStage.INVOICED), checked_again=True),
        Pay(0),
        limits(by_machine=False),
    ),
    "a hosted invoice that is recorded": (
        (*QUOTED, INVOICED),
        at_status("waiting_for_materials"),
        ReadHosted,
        limits(by_machine=False),
    ),
    "a hosted invoice that a person has paid": (
        (*QUOTED, INVOICED),
        at_status("waiting_for_materials", due_read=True),
        Pay(0),
        limits(by_machine=False),
    ),
    "a hosted invoice that is not paid yet": (
        (*QUOTED, INVOICED),
        at_status("waiting_for_materials", payment_problem=True),
        Wait(Stage.PAYMENT),
        limits(by_machine=False),
    ),
    "in the laboratory": (PAID, at_status("in_production"), Wait(Stage.LABORATORY)),
    "a payment problem holds back no results": (
        BOUGHT,
        at_status("done", "all", payment_problem=True),
        Retrieve,
    ),
    "preliminary results": (PAID, at_status("in_review", "partial"), Retrieve),
    "preliminary results are archived": (
        PAID,
        at_status("in_review", "partial", retrieved=True),
        Wait(Stage.PARTLY_MEASURED),
    ),
    "complete before the release": (PAID, at_status("in_review", "all"), Retrieve),
    "released in part": (PAID, at_status("done", "partial", retrieved=True), NotePartial),
    "released in part for days": (
        (*PAID, Partial(seen=NOW - timedelta(days=6))),
        at_status("done", "partial", retrieved=True),
        Wait(Stage.PARTLY_MEASURED),
    ),
    "released in part for a week": (
        (*PAID, Partial(seen=NOW - timedelta(days=7))),
        at_status("done", "partial", retrieved=True),
        End(Stage.INCOMPLETE),
    ),
    "released": (PAID, at_status("done", "all"), Retrieve),
    "released, and unreadable": (
        PAID,
        at_status("done", "all", retrieved=True, unread=True),
        End(Stage.UNREAD),
    ),
    "delivered": ((*PAID, Delivered(experiment_code="LAB-1-1")), seen(), End(Stage.MEASURED)),
    "past its deadline": (PAID, at_status("in_production", "none", 46), Wait(Stage.OVERDUE)),
    "results after the deadline": (PAID, at_status("done", "all", 90), Retrieve),
    "canceled by the laboratory": (QUOTED, at_status("canceled"), Withdraw),
    "canceled after preliminary results": (PAID, at_status("canceled", "partial"), Retrieve),
    "canceled with a payment in doubt": ((*BOUGHT, PAYING, InDoubt()), at_status("canceled"), Pay(0)),
    "stopped by a person": ((*PAID, STOPPED), at_status("done", "all"), End(Stage.STOPPED)),
    "an unknown status waits": (PAID, at_status("on_holiday"), Wait(Stage.LABORATORY)),
    "paid: the quote is not read again": (PAID, at_status("waiting_for_materials"), Wait(Stage.LABORATORY)),
}


@pytest.mark.parametrize("name", SITUATIONS)
def test_next_action(name):
    records, what, expected, *allowed = SITUATIONS[name]
    action = next_action(fold(*records), what, *allowed or [limits()])
    if isinstance(expected, type):
        assert isinstance(action, expected)
    else:
        assert action == expected


def test_approval_names_who_asked_who_approved_and_how():
    approval_limits = limits(requester="Ada", approver="Ada", how="--yes --max-usd with run r")
    action = next_action(fold(), seen(searched=True, estimate=priced(100)), approval_limits)
    assert isinstance(action, Approve)
    assert (action.approval.approver, action.approval.requester, action.approval.how) == (
        "Ada",
        "Ada",
        "--yes --max-usd with run r",
    )
    assert not action.approval.by_person, "an amount that was said before holds only within the caps"


@pytest.mark.parametrize(("above_cents", "needs_two"), [(9000, False), (8999, True), (None, False)])
def test_more_than_one_person_may_spend_is_a_question_for_two(above_cents, needs_two):
    two = limits(second_person_above_cents=above_cents)
    action = next_action(fold(), seen(searched=True, estimate=priced(9000)), two)
    assert isinstance(action, Ask)
    assert action.question.second_person is needs_two
    assert ("asks for two persons" in action.question.reason) is needs_two


def test_answer_counts_for_exactly_the_question_that_was_shown():
    state = fold()
    what = seen(searched=True, estimate=priced(9000))
    question = next_action(state, what, limits()).question
    agreed = what.add(decisions={question.digest: APPROVE}, answerers={question.digest: Answerer("Ada")})
    action = next_action(state, agreed, limits())
    assert isinstance(action, Approve)
    assert (action.approval.amount_cents, action.approval.approver, action.approval.by_person) == (
        9000,
        "Ada",
        True,
    )
    dearer = agreed.add(estimate=priced(9001))
    assert isinstance(next_action(state, dearer, limits()), Ask)


@pytest.mark.parametrize("cents", [1000, None])
@pytest.mark.parametrize("records", [(), (approved(),)])
def test_a_quote_that_a_person_has_approved_is_not_asked_about_again(records, cents):
    state, policy = fold(*QUOTED, *records), limits(accept_quotes=False)
    what = seen(
        row=row("quote_sent"),
        billing=billing(BillingStage.QUOTE_OPEN, quote(cents)),
        checked_again=True,
        estimate=priced(1000),
    )
    question = next_action(state, what, policy).question
    agreed = what.add(decisions={question.digest: APPROVE}, answerers={question.digest: Answerer("Bob")})
    action = next_action(state, agreed, policy)
    assert isinstance(action, Approve)
    state = state.next(action.approval)
    assert next_action(state, agreed, policy) == ConfirmQuote(question.amount_cents, untotaled=cents is None)
    another = agreed.add(billing=billing(BillingStage.QUOTE_OPEN, quote(cents, expires_at="2031-01-01")))
    assert isinstance(next_action(state, another, policy), Ask)


def test_rejected_price_ends_the_order_and_a_rejected_quote_is_rejected():
    state = fold()
    what = seen(searched=True, estimate=priced(9000))
    question = next_action(state, what, limits()).question
    assert question.kind is QuestionKind.SPENDING
    assert isinstance(next_action(state, what.add(decisions={question.digest: "reject"}), limits()), Withdraw)
    quoted = seen(row=row("quote_sent"), billing=OPEN_QUOTE, checked_again=True, estimate=priced(4000))
    question = next_action(fold(*QUOTED), quoted, limits()).question
    refused = quoted.add(decisions={question.digest: "reject"})
    assert isinstance(next_action(fold(*QUOTED), refused, limits()), RejectQuote)


RECORDS = [
    PLANNED,
    SENDING,
    SENT_FOR_QUOTE,
    ORDERED,
    approved(),
    approved(9000, by_person=True),
    Confirming(amount_cents=1000),
    Accepted(experiment_id=ID),
    INVOICED,
    PAYING,
    InDoubt(),
    SETTLED,
    Withdrawn(reason="r"),
    Partial(seen=NOW),
    Delivered(experiment_code="LAB-1-1"),
    STOPPED,
]


@st.composite
def states(draw):
    state = NotBegun().next(PLANNED)
    for record in draw(st.lists(st.sampled_from(RECORDS), max_size=8)):
        try:
            state = state.next(record)
        except ArchiveError:
            continue
    return state


STATUSES = st.sampled_from(
    [
        "draft",
        "waiting_for_confirmation",
        "quote_sent",
        "waiting_for_materials",
        "in_queue",
        "done",
        "canceled",
        "odd",
    ]
)
SEEN = st.builds(
    Seen,
    st.just(NOW),
    row=st.none()
    | st.builds(row, STATUSES, st.sampled_from(["none", "partial", "all"]), st.sampled_from([1, 60])),
    order=st.none()
    | st.just(Order(order_key="k", experiment_id=ID, status="waiting_for_materials", adopted=False)),
    searched=st.booleans(),
    estimate=st.none() | st.sampled_from([priced(None), priced(1000), priced(9000)]),
    checked_again=st.booleans(),
    billing=st.none() | st.builds(billing, st.sampled_from(BillingStage), st.none() | st.just(quote())),
    confirmed=st.booleans(),
    due_read=st.booleans(),
    due_cents=st.none() | st.just(1000),
    payment=st.none()
    | st.just(Payment(invoice_id="i", method=PaymentMethod.X402_EXACT, state=PaymentState.SETTLED)),
    payment_problem=st.booleans(),
    retrieved=st.booleans(),
)


@given(states(), SEEN, st.booleans())
def test_the_ledger_forbids_no_action_in_any_situation(state, what, by_machine):
    action = next_action(state, what, limits(by_machine=by_machine))
    assert find_violation(state, what, action) is None
    if state.stopped is not None:
        assert isinstance(action, End)
