"""Runs that ask a person, executed step by step against a real server and lab. The lab's books are the judge."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from datetime import UTC, datetime, timedelta

import pytest

from prefect_assay.blocks import SpendingPolicy
from prefect_assay.errors import BudgetExceeded
from prefect_assay.flows.questions import answer_overdue
from prefect_assay.lab.x402 import X402Settings
from prefect_assay.payments import RollingCap
from prefect_assay.tasks.intent import CampaignIntents
from prefect_assay.tasks.ledger import PrefectLedger
from support.held import Held, hurry
from support.races import SINCE, claims
from support.world import UNPRICED

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(240)]

PAY = {"method": "POST", "path": "/api/v1/invoices/*/pay"}


@pytest.fixture
def held(world, monkeypatch):
    hurry(monkeypatch)
    return Held(world)


def policy(name, **changes):
    values = {
        "per_experiment_cents": 2_000_000,
        "per_campaign_cents": 5_000_000,
        "machine_payments": True,
        "rolling_cents": 50_000_000,
    }
    block = SpendingPolicy(**values | changes)
    block.save(f"held-{name}", overwrite=True)
    return block


def test_over_the_cap_and_without_an_answer_in_time(world, held):
    before = world.creates()
    run = held.experiment("expires", policy=policy("expires", per_experiment_cents=100, approval_hours=1))
    assert held.execute(run).name == "Suspended"
    words, _ = held.form(run)
    for figure in ("1.00 USD", "50,000.00 USD", "500,000.00 USD", "x402-exact"):
        assert figure in words
    now = datetime.now(UTC)
    assert answer_overdue(world.api, [world.run(run)], now) == []
    assert answer_overdue(world.api, [world.run(run)], now + timedelta(hours=1, minutes=1)) == [str(run.id)]
    ended = held.execute(run)
    assert (ended.name, ended.type.value) == ("ApprovalExpired", "FAILED")
    assert "nothing was ordered" in ended.message
    assert world.creates() == before


def test_a_quote_is_shown_and_its_cap_can_be_changed(world, held):
    run = held.experiment("shown", target=UNPRICED, policy=policy("shown", per_experiment_cents=100))
    assert held.execute(run).name == "Suspended"
    assert not held.state(run).state_details.run_input_keyset
    world.advance(days=2)
    world.api.resume_flow_run(run.id)
    held.execute(run)
    words, schema = held.form(run)
    assert "Quote for shown" in words
    assert schema["properties"]["decision"]["enum"] == ["approve", "reject", "change_cap"]
    assert held.answer(run, decision="change_cap", cap_cents=50_000_000) == "ACCEPT"
    assert not held.state(run).state_details.run_input_keyset  # it waits for the laboratory
    assert len(world.settlements("shown")) == 1


def test_over_the_rolling_cap_a_person_is_asked_about_the_sum(world, held):
    run = held.experiment("rolling", policy=policy("rolling", rolling_cents=1))
    held.execute(run)
    words, _ = held.form(run)
    assert "All machine payments of the last 30 days, with the invoice of rolling" in words
    assert world.settlements("rolling") == []
    held.answer(run, decision="approve")
    assert held.state(run).name == "Suspended"
    assert len(world.settlements("rolling")) == 1


def test_an_unknown_payment_is_a_persons_to_decide_and_is_made_once(world, held):
    world.fault(
        "reset", after=1, **PAY
    )  # the first call asks for the terms, the second one carries the payment
    run = held.experiment("doubt", policy=policy("doubt"))
    held.execute(run)
    words, schema = held.form(run)
    assert schema["properties"]["decision"]["enum"] == ["paid", "pay_again", "stop"]
    for shown in ("may or may not have been made", "| invoice status | open |", "by x402-exact, unknown"):
        assert shown in words
    assert X402Settings().pay_to.lower() in words.lower()

    held.answer(run, decision="paid")
    assert "The invoice does not say so." in held.form(run)[0]
    assert world.settlements("doubt") == []
    held.answer(run, decision="pay_again")
    assert held.state(run).name == "Suspended"
    assert not held.state(run).state_details.run_input_keyset
    assert len(world.settlements("doubt")) == 1


def test_separate_runs_of_one_campaign_share_its_cap_also_when_a_person_pays(world, held):
    tight = policy("separate", per_campaign_cents=50_000)  # an experiment costs 219.00 USD
    runs = [
        held.experiment("separate", batch_index=n, policy=tight, payment_method="async_invoice", wallet=None)
        for n in range(3)
    ]
    for run in runs:
        assert held.execute(run).name == "Suspended"
    assert [bool(held.state(run).state_details.run_input_keyset) for run in runs] == [False, False, True]
    words, _ = held.form(runs[2])
    assert "All orders of campaign separate, with" in words
    assert "costs **657.00 USD**" in words
    assert len(world.orders("separate")) == 2
    held.answer(runs[2], decision="approve")
    assert not held.state(runs[2]).state_details.run_input_keyset
    assert len(world.orders("separate")) == 3


def test_ten_orders_at_once_on_the_server_fill_a_campaigns_cap_and_never_pass_it(world):
    barrier = threading.Barrier(10)

    def order(number):
        barrier.wait(60)
        try:
            CampaignIntents("https://a.example", "racing").sending(f"{number:020x}", 1_000, 3_500)
        except BudgetExceeded:
            return 0
        return 1_000

    with ThreadPoolExecutor(10) as pool:
        futures = [pool.submit(copy_context().run, order, number) for number in range(10)]
    assert sum(future.result() for future in futures) == 3_000
    with pytest.raises(BudgetExceeded):
        CampaignIntents("https://a.example", "racing").commit("f" * 20, 501, 3_500)
    CampaignIntents("https://a.example", "racing").commit("f" * 20, 500, 3_500)


def test_ten_at_once_on_the_servers_ledger_fill_a_cap_and_never_pass_it(world):
    ledger, most = PrefectLedger(), 3_500
    spent = ledger.spent_cents(SINCE)
    for name, rolling, campaign in (("campaign", 10**12, most), ("rolling", spent + 2 * most, None)):
        limits = RollingCap(max_cents=rolling, since=SINCE, campaign_cents=campaign)
        assert sum(claims(ledger, limits, [(1_000, name)] * (10 if campaign else 5), f"{name}-")) == 3_000
        assert claims(ledger, limits, [(501, name)], f"{name}-over") == [0]
        assert claims(ledger, limits, [(500, name)], f"{name}-fits") == [500]
    assert ledger.spent_cents(SINCE) == spent + 2 * most
