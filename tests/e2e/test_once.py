"""Ordered once, paid once: killed processes, lost answers, doubled submissions. The lab's books are the judge."""

import os
import signal
from datetime import UTC, datetime

import pytest
from prefect.logging import disable_run_logger

from prefect_assay.models.report import CampaignReport, ExperimentReport
from prefect_assay.sweeping.cancellations import report_canceled_runs
from support.runs.world import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

DESIGN = "SESELEAKRQELKELMEKTEEKARELLAKGDVAGARAAYGAYLLKAAE"
BINDER = "NSDSECPLSHDGYCLHDGVCMYIEALDKYACNCVVGYIGERCQYRDLKWWELR"


def test_kill_right_after_the_create_reached_the_service_orders_one_experiment(world):
    before = world.creates()
    # The service handles the create and keeps its answer back: the flow process is killed in between.
    world.fault("late_answer", method="POST", path="/api/v1/experiments", seconds=20)
    first = world.experiment("killed", DESIGN)
    eventually(lambda: world.creates() > before, seconds=60, what="the create to be handled")
    assert len(world.orders("killed")) == 1
    assert world.settlements("killed") == []
    for process in world.stack.runner_processes():
        os.kill(process.pid, signal.SIGKILL)
    # It is scheduled again at once: from here on two runs of one campaign work side by side.
    eventually(lambda: "Crashed" in world.history(first), seconds=90, what=f"{first.name} to be crashed")

    second = world.experiment("killed", DESIGN)
    world.asleep(second)
    world.advance(days=16)
    done = world.until(second, "Completed", seconds=90)

    assert world.result(done, ExperimentReport).order.adopted
    assert len(world.orders("killed")) == 1
    assert world.creates() == before + 1
    assert len(world.settlements("killed")) == 1


def test_a_run_whose_serving_process_is_stopped_is_not_canceled_and_orders_once(world):
    before = world.creates()
    world.fault("late_answer", method="POST", path="/api/v1/experiments", seconds=60)
    run = world.experiment("stopped", DESIGN)
    eventually(lambda: world.creates() > before, seconds=60, what="the create to be handled")
    world.stack.stop_runner()
    (stopped,) = [state for state in world.api.read_flow_run_states(run.id) if state.name == "Cancelled"]
    assert stopped.message == "Runner is shutting down."  # Prefect's word for it
    world.stack.start_runner()
    with disable_run_logger():
        report_canceled_runs(world.api, datetime.now(UTC), [])
    world.asleep(run, seconds=90)
    assert len(world.orders("stopped")) == 1
    assert world.creates() == before + 1
    assert len(world.settlements("stopped")) == 1


def test_lost_answers_to_the_create_and_to_the_payment_are_looked_up_and_never_repeated(world):
    before = world.creates()
    world.fault("lose_answer", method="POST", path="/api/v1/experiments")
    # The first call of the pay path asks for the terms; the second one carries the payment.
    world.fault("delay", method="POST", path="/api/v1/invoices/*/pay", seconds=0)
    world.fault("lose_answer", method="POST", path="/api/v1/invoices/*/pay")
    run = world.experiment("unanswered", DESIGN)
    world.asleep(run)
    lost = [r["path"] for r in world.journal() if r["fault"] == "lose_answer"]
    assert len(lost) == 2
    world.advance(days=16)
    world.until(run, "Completed", seconds=90)
    assert len(world.orders("unanswered")) == 1
    assert world.creates() == before + 1
    assert len(world.settlements("unanswered")) == 1


def test_the_same_campaign_submitted_twice_at_once_and_again_later_orders_nothing_twice(world):
    designs = world.designs("twice", BINDER)
    before = world.creates()
    runs = [world.campaign(designs, campaign_id="twice") for _ in range(2)]
    world.suspended_children("twice")
    for run in runs:
        world.asleep(run)
    world.advance(days=16)
    for run in runs:
        assert "1 of 1 experiment" in world.until(run, "Completed", seconds=90).state.message

    later = world.until(world.campaign(designs, campaign_id="twice"), "Completed", seconds=90)

    assert world.result(later, CampaignReport).rows > 0
    assert len(world.orders("twice")) == 1
    assert world.creates() == before + 1
    assert len(world.settlements("twice")) == 1

    other = world.designs("other", DESIGN)
    refused = world.until(world.campaign(other, campaign_id="twice"), "Failed")
    assert "has been used for other designs" in refused.state.message
    assert world.creates() == before + 1
