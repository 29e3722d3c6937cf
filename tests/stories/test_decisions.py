"""What people decide about a campaign, and the ways through: prices, quotes, cancellations, rails, loops.

See `test_stories.py` for how they are told and judged.
"""

from typing import Any

import pytest
from prefect.states import Failed

from support.runs.world import UNPRICED
from support.stories.told import Stories
from support.stories.world import AFFINITY, DESIGNS, Story

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]

CREATE = "lab POST /api/v1/experiments$"

STORIES = Stories()
story = STORIES.of


# Questions


@story(rail="async_invoice", policy={"per_campaign_cents": 100})
def the_price_is_approved_in_prefects_form(campaign: Story) -> None:
    """Over the campaign's cap the run asks in its own form, also after it was deleted while it asked."""
    run = campaign.start_and_wait()
    assert campaign.asks(run)
    assert campaign.sweep()
    assert campaign.orders() == []
    campaign.world.api.delete_flow_run(run.id)
    campaign.sweep()
    (again,) = campaign.runs("Suspended")
    assert campaign.asks(again)
    assert campaign.orders() == []
    assert campaign.answer_form(again, decision="approve") == "ACCEPT"
    campaign.rest()
    campaign.pass_days(1)  # the invoices are finalized
    campaign.pay_invoices()
    campaign.finish()


@story(policy={"per_campaign_cents": 100})
def the_price_is_rejected_in_prefects_form(campaign: Story) -> int:
    """Nothing is ordered, and the sweep starts nothing."""
    run = campaign.start_and_wait()
    assert campaign.answer_form(run, decision="reject") == "ACCEPT"
    campaign.world.until_over(run)
    campaign.sweep()
    assert len(campaign.runs()) == 1
    assert campaign.orders() == []
    return 0


PRICE_USD = 438.0  # of both designs


@story(options={"spend_up_to_usd": None})
def an_empty_amount_asks_with_the_price(campaign: Story) -> None:
    """The ledger names who asked, who approved and how; the finished campaign is run again without a question."""
    run = campaign.start_and_wait()
    assert campaign.asks(run)
    assert campaign.orders() == []
    (asked,) = campaign.state.open_questions.values()
    assert asked.question.amount_cents == PRICE_USD * 100
    assert campaign.answer_form(run, decision="approve", decided_by="Grace") == "ACCEPT"
    campaign.rest()
    campaign.finish()
    for book in campaign.books():
        approved = book.read().approved
        assert (approved.approver, approved.requester, approved.by_person) == ("Grace", "Ada", True)
    shown = campaign.state.offered
    again = campaign.start()
    campaign.world.until_over(again)
    assert campaign.state.offered == shown, "nothing more to order"
    assert campaign.state.open_questions == {}


@story(options={"spend_up_to_usd": PRICE_USD})
def the_exact_price_orders_and_one_cent_less_asks(campaign: Story) -> None:
    """An amount is the approval to the cent; a start with another amount is another approval."""
    run = campaign.start_and_wait(spend_up_to_usd=PRICE_USD - 0.01)
    assert campaign.asks(run)
    assert campaign.orders() == []
    assert campaign.answer_form(run, decision="reject") == "ACCEPT"
    campaign.world.until_over(run)
    assert not campaign.asks(campaign.start_and_wait())
    assert len(campaign.orders()) == len(DESIGNS)
    campaign.finish()


@story(policy={"second_person_above_cents": 100})
def another_person_than_the_one_who_asks_approves(campaign: Story) -> None:
    """The amount that was given is not enough, and the form refuses the name of whoever asks for it."""
    run = campaign.start_and_wait()
    assert campaign.asks(run)
    assert campaign.answer_form(run, decision="approve", decided_by="ada") == "ACCEPT"
    campaign.world.until(
        lambda: any(one.revision == 2 for one in campaign.state.open_questions.values()), "a second form"
    )
    campaign.rest()
    assert campaign.asks(run)
    assert campaign.orders() == []
    assert campaign.answer_form(run, decision="approve", decided_by="Grace") == "ACCEPT"
    campaign.rest()
    campaign.finish()


QUOTED = {
    "designs": {"one": DESIGNS["one"], "two": DESIGNS["two"], "three": DESIGNS["one"][:-1] + "W"},
    "options": {"assay": {"experiment_type": "thermostability"}, "designs_per_experiment": 2},
    "policy": {"per_experiment_cents": 12_000},
}


def wait_for_question(campaign: Story) -> Any:
    """The quote of two designs is over the cap; that of one is accepted meanwhile."""
    campaign.start_and_wait()
    campaign.pass_days(2)
    campaign.world.until(lambda: campaign.state.open_questions, "a question about the quote")
    campaign.world.until(campaign.settlements, "the payment of the other experiment")
    campaign.rest()
    (asked,) = campaign.state.open_questions.values()
    assert len(campaign.settlements()) == 1
    return asked


@story(**QUOTED)
def a_quote_over_the_cap_is_approved_by_command(campaign: Story) -> None:
    """It becomes a question while the other experiment goes on; another amount than the one shown is refused."""
    wait_for_question(campaign)
    campaign.answer("approve", cents_more=100, fails=True)
    assert campaign.state.open_questions
    campaign.answer("approve")
    campaign.finish()


@story(**QUOTED)
def a_quote_over_the_cap_is_approved_by_decide(campaign: Story) -> None:
    """The same, in the form of the deployment `decide`."""
    asked = wait_for_question(campaign)
    campaign.decide(
        "approve",
        question_id=asked.question_id,
        revision=asked.revision,
        amount_cents=asked.question.amount_cents,
    )
    campaign.rest()
    campaign.finish()


@story(**QUOTED)
def a_quote_over_the_cap_is_rejected(campaign: Story) -> int:
    """Its experiment is not ordered; the other one is measured and archived."""
    wait_for_question(campaign)
    campaign.answer("reject")
    campaign.finish()
    return 1


# Canceled

BY_QUOTE = {"options": {"assay": {"experiment_type": "thermostability"}}, "policy": {"accept_quotes": False}}


def expect_stopped(campaign: Story) -> int:
    """Nothing is accepted or paid any more, whatever wakes it; open quotes are rejected."""
    campaign.pass_days(3)
    campaign.sweep()
    campaign.sweep()
    state = campaign.state
    assert state.stopped is not None
    assert campaign.runs("Suspended") == []
    assert all(book.read().stopped for book in campaign.books())
    assert {order["status"] for order in campaign.orders()} <= {"draft", "canceled"}
    assert campaign.settlements() == []
    return 0


@story(**BY_QUOTE)
def canceled_by_command_while_it_waits(campaign: Story) -> int:
    """Quotes that come later are rejected as well."""
    campaign.start_and_wait()
    campaign.world.command("cancel", campaign.name, "--yes")
    return expect_stopped(campaign)


@story(**BY_QUOTE)
def canceled_on_its_runs_page_while_it_waits(campaign: Story) -> int:
    """The automation on Cancelled starts `decide`; where it does not, the sweep sees it."""
    run = campaign.start_and_wait()
    campaign.pass_days(2)
    campaign.cancel(run)
    campaign.world.until(lambda: campaign.state.stopped, "the cancellation in the campaign's log")
    return expect_stopped(campaign)


@story(**BY_QUOTE)
def canceled_by_decide_while_it_waits(campaign: Story) -> int:
    """The form of `decide` cancels, too."""
    campaign.start_and_wait()
    campaign.decide("cancel the campaign")
    return expect_stopped(campaign)


def cancel_while_held(campaign: Story, point: str) -> None:
    """Cancel by command while the run waits at a point, and let it go on at once."""
    with campaign.held_at(point) as reached:
        campaign.start()
        reached()
        campaign.world.command("cancel", campaign.name, "--yes")
    campaign.rest()
    assert campaign.orders() == []


@story()
def canceled_before_its_run_has_begun_a_log(campaign: Story) -> int:
    """The archive knows nothing of it yet: its run sees that it is canceled before it orders."""
    cancel_while_held(campaign, "before archive os.link .*BOOKS")
    if campaign.state.started is not None:  # else its process was ended before it had begun anything
        return expect_stopped(campaign)
    campaign.sweep()
    assert campaign.orders() == []
    return 0


@story()
def canceled_while_a_run_is_about_to_order(campaign: Story) -> int:
    """The ledgers are stopped, and a create cannot follow there, whichever run is alive."""
    cancel_while_held(campaign, "before lab POST .*estimate")
    return expect_stopped(campaign)


@story(**BY_QUOTE)
def canceled_after_its_run_has_failed(campaign: Story) -> int:
    """Prefect refuses Cancel for a failed run; the command does not need a run."""
    run = campaign.start_and_wait()
    campaign.world.api.set_flow_run_state(run.id, Failed(message="by hand"), force=True)
    campaign.world.command("cancel", campaign.name, "--yes")
    campaign.sweep()
    assert len(campaign.runs()) == 1
    return expect_stopped(campaign)


# Loops


@story(rounds=2)
def loop_killed_in_a_round(campaign: Story) -> None:
    """The sweep starts the loop again, not the round's campaign: one run plays both rounds."""
    campaign.kill_at(f"after {CREATE}")
    campaign.in_state(campaign.start(), "Crashed")
    campaign.sweep()
    assert len(campaign.runs()) == 2
    campaign.finish(days=40, sweeps=True)


@story(rounds=2, storage="s3")
def loop_killed_between_rounds(campaign: Story) -> None:
    """The first round is measured, and the process dies before the second one has a price."""
    run = campaign.start_and_wait()
    campaign.kill_at("before lab POST .*estimate")
    campaign.pass_days(21)
    campaign.in_state(run, "Crashed")
    campaign.sweep()
    campaign.finish(days=40, sweeps=True)


@story(rounds=2)
def loop_whose_run_is_deleted(campaign: Story) -> None:
    """In the middle of a round."""
    campaign.world.api.delete_flow_run(campaign.start_and_wait().id)
    campaign.sweep()
    assert len(campaign.runs("Suspended")) == 1
    campaign.finish(days=40)


# Other ways through


@story(webhooks=False)
def no_webhook_ever_comes(campaign: Story) -> None:
    """The sweep alone wakes it."""
    run = campaign.start_and_wait()
    assert campaign.finish().id == run.id


@story(rail="async_invoice")
def a_person_pays_the_hosted_invoices(campaign: Story) -> None:
    """They are shown, and nothing else pays them."""
    campaign.start_and_wait()
    campaign.pass_days(1)
    assert campaign.settlements() == []
    campaign.pay_invoices()
    campaign.finish()


@story(rail="mpp-spt", options={"assay": {**AFFINITY, "target": UNPRICED}})
def quotes_are_accepted_and_paid_by_shared_tokens(campaign: Story) -> None:
    """A target without a price: the quotes come after a day, within the caps."""
    campaign.start_and_wait()
    assert campaign.settlements() == []
    campaign.finish()


@pytest.mark.parametrize("name", STORIES)
def test_story(world, name):
    STORIES.play(world, name)
