"""What a person has to look at: amounts that differ from what was approved, and quotes that cannot be read."""

from types import SimpleNamespace

import pytest

from prefect_assay.approvals import spending
from prefect_assay.blocks import LocalArchive, SpendingPolicy
from prefect_assay.books.log import Approved
from prefect_assay.errors import BudgetExceeded, DecisionNeeded, PaymentRefused, UnexpectedAnswer
from prefect_assay.flows import experiment_billing as billing
from prefect_assay.flows.run_options import ExperimentRun, RunOptions
from prefect_assay.models.billing import CostEstimate, Quote
from prefect_assay.models.job import Order
from prefect_assay.models.spec import ExperimentSpec
from prefect_assay.models.vocabulary import PaymentMethod
from prefect_assay.ordering.billing import Billing, BillingStage
from support.archive.memory_store import a_book

SPEC = ExperimentSpec.model_validate(
    {"experiment_type": "expression", "sequences": {"a": {"aa_string": "ACD"}}}
)
ORDER = Order(order_key="k", experiment_id="exp_1", experiment_code="E-1", status="quote_sent", adopted=False)
CONFIRMED = Billing(stage=BillingStage.INVOICED)


def a_run(approved=None, *, by_person=False):
    options = RunOptions(
        credentials=None,
        policy=SpendingPolicy(
            per_experiment_cents=100_000,
            per_campaign_cents=900_000,
            accept_quotes=True,
        ),
        archive=LocalArchive(root="no-such-folder"),
        payment_method=PaymentMethod.X402_EXACT,
        wallet=None,
        webhook=None,
        request_quote=False,
        deadline_days=1,
        poll_seconds=300.0,
    )
    run = ExperimentRun(options, spec=SPEC, campaign_id="c", batch_index=0, batch_count=1)
    vars(run)["book"] = a_book()
    if approved is not None:
        run.book.record(
            lambda _: Approved(amount_cents=approved, approver="within a cap", by_person=by_person)
        )
    return run


@pytest.fixture
def confirmed(monkeypatch):
    """The amounts with which quotes were confirmed; the estimate is 219.00 USD."""
    amounts = []

    def confirm(*_, approved_cents, **__):
        amounts.append(approved_cents)
        return CONFIRMED

    estimate = CostEstimate.model_validate({"breakdown": {"total_cents": 21_900}})
    monkeypatch.setattr(billing, "estimate_cost", lambda *_: estimate)
    monkeypatch.setattr(billing, "confirm_quote", confirm)
    return amounts


def a_quote(total=None, **changes):
    return Quote.model_validate({"status": "open", "amount_total": total, "currency": "usd", **changes})


@pytest.mark.parametrize(
    ("total", "reason"),
    [
        (219, "it is less than 80 % of"),
        (0, "it is a quote of nothing"),
        (17_519, "it is less than 80 % of"),
        (17_520, None),
        (21_900, None),
    ],
)
@pytest.mark.parametrize("approved", [None, 21_900])
def test_a_quote_far_below_what_was_approved_or_estimated_is_a_question(confirmed, total, reason, approved):
    """Played: `total: 219` beside an estimate of 219.00 USD was accepted, and the caps protected nothing."""
    run = a_run(approved)
    if reason is None:
        assert billing.accept_quote(run, ORDER, a_quote(total)) is CONFIRMED
        assert confirmed == [total]
        assert run.book.read().approved.amount_cents == total
        return
    with pytest.raises(DecisionNeeded, match=reason) as raised:
        billing.accept_quote(run, ORDER, a_quote(total))
    assert raised.value.question.amount_cents == total
    assert "219.00 USD" in [fact.value for fact in raised.value.question.facts]
    assert confirmed == []


def test_a_quote_of_nothing_is_a_question_even_where_nothing_was_estimated(confirmed, monkeypatch):
    def none(*_):
        raise UnexpectedAnswer("an estimate that contradicts itself")

    monkeypatch.setattr(billing, "estimate_cost", none)
    with pytest.raises(DecisionNeeded, match="a quote of nothing"):
        billing.accept_quote(a_run(), ORDER, a_quote(0))
    assert billing.accept_quote(a_run(), ORDER, a_quote(5)) is CONFIRMED


def test_a_quote_above_what_was_approved_is_a_question(confirmed):
    with pytest.raises(BudgetExceeded, match=r"costs 219.01 USD, the cap is 219.00 USD"):
        billing.accept_quote(a_run(21_900), ORDER, a_quote(21_901))
    assert confirmed == []


@pytest.mark.parametrize(
    "odd",
    [
        {"amount_total": None},
        {"amount_total": "219.00"},
        {"amount_total": 21_900, "total_cents": 219},
        {"amount_total": 21_900, "line_items": [{"total_cents": 219}]},
        {"amount_total": 21_900, "amount_subtotal": 219},
    ],
)
def test_a_quote_whose_total_cannot_be_read_is_a_question_with_what_was_read(confirmed, odd, monkeypatch):
    with pytest.raises(DecisionNeeded, match="its total cannot be read") as raised:
        billing.accept_quote(a_run(), ORDER, a_quote(**odd))
    facts = {fact.name: fact.value for fact in raised.value.question.facts}
    assert facts["the estimate"] == "219.00 USD"
    for name, value in odd.items():
        if value is not None and name != "line_items":
            assert f"{name} {value!a}" in facts["read from the quote"]
    monkeypatch.setattr(
        billing,
        "approve_spending",
        lambda *_, amount_cents, **__: spending.Approval(amount_cents, "Ada", True),
    )
    assert billing.accept_quote(a_run(), ORDER, a_quote(**odd)) is CONFIRMED, "no dead end"
    assert confirmed == [21_900]


@pytest.mark.parametrize("currency", ["eur", ["usd"], {"code": "usd"}])
def test_a_quote_in_another_currency_is_refused(confirmed, currency):
    with pytest.raises(PaymentRefused, match=r"its currency is .* not USD"):
        billing.accept_quote(a_run(), ORDER, a_quote(5, currency=currency))


@pytest.fixture
def due(monkeypatch):
    """What the invoice asks for, and with which limits it was paid."""
    made = SimpleNamespace(cents=0, paid=[])
    monkeypatch.setattr(billing, "read_due", lambda *_, **__: made.cents)
    monkeypatch.setattr(billing, "require_blocks", lambda *_: None)
    monkeypatch.setattr(billing, "require_rail", lambda *_: None)
    monkeypatch.setattr(billing.facts, "invoiced", lambda *_: None)
    monkeypatch.setattr(billing, "_invoice", lambda *a, **k: made.paid.append(a[2]))
    return made


@pytest.mark.parametrize("cents", [219, 21_899, 21_901, 0])
@pytest.mark.parametrize("by_person", [False, True])
def test_a_machine_payment_equals_its_approval_to_the_cent(due, cents, by_person):
    """Played: a challenge of 1 % of the approved price was paid."""
    due.cents = cents
    run = a_run(21_900, by_person=by_person)
    for asks in (True, False):
        with pytest.raises(DecisionNeeded, match=r"219\.00 USD was approved for this order before") as raised:
            billing._pay_due(run, ORDER, asks=asks, answered_paid=False)
        assert raised.value.question.amount_cents == cents
    assert due.paid == []


def test_a_machine_payment_of_the_approved_amount_is_sent_without_a_question(due):
    due.cents = 21_900
    billing._pay_due(a_run(21_900), ORDER, asks=True, answered_paid=False)
    assert due.paid == [21_900]


def test_a_person_approves_another_amount_first_and_then_it_is_paid(due, monkeypatch):
    due.cents = 219
    run = a_run(21_900)
    monkeypatch.setattr(
        billing,
        "approve_spending",
        lambda *_, amount_cents, **__: spending.Approval(amount_cents, "Ada", True),
    )
    billing._pay_due(run, ORDER, asks=True, answered_paid=False)
    assert (due.paid, run.book.read().approved.amount_cents) == ([219], 219)
