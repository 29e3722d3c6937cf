"""A campaign is canceled: nothing is ordered, accepted or paid any more, whatever wakes it, and open quotes are rejected.

It is canceled by command before its quotes have come, with Prefect's Cancel after that, and while a run is about to order.
"""

import pytest

from support.stories.judge import judge

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

BY_QUOTE = {"options": {"assay": {"experiment_type": "thermostability"}}, "policy": {"accept_quotes": False}}


def assert_stopped(campaign):
    """It stays canceled while quotes come, runs are woken and sweeps look at it."""
    campaign.pass_days(3)
    for _ in range(2):
        campaign.sweep()
    assert campaign.state.stopped is not None
    assert campaign.runs("Suspended") == []
    assert all(ledger.read().stopped for ledger in campaign.ledgers())
    assert {order["status"] for order in campaign.orders()} <= {"draft", "canceled"}
    assert judge(campaign, measured=0) == []


def test_canceled_by_command_before_its_quotes_come(world):
    with world.story("canceled-early", **BY_QUOTE) as campaign:
        campaign.start_and_wait()
        world.command("cancel", campaign.name, "--yes")
        assert_stopped(campaign)
        assert len(campaign.orders()) == campaign.experiments


def test_canceled_on_the_page_of_its_run(world):
    """The automation on Cancelled starts `decide`, which stops the campaign."""
    with world.story("canceled-run", **BY_QUOTE) as campaign:
        run = campaign.start_and_wait()
        campaign.pass_days(2)
        assert len(campaign.state.open_questions) == campaign.experiments
        campaign.cancel(run)
        world.until(lambda: campaign.state.stopped, "the cancellation in the campaign's log")
        assert_stopped(campaign)


def test_canceled_while_a_run_is_about_to_order(world):
    """The run is held before it asks for a price, and goes on when the campaign has been canceled."""
    with world.story("canceled-held") as campaign:
        with campaign.held_at("before lab POST .*estimate") as reached:
            campaign.start()
            reached()
            world.command("cancel", campaign.name, "--yes")
        campaign.rest()
        assert campaign.orders() == []
        assert_stopped(campaign)
