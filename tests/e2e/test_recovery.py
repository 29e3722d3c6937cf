"""Killed processes go on by themselves, with real kills; the lab's books are the judge.

Once with the sweep alone, on SQLite; once on PostgreSQL with the automations that `deploy` registers, and the sweep's part
that starts crashed runs again: a worker's second report takes back what they have scheduled (docs/deploying.md). Only the
time between heartbeats, and so the silence after which a run counts as dead, is shorter than what is shipped.
"""

import os
import signal
import time
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from itertools import takewhile

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import DeploymentUpdate
from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings
from prefect.states import Scheduled

from prefect_assay.deployments.automations import automations, register_automations
from prefect_assay.runs.crashes import CRASHES_MAX, crashes_in_a_row, reschedule_crashed
from support.runs.scale import MISSING, named, shared_services
from support.runs.sweeps import swept
from support.runs.world import a_world, eventually

pytestmark = [pytest.mark.e2e, pytest.mark.crash, pytest.mark.timeout(600)]

DESIGN = "SESELEAKRQELKELMEKTEEKARELLAKGDVAGARAAYGAYLLKAAE"
SILENCE = timedelta(seconds=50)
CREATE = {"method": "POST", "path": "/api/v1/experiments"}
PAY = {"method": "POST", "path": "/api/v1/invoices/*/pay"}


WAYS = [
    "sweep",
    pytest.param("automations", marks=pytest.mark.skipif(not named(), reason=MISSING)),
]


@pytest.fixture(scope="module", params=WAYS)
def way(request):
    return request.param


@pytest.fixture(scope="module")
def world(tmp_path_factory, way):
    env = {"PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30"}
    with ExitStack() as stack:
        stack.enter_context(temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: 30}))
        if way == "automations":
            env |= stack.enter_context(shared_services())
        options = {"runner": "worker", "env": env, "start_seconds": 300}
        made = stack.enter_context(a_world(tmp_path_factory.mktemp("recovery"), stack_options=options))
        if way == "automations":
            with get_client(sync_client=True) as client:
                register_automations(client, automations())
                changes = register_automations(client, automations(SILENCE))
            assert {c.name: c.change for c in changes} == {
                "assay-crashes": "unchanged",
                "assay-zombies": "updated",
            }
        yield made


@pytest.fixture(scope="module")
def recover(world, way):
    """What takes runs up again, now and then: the sweep, or its part for crashed runs at a later time."""
    last = [0.0]

    def now_and_then(later=None):
        if time.monotonic() < last[0] + 10:
            return
        if way == "automations":  # only they find the silent; they reschedule first
            later = later or timedelta(minutes=3)
        if later:
            reschedule_crashed(world.api, datetime.now(UTC) + later, [])
        else:
            swept(minutes=60)
        last[0] = time.monotonic()

    return now_and_then


@pytest.fixture(scope="module")
def sleeper(world):
    """A run that waits for its laboratory through all of these tests; nobody may touch it."""
    run = world.experiment("sleeper", DESIGN)
    return world.asleep(run, seconds=150)


def kill_flow_processes(world) -> int:
    processes = world.stack.runner_processes()
    for process in processes:
        os.kill(process.pid, signal.SIGKILL)
    return len(processes)


def history(world, run) -> list[str]:
    """`World.history` on the client that is kept: this is asked again and again."""
    states = world.api.read_flow_run_states(run.id)
    return [state.name for state in sorted(states, key=lambda state: state.timestamp)]


def went_through(world, run, *names):
    """Whether a run has been in these states, in this order."""
    states = iter(history(world, run))
    return all(name in states for name in names)


def until_it_went_through(world, recover, run, *names, seconds):
    def reached():
        recover()
        return went_through(world, run, *names)

    eventually(reached, seconds=seconds, what=f"{run.name} to go through {', '.join(names)}")


def ordered_and_paid_once(world, campaign_id):
    assert len(world.orders(campaign_id)) == 1
    assert len(world.settlements(campaign_id)) == 1


def test_a_killed_flow_process_goes_on_by_itself(world, recover, sleeper):
    before = world.creates()
    world.fault("late_answer", **CREATE, seconds=20)
    run = world.experiment("killed-child", DESIGN)
    eventually(lambda: world.creates() > before, seconds=150, what="the create to be handled")
    assert kill_flow_processes(world)

    on = ("Running", "Crashed", "AwaitingRetry", "Running", "Suspended")
    until_it_went_through(world, recover, run, *on, seconds=300)
    world.asleep(run, seconds=150)
    states = sorted(world.api.read_flow_run_states(run.id), key=lambda state: state.timestamp)
    before_its_wait = list(takewhile(lambda state: state.name != "Suspended", states))
    assert crashes_in_a_row(before_its_wait) == 1  # Prefect's worker and its runner may both report it
    ordered_and_paid_once(world, "killed-child")
    assert world.creates() == before + 1


def test_a_killed_machine_is_noticed_by_its_silence_and_goes_on_when_a_worker_is_back(
    world, recover, sleeper
):
    world.fault("delay", **PAY, seconds=0)  # the first call asks for the terms
    world.fault("late_answer", **PAY, seconds=20)
    run = world.experiment("killed-machine", DESIGN)
    eventually(lambda: world.settlements("killed-machine"), seconds=150, what="the payment to be handled")
    world.stack.kill_runner()
    assert world.run(run).state.name == "Running"  # nobody is left who could say otherwise

    # Automations: the silence; the sweep: the silence, a heartbeat more, and its patience with automations.
    until_it_went_through(world, recover, run, "Running", "Crashed", "AwaitingRetry", seconds=480)
    assert world.run(run).state.name == "AwaitingRetry"
    crashed = [s for s in world.api.read_flow_run_states(run.id) if s.name == "Crashed"]
    assert "No heartbeat" in crashed[0].message

    world.stack.start_runner()
    world.asleep(run, seconds=150)
    ordered_and_paid_once(world, "killed-machine")
    assert world.run(sleeper).state == sleeper.state  # not crashed, not even woken


def test_a_run_that_crashes_again_and_again_ends_and_a_retry_by_a_person_goes_on(world, recover):
    before = world.creates()
    world.fault("delay", method="GET", path="/api/v1/experiments", seconds=15, count=CRASHES_MAX + 1)
    run = world.experiment("crashing", DESIGN)

    def killed_or_ended():
        recover(later=timedelta(days=1))  # the sweep is patient, twice as long after each crash and more
        if world.run(run).state.name == "Running":
            kill_flow_processes(world)
        return crashes_in_a_row(world.api.read_flow_run_states(run.id)) > CRASHES_MAX

    eventually(killed_or_ended, seconds=300, what="enough crashes")

    def ended_at_last():
        recover(later=timedelta(days=1))
        return world.run(run).state.is_failed()

    # The run ends itself, or the sweep ends it.
    eventually(ended_at_last, seconds=400, what="the end of the row")
    ended = world.run(run)
    assert "times in a row" in ended.state.message
    assert "Nothing is lost" in ended.state.message
    assert world.creates() == before

    # What the Retry button of the UI does.
    world.stack.lab.clear_faults()
    world.api.set_flow_run_state(run.id, Scheduled(name="AwaitingRetry"))
    world.asleep(run, seconds=150)
    ordered_and_paid_once(world, "crashing")


def test_a_start_that_never_succeeds_does_not_go_round_and_the_sweep_takes_it_up_when_it_can(
    world, way, tmp_path
):
    broken = tmp_path / "prefect_assay"
    broken.mkdir()
    (broken / "__init__.py").write_text("raise SystemExit(7)\n")
    deployment = world.api.read_deployment_by_name("experiment/assay-experiment")
    world.api.update_deployment(
        deployment.id, DeploymentUpdate(job_variables={"env": {"PYTHONPATH": str(tmp_path)}})
    )
    run = world.experiment("unstartable", DESIGN)
    world.until(run, "Crashed", seconds=150)
    time.sleep(10)
    names = history(world, run)
    assert names.count("Crashed") == 1
    assert "Running" not in names

    world.api.update_deployment(deployment.id, DeploymentUpdate(job_variables={}))
    problems = []
    if way == "automations":
        assert reschedule_crashed(world.api, datetime.now(UTC), problems) == []  # theirs comes first
    later = datetime.now(UTC) + timedelta(minutes=3 if way == "automations" else 0)
    assert reschedule_crashed(world.api, later, problems) == [run.id]
    assert problems == []
    world.asleep(run, seconds=150)
    ordered_and_paid_once(world, "unstartable")


def test_all_of_them_are_measured_and_archived_in_the_end(world, sleeper):
    names = ["sleeper", "killed-child", "killed-machine", "crashing", "unstartable"]
    assert history(world, sleeper).count("Crashed") == 0
    world.advance(days=16)
    runs = [r for r in world.api.read_flow_runs() if r.parameters.get("campaign_id") in names]
    assert len(runs) == len(names)
    for run in runs:
        world.until(run, "Completed", seconds=300)
    for name in names:
        ordered_and_paid_once(world, name)
