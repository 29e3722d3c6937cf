"""A loop of two rounds over a folder of design files goes on by itself, whatever becomes of its runs.

Its first run is killed while the first round is ordered, the second is deleted, and the third dies before the second round has a
price. In between the signing key is replaced: orders of either key wake the run.
"""

import pytest

from support.stories.judge import judge

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


def test_a_loop_is_killed_in_a_round_and_between_rounds(world):
    with world.story("loop", rounds=2) as campaign:
        campaign.kill_at("after lab POST /api/v1/experiments#")
        campaign.in_state(campaign.start(), "Crashed")
        campaign.sweep()
        assert len(campaign.runs()) == 2, "one run plays the loop and the campaign of its round"
        assert len(campaign.orders()) == 1

        (run,) = campaign.runs("Suspended")
        world.api.delete_flow_run(run.id)
        campaign.sweep(later_minutes=6)
        (run,) = campaign.runs("Suspended")

        world.stack.replace_signing_key()
        campaign.save_webhook()
        campaign.kill_at("before lab POST .*estimate")
        campaign.pass_days(21)  # the first round is measured
        campaign.in_state(run, "Crashed")
        campaign.sweep(later_minutes=30)
        assert len(campaign.orders()) == 2

        (last,) = campaign.runs("Suspended")
        assert campaign.finish(days=40).id == last.id
        assert {delivery["status"] for delivery in campaign.lab.deliveries()} == {200}
        assert judge(campaign) == []
