"""Processes that are killed by SIGKILL between a fact and its event: the event comes afterwards, once."""

import signal
import subprocess
import sys
from datetime import timedelta

import pytest
from prefect.client.schemas.objects import StateType
from prefect.states import Crashed

from prefect_assay.events import flush
from prefect_assay.runs.states import reschedule
from support.runs.events import names, of_campaign
from support.runs.sweeps import swept
from support.runs.world import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

# One execution of a run, in a process that ends when it is about to send an event.
EXECUTION = """
import os, signal, sys
from prefect.client.orchestration import get_client
from prefect.flow_engine import run_flow
from prefect_assay.events import sending
from prefect_assay.flows import experiment

event, run_id = sys.argv[1:]
send = sending.emit_event

def send_or_end(**fields):
    if fields["event"] == event:
        os.kill(os.getpid(), signal.SIGKILL)
    return send(**fields)

sending.emit_event = send_or_end
with get_client(sync_client=True) as client:
    run = client.read_flow_run(run_id)
run_flow(experiment, flow_run=run)
"""


def killed_before(world, run, event):
    done = subprocess.run(
        [sys.executable, "-c", EXECUTION, event, str(run.id)],
        env=world.stack.env,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()[-3000:]


def seen(campaign, event):
    return [e for e in of_campaign(campaign) if e.event == event]


@pytest.mark.parametrize("fact", ["ordered", "paid"])
def test_what_was_done_right_before_the_kill_is_reported_once_by_the_next_execution(world, held, fact):
    campaign, event = f"killed-{fact}", f"assay.experiment.{fact}"
    run = held.experiment(campaign)
    killed_before(world, run, event)
    assert len(world.orders(campaign)) == 1
    assert len(world.settlements(campaign)) == (fact == "paid")
    assert seen(campaign, event) == []
    world.api.set_flow_run_state(run.id, Crashed(), force=True)  # as its worker does
    assert reschedule(world.api, run.id, "killed by the test")
    assert held.execute(run).name == "Suspended"
    held.wake(run)
    flush()
    eventually(lambda: seen(campaign, event), seconds=20, what=f"{event} after the kill")
    world.advance(days=16)
    assert held.wake(run).type == StateType.COMPLETED
    flush()
    eventually(
        lambda: names(of_campaign(campaign))["assay.experiment.results-ready"], seconds=20, what="the end"
    )
    assert len(seen(campaign, event)) == 1
    assert len(world.orders(campaign)) == len(world.settlements(campaign)) == 1


def test_a_question_whose_run_was_killed_after_its_suspension_is_reported_by_the_sweep(world, held):
    campaign, event = "killed-asking", "assay.approval.requested"
    policy = world.policy.model_copy(update={"per_experiment_cents": 100})
    policy.save("killed-cap", overwrite=True)
    run = held.experiment(campaign, policy=policy)
    killed_before(world, run, event)
    state = held.state(run)
    assert (state.name, bool(state.state_details.run_input_keyset)) == ("Suspended", True)
    swept(minutes=60)
    flush()
    assert seen(campaign, event) == []  # a run that lives sends its own
    for minutes in (2, 7):
        swept(timedelta(minutes=minutes), 60)
        flush()
    (found,) = eventually(lambda: seen(campaign, event), seconds=20, what=event)
    assert found.payload["approval"] == state.state_details.pause_key
    assert found.payload["question"].startswith("Experiment killed-asking")
    assert found.roles()["flow-run"] == f"prefect.flow-run.{run.id}"
    assert world.run(run).labels["assay.events"].split() == [found.id.replace("-", "")[:12]]
    assert held.answer(run, decision="approve") == "ACCEPT"
    flush()
    eventually(lambda: seen(campaign, "assay.approval.answered"), seconds=20, what="the answer")
    assert len(seen(campaign, event)) == 1
