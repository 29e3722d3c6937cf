"""The soak in small, for every test run: nothing is lost, whatever becomes of its webhooks. `make soak` is large."""

import pytest

from support.soak.story import Plan
from support.soak.world import WorkerOptions

DISTURBANCES = {
    0: ("forge", "receiver_killed"),
    1: ("worker_killed",),
}


@pytest.mark.e2e
@pytest.mark.timeout(600)
def test_a_few_experiments_are_archived_once(soak):
    plan = Plan(8, 5, 5.0, batches=1, step_days=5.0, disturbances=DISTURBANCES, machine_every=2)
    found = soak(plan, WorkerOptions(14, kill_share=0.35))
    assert found.figures["killed executions"] > 0
    assert found.figures["forged by the test"] > 0
