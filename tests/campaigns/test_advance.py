"""Orders advance from their ledgers against a real lab: each step may be repeated, by anybody, and by two at once."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from prefect.logging import disable_run_logger
from pydantic import SecretStr

from assay_lab.testing import LocalLab
from prefect_assay.blocks import X402Wallet
from prefect_assay.campaigns import advance as advance_module
from prefect_assay.campaigns import play as play_module
from prefect_assay.campaigns.advance import OrderLook
from prefect_assay.campaigns.approval import questions as questions_module
from prefect_assay.campaigns.orders import PlannedOrder
from prefect_assay.campaigns.play import Campaign, CampaignLook, look_at_orders
from prefect_assay.campaigns.setup import CampaignSetup
from prefect_assay.designs.read import read_sequences
from prefect_assay.errors import PaymentsDisabled, ServiceUnavailable
from prefect_assay.orders.billing import read_billing
from prefect_assay.orders.create import find_or_create
from prefect_assay.orders.ledger.log import Approved
from prefect_assay.orders.payments.settle import settle
from prefect_assay.orders.stages import OVER, Stage
from prefect_assay.orders.targets import resolve_target
from prefect_assay.service.models.billing import CostEstimate
from prefect_assay.service.models.experiment import CreateRequest
from prefect_assay.service.models.spec import Assay
from prefect_assay.service.models.vocabulary import PaymentMethod
from prefect_assay.tasks.read import plan_campaign
from support.accounts import make_account, make_options
from support.runs.world import EGFR, UNPRICED, WALLET_KEY

UNASKED_CENTS = 5_000_000
PRICE_CENTS = 21_900  # of one experiment
TASKS = (
    "archive_experiment",
    "retrieve_results",
    "estimate_cost",
    "recheck_order",
    "find_order",
    "order_experiment",
    "pay_invoice",
    "_read_invoice",
    "read_due",
    "confirm_quote",
    "poll_quote",
    "plot_results",
)


@pytest.fixture
def lab():
    """A lab of this test alone: its journal is what is judged."""
    with LocalLab() as made:
        made.plan(quote_minutes=1, review_minutes=1)
        yield made


@pytest.fixture(autouse=True)
def without_prefect(monkeypatch):
    """The tasks' own functions, and no artifacts; waits for lost answers are short."""
    for name in TASKS:
        monkeypatch.setattr(advance_module, name, getattr(advance_module, name).fn)
    for name in ("show_order", "show_payment", "show_surplus", "show_results"):
        monkeypatch.setattr(advance_module.artifacts, name, lambda *_, **__: None)
    monkeypatch.setattr(questions_module, "show_question", lambda *_, **__: None)
    monkeypatch.setattr(play_module, "show_progress", lambda *_: None)
    monkeypatch.setitem(find_or_create.__kwdefaults__, "patience", (0.0, 0.05))
    monkeypatch.setitem(settle.__kwdefaults__, "read_delays", (0.0, 0.05))
    with disable_run_logger():
        yield


def a_campaign(lab, folder, *, target=EGFR, designs=1, method=PaymentMethod.X402_EXACT, **policy):
    """A planned campaign with one design per experiment, whose log is started."""
    terms = lab.rail("x402-exact")
    account = make_account(
        base_url=lab.base_url,
        token=lab.token,
        policy={"machine_payments": True, "rolling_usd": 500_000, "accept_quotes": True} | policy,
        archive=folder,
        payment_method=method,
        wallet=X402Wallet(
            private_key=SecretStr(WALLET_KEY),
            networks=[terms["network"]],
            assets=[terms["asset"]],
            pay_to=[terms["pay_to"]],
        ),
    )
    setup = CampaignSetup(account, make_options(poll_seconds=1.0))
    text = "".join(f">d{n}\nMKVLAAGICDE{'ACDEFGHIKL'[n]}\n" for n in range(designs))
    with setup.credentials.get_client() as client:
        assay = Assay(experiment_type="affinity", method="bli", target=target)
        catalog = resolve_target(client, assay)
    plan = plan_campaign.fn(
        read_sequences("designs", text=text), assay, catalog, campaign_id="c", per_experiment=1
    )
    terms = setup.terms(UNASKED_CENTS)
    return Campaign(setup.under(terms), plan, setup.log("c"), terms)


def again(campaign):
    """The campaign as another process finds it: nothing but the archive is kept."""
    return Campaign(replace(campaign.setup), campaign.plan, campaign.setup.log("c"), campaign.terms)


def look(campaign):
    """The stage of each order after one execution by a fresh process."""
    return [one.stage for one in look_at_orders(again(campaign)).orders.values()]


def until(lab, campaign, stage, days=1.0, looks=40):
    """Advance lab time until the first order is at a stage."""
    for _ in range(looks):
        stages = look(campaign)
        if stages[0] is stage:
            return stages
        lab.advance(days=days)
    raise AssertionError(f"never {stage!r}: {stages}")


def calls(lab, method, path):
    """The requests that took effect."""
    return [entry for entry in lab.journal(method=method, path=path) if (entry["status"] or 500) < 300]


def answer(campaign, decision, *, index=0):
    """Answer the open question with exactly what it shows."""
    log = campaign.setup.log("c")
    key, asked = list(log.read().open_questions.items())[index]
    log.answer(
        key,
        asked.revision,
        decision,
        amount_cents=asked.question.amount_cents,
        answerer="Ada",
        how="a test",
        now=asked.asked_at,
        ceiling_cents=10**9,
    )
    return asked.question


def payment_ledger(campaign, index=0):
    return again(campaign).orders[index].ledger.read()


def test_an_order_goes_from_its_price_to_its_results_and_acts_once(lab, tmp_path):
    campaign = a_campaign(lab, tmp_path)
    assert look(campaign) == [Stage.LABORATORY]
    until(lab, campaign, Stage.MEASURED)
    assert look(campaign) == [Stage.MEASURED]
    assert len(calls(lab, "POST", "/experiments")) == 1
    assert len(lab.settlements()) == 1
    assert payment_ledger(campaign).delivered is not None


def test_a_waiting_order_costs_one_list_request_and_no_task(lab, tmp_path, monkeypatch):
    campaign = a_campaign(lab, tmp_path, designs=3)
    look(campaign)
    lab.advance(minutes=5)
    look(campaign)
    for name in TASKS:
        monkeypatch.setattr(advance_module, name, None)
    before = lab.journal()[-1]["number"]
    assert look(campaign) == [Stage.LABORATORY] * 3
    paths = [entry["path"] for entry in lab.journal(after=before)]
    assert paths.count("/api/v1/experiments") == 1
    assert not [path for path in paths if "quote" in path or "invoice" in path]


def test_two_at_once_order_and_pay_once(lab, tmp_path):
    campaign = a_campaign(lab, tmp_path, designs=2)
    with ThreadPoolExecutor(4) as pool:

        def one(_):
            with disable_run_logger():
                return look_at_orders(again(campaign))

        list(pool.map(one, range(4)))
    for _ in range(3):
        look(campaign)
    assert len(lab.settlements()) == 2
    paid = {row["invoice_id"] for row in lab.settlements()}
    assert len(paid) == 2
    for index in range(2):
        assert payment_ledger(campaign, index).settled is not None


@pytest.mark.parametrize(
    "error", [ZeroDivisionError("a fault of ours"), TimeoutError("too slow"), ServiceUnavailable("503")]
)
def test_a_failure_of_one_order_leaves_the_others_advancing(lab, tmp_path, monkeypatch, error):
    campaign = a_campaign(lab, tmp_path, designs=2)
    pay = advance_module.pay_invoice
    refused = campaign.orders[0].key

    def odd(*arguments, ledger, **more):
        if ledger.order_key == refused:
            raise error
        return pay(*arguments, ledger=ledger, **more)

    monkeypatch.setattr(advance_module, "pay_invoice", odd)
    looks = look_at_orders(campaign).orders
    assert str(error) in looks[refused].problem
    assert looks[refused].retriable
    assert looks[campaign.orders[1].key].stage is Stage.LABORATORY


def test_a_failure_before_anything_is_ordered_ends_the_campaign(lab, tmp_path):
    campaign = a_campaign(lab, tmp_path)
    lab.fault("status", "/experiments/cost-estimate", "POST", status=503, count=20)
    with pytest.raises(ServiceUnavailable):
        look_at_orders(campaign)
    assert calls(lab, "POST", "/experiments") == []


def test_an_order_of_unknown_outcome_is_found_and_not_sent_again(lab, tmp_path):
    campaign = a_campaign(lab, tmp_path)
    lab.fault("lose_answer", "/experiments", "POST")
    look(campaign)
    assert look(campaign) == [Stage.LABORATORY]
    assert len(calls(lab, "POST", "/experiments")) == 1


def test_an_order_that_is_not_listed_is_a_question_and_is_sent_again_only_if_a_person_says_so(lab, tmp_path):
    campaign = a_campaign(lab, tmp_path)
    lab.fault("reset", "/experiments", "POST")
    assert look(campaign) == [Stage.ASKS]
    assert look(campaign) == [Stage.ASKS]
    assert calls(lab, "POST", "/experiments") == []
    question = answer(campaign, "approve")
    assert "its answer was lost" in question.subject
    assert look(campaign) == [Stage.LABORATORY]
    assert len(calls(lab, "POST", "/experiments")) == 1


@pytest.mark.parametrize("decision", [None, "reject"])
@pytest.mark.parametrize("is_dearer", [False, True])
def test_an_order_that_is_listed_late_is_found_whatever_is_asked(
    lab, tmp_path, monkeypatch, decision, is_dearer
):
    campaign = a_campaign(lab, tmp_path)
    lab.fault("reset", "/experiments", "POST")
    assert look(campaign) == [Stage.ASKS]
    if is_dearer:
        dear = CostEstimate.model_validate({"breakdown": {"total_cents": 10**8}})
        monkeypatch.setattr(advance_module, "estimate_cost", lambda *_: dear)
        assert look(campaign) == [Stage.ASKS]
    for _ in campaign.setup.log("c").read().open_questions:
        if decision is not None:
            answer(campaign, decision, index=0)
    order = again(campaign).orders[0]
    request = CreateRequest(
        experiment_spec=order.spec,
        name=order.name,
        auto_accept_quote=True,
        payment_method=PaymentMethod.X402_EXACT,
    )
    with campaign.setup.credentials.get_client() as client:
        client.experiments.create(request)
    assert look(campaign) == [Stage.LABORATORY]
    assert len(calls(lab, "POST", "/experiments")) == 1


def test_an_order_of_unknown_outcome_is_searched_for_although_its_new_price_is_rejected(
    lab, tmp_path, monkeypatch
):
    campaign = a_campaign(lab, tmp_path)
    lab.fault("reset", "/experiments", "POST")
    assert look(campaign) == [Stage.ASKS]
    reserved = campaign.setup.ledgers.budget.read().campaign_cents("c")
    dear = CostEstimate.model_validate({"breakdown": {"total_cents": 10**8}})
    monkeypatch.setattr(advance_module, "estimate_cost", lambda *_: dear)
    assert look(campaign) == [Stage.ASKS]
    assert answer(campaign, "reject", index=1).amount_cents == 10**8
    assert look(campaign) == look(campaign) == [Stage.ORDERED]
    assert campaign.setup.ledgers.budget.read().campaign_cents("c") == reserved > 0
    assert not payment_ledger(campaign).withdrawn


def test_an_experiment_that_is_not_shown_after_its_create_is_waited_for_and_the_order_stands(lab, tmp_path):
    campaign = a_campaign(lab, tmp_path)
    hidden = lab.fault("status", "/experiments/*", "GET", status=404, count=1000)
    looks = look_at_orders(again(campaign)).orders.values()
    (one,) = looks
    assert one.stage is Stage.ORDERED
    assert one.retriable
    assert "stands" in one.problem
    hidden.remove()
    assert look(campaign) == [Stage.LABORATORY]
    assert len(calls(lab, "POST", "/experiments")) == 1


def quoted(lab, campaign):
    """Advance until the quote is open; the stages then."""
    look(campaign)
    lab.advance(minutes=5)
    return look(campaign)


def test_a_quote_within_the_caps_is_accepted_and_billed(lab, tmp_path):
    campaign = a_campaign(lab, tmp_path, target=UNPRICED)
    assert look(campaign) == [Stage.QUOTE]
    lab.advance(minutes=5)
    assert look(campaign) == [Stage.LABORATORY]
    assert len(calls(lab, "POST", "/experiments/*/quote/confirm")) == 1


def test_an_open_quote_that_cannot_be_judged_now_is_no_news(lab, tmp_path):
    """The next look comes after a pause that grows, and not at once."""
    campaign = a_campaign(lab, tmp_path, target=UNPRICED)
    look(campaign)
    lab.advance(minutes=5)
    lab.fault("status", "/experiments/cost-estimate", "POST", status=403, count=1)
    failed = look_at_orders(again(campaign))
    assert failed.has_failed
    assert not play_module._has_news(again(campaign), failed)
    assert look(campaign) == [Stage.LABORATORY]


def test_a_quote_that_still_reads_as_open_after_its_confirmation_is_no_news(lab, tmp_path, monkeypatch):
    campaign = a_campaign(lab, tmp_path, target=UNPRICED)
    waiting = look_at_orders(again(campaign))
    lab.advance(minutes=5)
    assert play_module._has_news(again(campaign), waiting), "its quote has come"
    with campaign.setup.credentials.get_client() as client:
        shown = read_billing(client, payment_ledger(campaign).ordered.experiment_id)
    confirm = advance_module.confirm_quote
    monkeypatch.setattr(advance_module, "confirm_quote", lambda *a, **k: confirm(*a, **k) and shown)
    monkeypatch.setattr(play_module, "read_billing", lambda *_: shown)
    confirmed = look_at_orders(again(campaign))
    assert [order.stage for order in confirmed.orders.values()] == [Stage.QUOTE]
    assert not play_module._has_news(again(campaign), confirmed)
    assert len(calls(lab, "POST", "/experiments/*/quote/confirm")) == 1


def test_a_quote_over_the_cap_is_a_question_while_the_other_order_goes_on(lab, tmp_path):
    campaign = a_campaign(lab, tmp_path, target=UNPRICED, designs=2, per_experiment_usd=1)
    assert quoted(lab, campaign) == [Stage.ASKS, Stage.ASKS]
    question = answer(campaign, "approve")
    assert question.amount_cents > 100
    assert sorted(look(campaign)) == sorted([Stage.LABORATORY, Stage.ASKS])
    assert len(calls(lab, "POST", "/experiments/*/quote/confirm")) == 1
    paid = [payment_ledger(campaign, index) for index in range(2) if payment_ledger(campaign, index).settled]
    assert [one.approved.approver for one in paid] == ["Ada"]
    assert paid[0].approved.by_person


def test_an_order_over_the_campaigns_cap_asks_while_the_placed_one_goes_on(lab, tmp_path):
    campaign = a_campaign(lab, tmp_path, designs=2)
    campaign.setup = replace(campaign.setup, unasked_cents=PRICE_CENTS)
    assert look(campaign) == [Stage.LABORATORY, Stage.ASKS]
    assert answer(campaign, "reject").amount_cents == 2 * PRICE_CENTS
    assert look(campaign) == [Stage.LABORATORY, Stage.REFUSED]
    assert until(lab, campaign, Stage.MEASURED) == [Stage.MEASURED, Stage.REFUSED]


def test_a_quote_that_would_pass_the_campaigns_cap_is_rejected_as_the_person_decides(lab, tmp_path):
    campaign = a_campaign(lab, tmp_path, target=UNPRICED)
    campaign.setup = replace(campaign.setup, unasked_cents=1)
    assert quoted(lab, campaign) == [Stage.ASKS]
    answer(campaign, "reject")
    assert look(campaign) == [Stage.NO_QUOTE]
    assert len(calls(lab, "POST", "/quotes/*/reject")) == 1
    assert campaign.setup.ledgers.budget.read().campaign_cents("c") == 0


@pytest.mark.parametrize("decision", [None, "reject"])
def test_results_do_not_wait_for_the_answer_about_a_sum_of_payments(lab, tmp_path, decision):
    campaign = a_campaign(lab, tmp_path, rolling_usd=1)
    assert look(campaign) == [Stage.ASKS]
    if decision is not None:
        answer(campaign, decision)
    with campaign.setup.credentials.get_client() as client:
        [row] = client.experiments.iterate()
    lab.event("force_status", row.id, status="in_production")
    lab.event("partial_results", row.id)
    assert look(campaign) == [Stage.PARTLY_MEASURED]
    assert lab.settlements() == []


def test_a_quote_that_is_left_to_a_person_is_asked_about_once(lab, tmp_path):
    campaign = a_campaign(lab, tmp_path, target=UNPRICED, accept_quotes=False)
    assert quoted(lab, campaign) == [Stage.ASKS]
    answer(campaign, "approve")
    assert look(campaign) == [Stage.LABORATORY]
    assert len(calls(lab, "POST", "/experiments/*/quote/confirm")) == 1


def test_the_person_who_named_the_amount_before_can_also_answer_the_question(lab, tmp_path):
    campaign = a_campaign(lab, tmp_path, target=UNPRICED, accept_quotes=False)
    assert quoted(lab, campaign) == [Stage.ASKS]
    [asked] = campaign.setup.log("c").read().open_questions.values()
    before = Approved(amount_cents=asked.question.amount_cents, approver="Ada")
    again(campaign).orders[0].ledger.record(lambda _: before)
    assert look(campaign) == [Stage.ASKS]
    answer(campaign, "approve")
    assert look(campaign) == [Stage.LABORATORY]
    assert payment_ledger(campaign).approved.by_person


def test_a_quote_far_below_the_estimate_is_a_question_whenever_it_comes(lab, tmp_path, monkeypatch):
    campaign = a_campaign(lab, tmp_path)
    campaign.setup = replace(campaign.setup, options=make_options(poll_seconds=1.0, request_quote=True))
    assert look(campaign) == [Stage.QUOTE]
    dear = CostEstimate.model_validate({"breakdown": {"total_cents": 10**6}})
    monkeypatch.setattr(advance_module, "estimate_cost", lambda *_: dear)
    lab.advance(minutes=5)
    assert look(campaign) == [Stage.ASKS]
    answer(campaign, "approve")
    assert look(campaign) == [Stage.LABORATORY]


def test_a_rejected_quote_ends_its_order_at_the_laboratory_too(lab, tmp_path):
    campaign = a_campaign(lab, tmp_path, target=UNPRICED, accept_quotes=False)
    assert quoted(lab, campaign) == [Stage.ASKS]
    answer(campaign, "reject")
    assert look(campaign) == [Stage.NO_QUOTE]
    assert len(calls(lab, "POST", "/quotes/*/reject")) == 1
    assert calls(lab, "POST", "/experiments/*/quote/confirm") == []
    assert payment_ledger(campaign).withdrawn


def test_a_question_is_asked_once_and_closed_when_it_is_no_longer_true(lab, tmp_path):
    campaign = a_campaign(lab, tmp_path, target=UNPRICED, accept_quotes=False)
    quoted(lab, campaign)
    look(campaign)
    log = campaign.setup.log("c")
    (asked,) = log.read().open_questions.values()
    assert asked.revision == 1
    lab.advance(days=60)  # the quote has expired
    assert look(campaign) == [Stage.NO_QUOTE]
    assert log.read().open_questions == {}


def test_a_confirmation_is_sent_once_and_then_waited_for(lab, tmp_path):
    campaign = a_campaign(lab, tmp_path, target=UNPRICED)
    look(campaign)
    lab.advance(minutes=5)
    lab.fault("error_after", "/experiments/*/quote/confirm", "POST", status=202)
    for _ in range(3):
        look(campaign)
    assert len(lab.journal(method="POST", path="/experiments/*/quote/confirm")) == 1
    assert look(campaign) == [Stage.LABORATORY]


def test_a_hosted_invoice_waits_for_a_person_with_one_plain_reading_per_look(lab, tmp_path, monkeypatch):
    campaign = a_campaign(lab, tmp_path, method=PaymentMethod.ASYNC_INVOICE)
    assert look(campaign) == [Stage.PAYMENT]
    monkeypatch.setattr(advance_module, "poll_quote", None)
    assert look(campaign) == [Stage.PAYMENT]
    hidden = lab.fault("status", "/experiments/*/invoice", "GET", status=404, count=9)
    unpaid = look_at_orders(again(campaign))
    assert not unpaid.has_failed
    assert not play_module._has_news(again(campaign), unpaid), "an invoice that is not shown is not paid"
    hidden.remove()
    (experiment,) = [payment_ledger(campaign).ordered.experiment_id]
    lab.event("pay_invoice", experiment)
    assert look(campaign) in ([Stage.PAYMENT], [Stage.LABORATORY])
    assert payment_ledger(campaign).settled is not None


def test_a_payment_without_an_answer_is_a_question_and_is_not_sent_again_unasked(lab, tmp_path):
    campaign = a_campaign(lab, tmp_path)
    lab.fault("reset", "/invoices/*/pay", "POST", count=1, after=1)
    assert look(campaign) == [Stage.ASKS]
    for _ in range(2):
        assert look(campaign) == [Stage.ASKS]
    assert lab.settlements() == []
    (asked,) = campaign.setup.log("c").read().open_questions.values()
    assert asked.revision == 1
    answer(campaign, "pay_again")
    assert look(campaign) == [Stage.LABORATORY]
    assert len(lab.settlements()) == 1


def test_an_answer_to_pay_again_cannot_pay_an_invoice_that_is_void_by_then(lab, tmp_path):
    campaign = a_campaign(lab, tmp_path)
    lab.fault("reset", "/invoices/*/pay", "POST", count=1, after=1)
    assert look(campaign) == [Stage.ASKS]
    answer(campaign, "pay_again")
    lab.event("void_invoice", payment_ledger(campaign).ordered.experiment_id)
    look(campaign)
    (asked,) = campaign.setup.log("c").read().open_questions.values()
    assert "pay_again" not in asked.question.decisions
    assert lab.settlements() == []


def test_a_refused_payment_says_why_and_where_a_person_can_pay(lab, tmp_path):
    lab.payment_fault("wrong_payee", rail="x402-exact")
    campaign = a_campaign(lab, tmp_path)
    (one,) = look_at_orders(campaign).orders.values()
    assert one.stage is Stage.PAYMENT
    assert "is not in pay_to of the X402Wallet block" in one.problem
    assert "/portal/invoices/" in one.problem


def test_an_answer_about_a_payment_counts_once(lab, tmp_path):
    campaign = a_campaign(lab, tmp_path)
    lab.fault(
        "reset", "/invoices/*/pay", "POST", count=1, after=1
    )  # a credential follows a request without one
    assert look(campaign) == [Stage.ASKS]
    answer(campaign, "pay_again")
    lab.fault("reset", "/invoices/*/pay", "POST", count=1, after=1)
    asked = again(campaign)
    one = look_at_orders(asked)
    assert [order.stage for order in one.orders.values()] == [Stage.ASKS]
    assert not play_module._has_news(asked, one), "what was asked anew wakes nobody"
    sent = len(lab.journal(method="POST", path="/invoices/*/pay"))
    assert look(campaign) == [Stage.ASKS]
    assert len(lab.journal(method="POST", path="/invoices/*/pay")) == sent
    assert lab.settlements() == []


def test_the_invoice_decides_whatever_a_person_answers(lab, tmp_path):
    campaign = a_campaign(lab, tmp_path)
    lab.fault("reset", "/invoices/*/pay", "POST", count=1, after=1)
    look(campaign)
    first = answer(campaign, "paid")
    assert look(campaign) == [Stage.ASKS]
    (asked,) = campaign.setup.log("c").read().open_questions.values()
    assert asked.revision == 2
    assert "You have answered that it was paid" in asked.question.reason
    assert asked.question.digest != first.digest


def test_a_stopped_order_acts_no_more(lab, tmp_path):
    campaign = a_campaign(lab, tmp_path, target=UNPRICED)
    look(campaign)
    again(campaign).orders[0].ledger.stop("Ada", "a test")
    lab.advance(minutes=5)
    assert look(campaign) == [Stage.STOPPED]
    assert Stage.STOPPED in OVER
    assert calls(lab, "POST", "/experiments/*/quote/confirm") == []


def test_an_overdue_order_is_read_on(lab, tmp_path):
    campaign = a_campaign(lab, tmp_path)
    waiting = campaign.setup.options.waiting.model_copy(update={"deadline_days": 0})
    options = campaign.setup.options.model_copy(update={"waiting": waiting})
    campaign = replace(campaign, setup=replace(campaign.setup, options=options))
    look(campaign)
    assert look(campaign) == [Stage.OVERDUE]
    assert Stage.OVERDUE not in OVER
    until(lab, campaign, Stage.MEASURED)


def test_what_is_bought_does_not_name_the_run(lab, tmp_path):
    order = a_campaign(lab, tmp_path).orders[0]
    assert isinstance(order, PlannedOrder)
    lines = order.bought()
    assert lines["campaign"] == "`c`"
    assert lines["paid"] == "by machine (x402-exact)"
    assert "affinity by BLI" in lines["assay"]


def test_a_polling_run_ends_where_only_a_person_can_help(lab, tmp_path):
    campaign = a_campaign(lab, tmp_path)
    look(campaign)
    error = PaymentsDisabled("no wallet for the rail that the service has named")
    held = OrderLook(Stage.PAYMENT, "no wallet", retriable=True, error=error)
    busy = OrderLook(Stage.PAYMENT, "503", retriable=True)
    with pytest.raises(PaymentsDisabled):
        play_module._refuse_endless_polling(campaign, CampaignLook({"a": held}, {}, frozenset()))
    play_module._refuse_endless_polling(campaign, CampaignLook({"a": held, "b": busy}, {}, frozenset()))
