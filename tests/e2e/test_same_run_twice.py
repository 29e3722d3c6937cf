"""One flow run in two processes at once: a pod that was thought dead wakes up beside the one that took its place.

The first process is stopped (SIGSTOP) within a request to the laboratory, its run is set to Crashed and rescheduled, as
the automation or the sweep does with a run without heartbeats. The second one goes on, and then so does the first.
"""

import os
import signal
import subprocess
import sys

import pytest
from prefect.states import AwaitingRetry, Crashed

from prefect_assay.archive import verify
from support.runs.world import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(300)]

_ENDS_WITHIN = 150
ROUTES = {
    "before the create": {"method": "POST", "path": "/api/v1/experiments/cost-estimate"},
    "in the create": {"method": "POST", "path": "/api/v1/experiments"},
    "before the payment": {"method": "GET", "path": "/api/v1/invoices*"},
    "in the payment": {
        "method": "POST",
        "path": "/api/v1/invoices/*/pay",
        "after": 1,
    },  # the first asks for the terms
    "in the archiving": {"method": "GET", "path": "/api/v1/experiments/*/results*"},
}


@pytest.fixture
def engine(world):
    """Start a process of a run, as a runner or a pod does; all of them end with the test."""
    began = []

    def start(run):
        log = (world.folder / f"{run.name}-{len(began)}.log").open("wb")
        process = subprocess.Popen(
            [sys.executable, "-m", "prefect.engine"],
            env=world.stack.env | {"PREFECT__FLOW_RUN_ID": str(run.id)},
            cwd=world.folder,
            stdout=log,
            stderr=log,
        )
        log.close()
        began.append(process)
        return process

    yield start
    for process in began:
        if process.poll() is None:
            process.kill()
            process.wait(30)


def took_the_place_of(world, run, process):
    """What the installation does with a process that it has not heard of for ten minutes."""
    os.kill(process.pid, signal.SIGSTOP)
    world.api.set_flow_run_state(run.id, Crashed(message="no heartbeats"))
    world.api.set_flow_run_state(run.id, AwaitingRetry())


def judge(world, campaign):
    """The laboratory's books and the archive."""
    (order,) = world.orders(campaign)
    (payment,) = world.settlements(campaign)
    assert payment["experiment_id"] == order.id
    archived = verify(world.archive.get_store(), campaign)
    assert (archived.versions, archived.findings) == (1, ())


@pytest.mark.parametrize("where", ROUTES)
def test_a_process_that_was_thought_dead_wakes_up_beside_the_one_in_its_place(world, held, engine, where):
    campaign = f"twice-{where.replace(' ', '-')}"
    run = held.experiment(campaign)
    if where == "in the archiving":
        assert held.execute(run).name == "Suspended"
        world.advance(days=16)
        world.api.resume_flow_run(run.id)
    fault = world.stack.lab.fault("delay", seconds=4, **ROUTES[where])
    first = engine(run)
    eventually(lambda: fault.used, seconds=90, what=f"the first process {where}")
    took_the_place_of(world, run, first)
    second = engine(run)
    second.wait(_ENDS_WITHIN)
    os.kill(first.pid, signal.SIGCONT)
    first.wait(_ENDS_WITHIN)
    if where != "in the archiving":
        assert held.state(run).name == "Suspended", held.state(run)
        world.advance(days=16)
        held.wake(run)
    assert held.state(run).is_completed(), held.state(run)
    judge(world, campaign)


@pytest.mark.parametrize("woken", [False, True])
def test_two_processes_begin_the_same_execution_at_the_same_moment(world, held, engine, woken):
    campaign = f"at-once-{woken}".lower()
    run = held.experiment(campaign)
    if woken:
        assert held.execute(run).name == "Suspended"
        world.advance(days=16)
        world.api.resume_flow_run(run.id)
    for process in [engine(run), engine(run)]:
        process.wait(_ENDS_WITHIN)
    if not woken:
        assert held.state(run).name == "Suspended", held.state(run)
        world.advance(days=16)
        held.wake(run)
    assert held.state(run).is_completed(), held.state(run)
    judge(world, campaign)
