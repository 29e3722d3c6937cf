"""`make soak`: experiments by the thousand through the lab's virtual days, while everything else goes wrong."""

import os
import time

import pytest

from support.soak.story import Plan
from support.soak.world import WorkerOptions

EXPERIMENTS = int(os.environ.get("ASSAY_SOAK_EXPERIMENTS", "2000"))
SEED = int(os.environ.get("ASSAY_SOAK_SEED") or time.time())
MINUTES = float(os.environ.get("ASSAY_SOAK_MINUTES", "240"))

DISTURBANCES = {
    1: ("worker_killed",),
    2: ("receiver_stopped", "forge"),
    3: ("server_killed",),
    4: ("worker_killed", "lab_stopped"),
    5: ("receiver_killed", "worker_killed"),
    6: ("forge", "server_stopped"),
    7: ("worker_killed", "receiver_stopped"),
    9: ("server_killed", "receiver_killed", "worker_killed"),
}


@pytest.mark.soak
@pytest.mark.timeout(60 * MINUTES + 900)
def test_every_experiment_is_archived_once(soak):
    plan = Plan(EXPERIMENTS, SEED, MINUTES, batches=8, step_days=3.0, disturbances=DISTURBANCES)
    soak(plan, WorkerOptions(SEED), aloud=True)
