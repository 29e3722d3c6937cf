"""A new version is installed while campaigns are under way: everything is stopped, deployed again, and started twenty days later.

The laboratory works on meanwhile, and its webhooks find nobody. Another time Prefect's server is lost with its database: a new one
leaves the campaigns alone until a person has it adopt them.
"""

import pytest

from support.stories.judge import judge
from support.stories.world import another_home

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


def test_everything_is_stopped_deployed_again_and_started(world):
    stack = world.stack
    with world.story("upgraded") as campaign:
        with (
            world.served(),
            campaign.lab.fault("late_answer", method="POST", path="/api/v1/experiments", seconds=60),
        ):
            campaign.start()
            world.until(campaign.orders, "the first order to be at the service")
            stack.stop_runner()  # SIGTERM, as a rollout sends it: Prefect calls the run canceled
        campaign.sweep()
        assert campaign.state.stopped is None, "stopping a worker is not canceling"
        (waiting,) = campaign.runs("Suspended")

        stack.stop_runner()
        stack.stop_receiver()
        deployment = world.api.read_deployment_by_name("campaign/assay-campaign")
        world.api.delete_deployment(deployment.id)
        stack.stop_server()
        campaign.lab.advance(days=20)
        stack.start_server()
        world.deploy()
        stack.start_receiver()
        stack.start_runner()

        campaign.sweep(later_minutes=25)
        assert world.read(waiting).state.name == "Cancelled", "it waited for the deployment of before"
        assert campaign.state.stopped is None
        campaign.finish(days=3, sweeps=True)
        assert judge(campaign) == []


@pytest.mark.long
def test_a_campaign_is_adopted_by_another_server(world):
    with world.story("adopted") as campaign:
        run = campaign.start_and_wait()
        with another_home(world, campaign.folder.with_name("other-home")) as other:
            there = campaign.at(other)
            other.sweep()
            assert there.runs() == []
            world.api.delete_flow_run(run.id)  # all that the first server knows of it
            other.command("adopt", "--archive", campaign.block_name, "--yes")
            other.sweep()
            assert len(there.runs()) == 1
            campaign.sweep()
            assert campaign.runs() == []
            there.finish(sweeps=True)
            assert judge(campaign) == []
