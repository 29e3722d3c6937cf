"""The flows as users run them: served by one process, and by Prefect's own process worker."""

import pytest

from support.stories.judge import judge
from support.stories.world import a_world

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


@pytest.fixture(params=["serve", pytest.param("worker", marks=pytest.mark.long)], scope="module")
def world(request, tmp_path_factory):
    with a_world(tmp_path_factory.mktemp(request.param), kind=request.param) as made:
        yield made


def order_until_stopped(campaign, stop):
    """Start it, and stop its runner when the first order is at the service and its answer is kept back."""
    with campaign.lab.fault("late_answer", method="POST", path="/api/v1/experiments", seconds=60):
        run = campaign.start()
        campaign.world.until(campaign.orders, "the first order to be at the service")
        stop()
    campaign.world.stack.start_runner()
    return run


def test_the_processes_are_killed(world):
    """SIGKILL to the runner and everything below it."""
    with world.story("machine-killed") as campaign:
        order_until_stopped(campaign, world.stack.kill_runner)
        world.sweep(later_minutes=1)  # the first one cannot tell a silent process from a server that was away
        campaign.sweep(later_minutes=15)
        campaign.finish(sweeps=True)
        assert judge(campaign) == []


def test_the_runner_is_stopped_which_is_no_cancellation(world):
    """SIGTERM, as a rollout sends it: Prefect calls the run canceled, and the campaign goes on."""
    with world.story("runner-stopped") as campaign:
        order_until_stopped(campaign, world.stack.stop_runner)
        campaign.sweep()
        assert campaign.state.stopped is None
        campaign.finish(sweeps=True)
        assert judge(campaign) == []
