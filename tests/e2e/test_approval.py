"""Runs that ask a person, executed step by step against a real server and lab. The lab's books are the judge."""

from datetime import UTC, datetime, timedelta

import pytest

from prefect_assay.approvals.questions import answer_expired
from prefect_assay.blocks import SpendingPolicy
from prefect_assay.client import AssayClient
from prefect_assay.lab.kernel.settings import X402Settings
from prefect_assay.ordering import find_or_create
from support.runs.world import UNPRICED

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(240)]

PAY = {"method": "POST", "path": "/api/v1/invoices/*/pay"}


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
    for figure in ("1.00 USD", "x402-exact"):
        assert figure in words
    now = datetime.now(UTC)
    assert answer_expired(world.api, [world.run(run)], now) == []
    assert answer_expired(world.api, [world.run(run)], now + timedelta(hours=1, minutes=1)) == [run.id]
    ended = held.execute(run)
    assert (ended.name, ended.type.value) == ("ApprovalExpired", "FAILED")
    assert "nothing was ordered" in ended.message
    assert world.creates() == before


def test_a_quote_is_shown_and_its_cap_can_be_changed(world, held):
    run = held.experiment("shown", target=UNPRICED, policy=policy("shown", per_experiment_cents=100))
    assert held.execute(run).name == "Suspended"
    assert not held.state(run).state_details.run_input_keyset
    world.advance(days=2)
    held.wake(run)
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
    for shown in ("may or may not have been made", "- invoice status: open", "by x402-exact, unknown"):
        assert shown in words
    assert X402Settings().pay_to.lower() in words.lower()

    held.answer(run, decision="paid")
    assert "The invoice does not show it." in held.form(run)[0]
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


def test_an_approval_records_who_gave_it(world, held):
    run = held.experiment("who", policy=policy("who", per_experiment_cents=100))
    held.execute(run)
    assert "decided_by" in held.form(run)[1]["properties"]
    assert held.answer(run, decision="approve", decided_by="Ada") == "ACCEPT"
    approved = world.log("who").read().approved
    assert approved.amount_cents == 21_900
    assert approved.approver == f"Ada, in flow run {run.id}"
    assert len(world.settlements("who")) == 1


@pytest.mark.parametrize("cap", ["per_experiment_cents", "per_campaign_cents"])
def test_a_run_cannot_raise_the_caps_of_its_policy(world, held, cap):
    limit = "limit_cents" if cap == "per_experiment_cents" else "campaign_limit_cents"
    name = f"raises-{limit}".replace("_", "-")
    before = world.creates()
    run = held.experiment(name, policy=policy(name, **{cap: 100}), **{limit: 5_000_000})
    assert held.execute(run).name == "Suspended"
    words, _ = held.form(run)
    assert "1.00 USD" in words
    assert world.creates() == before


def test_an_invoice_above_the_approved_price_asks_a_person_even_below_the_cap(world, held, monkeypatch):
    """The estimate says half of what the laboratory bills."""
    told = AssayClient.estimate

    def half(client, spec):
        real = told(client, spec)
        return real.model_copy(
            update={
                "breakdown": real.breakdown.model_copy(
                    update={"total_cents": real.breakdown.total_cents // 2}
                )
            }
        )

    monkeypatch.setattr(AssayClient, "estimate", half)
    run = held.experiment("dearer", policy=policy("dearer"))
    assert held.execute(run).name == "Suspended"
    words, _ = held.form(run)
    assert "Invoice of dearer" in words
    assert "219.00 USD" in words
    assert "109.50 USD" in words
    assert world.settlements("dearer") == []
    assert held.answer(run, decision="approve") == "ACCEPT"
    assert len(world.settlements("dearer")) == 1


def test_a_lost_hosted_order_asks_before_it_is_sent_again(world, held, monkeypatch):
    monkeypatch.setitem(find_or_create.__kwdefaults__, "patience", (0.0,))
    before = world.creates()
    world.fault("reset", method="POST", path="/api/v1/experiments")
    run = held.experiment(
        "lost-hosted", payment_method="async_invoice", wallet=None, policy=policy("lost-hosted")
    )
    assert held.execute(run).name == "Suspended"
    words, _ = held.form(run)
    assert "again" in words
    assert "earlier order" in words
    assert world.orders("lost-hosted") == []
    assert held.answer(run, decision="approve") == "ACCEPT"
    assert len(world.orders("lost-hosted")) == 1
    assert world.creates() == before + 2
    assert world.log("lost-hosted").read().attempts == 2
