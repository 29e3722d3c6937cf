"""Runs that nobody would start again go on by themselves, on a real worker; the lab's books are the judge."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
from prefect.client.schemas.responses import SetStateStatus
from prefect.states import Paused, Suspended

from prefect_assay.runs.states import successor_of
from prefect_assay.runs.tags import REPLACED_TAG
from prefect_assay.sweeping.stranded_runs import replace_waiting_runs
from support.runs.sweeps import swept
from support.runs.world import a_world, eventually

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(600)]

DESIGN = "SESELEAKRQELKELMEKTEEKARELLAKGDVAGARAAYGAYLLKAAE"
POOL = "assay"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with a_world(tmp_path_factory.mktemp("stranded"), stack_options={"runner": "worker"}) as made:
        yield made


def deploy(world):
    done = subprocess.run(
        [sys.executable, "-m", "prefect_assay.cli", "deploy"],
        env=world.stack.env,
        cwd=world.folder,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def deploy_without_moving(world):
    """As `prefect deploy` does."""
    code = "from prefect_assay.deployments import setup; setup.replace_waiting_runs = lambda _: []; setup.deploy()"
    subprocess.run(
        [sys.executable, "-c", code], env=world.stack.env, cwd=world.folder, check=True, timeout=180
    )


def remake_pool(world):
    world.stack.stop_runner()
    world.api.delete_work_pool(POOL)


def remake_deployment(world):
    world.stack.stop_runner()
    world.api.delete_deployment(world.api.read_deployment_by_name("experiment/assay-experiment").id)


def completed_once(world, campaign_id, run):
    world.until(run, "Completed", seconds=150)
    assert len(world.orders(campaign_id)) == 1
    assert len(world.settlements(campaign_id)) == 1


def current(world, run):
    return successor_of(world.api, world.run(run))


@pytest.mark.parametrize("remake", [remake_pool, remake_deployment], ids=["pool", "deployment"])
def test_deploy_moves_waiting_runs_to_what_it_makes_again(world, remake):
    name = f"moved-{remake.__name__[7:]}"
    parent = world.campaign(world.designs(name, DESIGN), campaign_id=name)
    (child,) = world.suspended_children(name, seconds=150)
    world.asleep(parent)
    remake(world)
    said = deploy(world)
    world.stack.start_runner()
    assert f"moved        run {child.name}" in said
    goes_on = current(world, child)
    assert goes_on.id != child.id
    assert goes_on.state.name == "Suspended"
    assert [run.id for run in world.children(name)] == [goes_on.id]
    old = world.run(child)
    assert (old.state.name, str(goes_on.id) in old.state.message) == ("Replaced", True)
    assert replace_waiting_runs(world.api) == []
    world.advance(days=16)
    completed_once(world, name, goes_on)
    world.until(current(world, parent), "Completed", seconds=150)


@pytest.mark.parametrize("remake", [remake_pool, remake_deployment], ids=["pool", "deployment"])
def test_a_run_that_was_woken_to_nothing_is_replaced_by_the_sweep(world, remake):
    name = f"woken-{remake.__name__[7:]}"
    run = world.experiment(name, DESIGN)
    world.asleep(run, seconds=150)
    remake(world)
    deploy_without_moving(world)
    world.stack.start_runner()
    world.advance(days=16)
    # No queue: nobody takes it. Another deployment: the worker cancels it.
    stuck = "Resuming" if remake is remake_pool else "Cancelled"
    world.until(run, stuck, seconds=60)
    eventually(lambda: swept(timedelta(minutes=3), 60) and world.run(run).tags, seconds=5, what="a sweep")
    goes_on = current(world, run)
    assert goes_on.id != run.id
    completed_once(world, name, goes_on)
    assert {str(run.id), str(goes_on.id)}.isdisjoint(swept(timedelta(minutes=20), 60).woken)
    assert REPLACED_TAG + str(goes_on.id) in world.run(run).tags


def test_a_run_that_was_paused_while_it_paid_goes_on(world):
    pay = {"method": "POST", "path": "/api/v1/invoices/*/pay"}
    world.fault("delay", **pay, seconds=0)  # the first call asks for the terms
    world.fault("late_answer", **pay, seconds=20)
    run = world.experiment("paused", DESIGN, webhook=None)  # a delivery would resume it at once
    eventually(lambda: world.settlements("paused"), seconds=150, what="the payment to be handled")
    paused = world.api.set_flow_run_state(run.id, Paused(timeout_seconds=3600))
    assert paused.status == SetStateStatus.ACCEPT  # Prefect refuses it once the run is suspended
    eventually(lambda: not world.stack.runner_processes(), seconds=60, what="the process to end")
    assert world.run(run).state.name == "Paused"
    world.advance(days=16)
    world.api.resume_flow_run(run.id)
    assert str(run.id) not in swept(timedelta(minutes=2), 60).woken
    assert world.run(run).state.name == "Running"  # without a process
    assert str(run.id) in swept(timedelta(minutes=6), 60).woken
    completed_once(world, "paused", run)


def test_a_run_that_was_suspended_by_hand_while_it_ordered_goes_on_after_its_time_out(world):
    before = world.creates()
    world.fault("late_answer", method="POST", path="/api/v1/experiments", seconds=6)
    run = world.experiment("byhand", DESIGN)
    eventually(lambda: world.creates() > before, seconds=150, what="the create to be handled")
    world.api.set_flow_run_state(run.id, Suspended(timeout_seconds=8))
    eventually(lambda: not world.stack.runner_processes(), seconds=60, what="the process to end")
    eventually(lambda: _expired(world, run), seconds=30, what="the time-out")
    assert str(run.id) in swept(timedelta(minutes=0), 60).woken
    world.asleep(run, seconds=150)
    world.advance(days=16)
    completed_once(world, "byhand", run)
    assert world.creates() == before + 1


def _expired(world, run):
    """Prefect's loop finds it within an hour; a resume that comes too late at once."""
    if datetime.now(UTC) > world.run(run).state.timestamp + timedelta(seconds=9):
        world.api.resume_flow_run(run.id)
    return world.run(run).state.is_failed()
