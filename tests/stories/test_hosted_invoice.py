"""Two persons: one asks for a campaign above a cap, another approves its price in Prefect's form, and the invoices are paid by hand.

The run that asks is deleted while it waits, and the sweep has another one ask. Only an approval orders anything.
"""

import pytest

from support.stories.judge import judge

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

CAPS = {"per_campaign_usd": 1, "second_person_above_usd": 1}


def test_a_price_is_approved_and_its_invoices_are_paid_by_persons(world):
    with world.story("hosted", rail="async_invoice", policy=CAPS) as campaign:
        run = campaign.start_and_wait()
        assert campaign.asks(run)
        assert campaign.sweep()
        world.api.delete_flow_run(run.id)
        campaign.sweep()
        (run,) = campaign.runs("Suspended")
        assert campaign.asks(run)
        assert campaign.orders() == []

        # The account is Ada's, and she asks. So her own approval is refused, and the form is shown again.
        assert campaign.answer_form(run, decision="approve", decided_by="ada") == "ACCEPT"
        world.until(lambda: campaign.first_question().revision > 1, "a second form")
        campaign.rest()
        assert campaign.orders() == []
        assert campaign.answer_form(run, decision="approve", decided_by="Grace") == "ACCEPT"
        campaign.rest()
        assert len(campaign.orders()) == campaign.experiments
        for ledger in campaign.ledgers():
            approved = ledger.read().approved
            assert (approved.approver, approved.requester, approved.by_person) == ("Grace", "Ada", True)

        campaign.pass_days(1)  # the invoices are finalized; nobody but a person pays them
        assert campaign.settlements() == []
        campaign.pay_invoices()
        campaign.finish()

        shown = campaign.state.offered
        world.until_over(campaign.start())  # there is nothing more to order, and so no question
        assert campaign.state.offered == shown
        assert campaign.state.open_questions == {}
        assert judge(campaign) == []


def test_a_price_is_rejected(world):
    with world.story("rejected", rail="async_invoice", policy={"per_campaign_usd": 1}) as campaign:
        run = campaign.start_and_wait()
        assert campaign.answer_form(run, decision="reject") == "ACCEPT"
        world.until_over(run)
        campaign.sweep()
        assert [one.id for one in campaign.runs()] == [run.id], "the sweep starts nothing"
        assert campaign.orders() == []
        assert judge(campaign, measured=0) == []
