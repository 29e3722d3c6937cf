"""A soak of a few experiments for every test run. `make soak` plays two thousand."""

from support.soak_story import Plan
from support.soak_world import WorkerOptions

DISTURBANCES = {
    0: ("worker_killed",),
    1: ("forge", "receiver_killed"),
    2: ("worker_killed",),
}


def test_a_few_experiments_are_archived_once(soak):
    plan = Plan(6, 5, 5.0, batches=1, step_days=7.5, disturbances=DISTURBANCES, machine_every=6)
    found = soak(plan, WorkerOptions(5, kill_share=0.2, grace=2.0))
    assert found.figures["killed executions"] > 0
    assert found.figures["forged by the test"] > 0
