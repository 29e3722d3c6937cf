"""How a suspended run comes back: by webhook, by the sweep, by itself. Real server, lab, receiver, processes."""

import hashlib
import time
from datetime import UTC, datetime
from itertools import islice

import pytest
from prefect.client.schemas.actions import DeploymentScheduleCreate, DeploymentUpdate
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId, LogFilter, LogFilterFlowRunId
from prefect.client.schemas.schedules import CronSchedule

from prefect_assay.flows import sweep
from prefect_assay.models.report import CampaignReport
from prefect_assay.models.sweep import Watermark
from prefect_assay.sweeping.watermarks import SweepState, as_text
from support.runs.world import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

BINDER = "NSDSECPLSHDGYCLHDGVCMYIEALDKYACNCVVGYIGERCQYRDLKWWELR"  # measured: K_D 9e-8 M
OTHER = "SESELEAKRQELKELMEKTEEKARELLAKGDVAGARAAYGAYLLKAAE"
FEED_ONLY = 10_000  # minutes until the next full check


def test_a_signed_webhook_wakes_the_run_and_the_last_child_wakes_the_campaign(world):
    designs = world.designs("webhook", BINDER, OTHER)
    run = world.campaign(designs, campaign_id="by-webhook", sequences_per_experiment=1)
    world.suspended_children("by-webhook", count=2)
    world.asleep(run)
    assert len(world.orders("by-webhook")) == 2

    world.advance(days=16)

    done = world.until(run, "Completed", seconds=90)
    assert "results of 2 of 2 experiments" in done.state.message
    report = world.result(done, CampaignReport)
    assert report.table == str(world.folder / "archive" / "by-webhook" / "TABLE" / "v001" / "results.csv")
    table = (world.folder / "archive" / "by-webhook" / "TABLE" / "v001" / "results.csv").read_text()
    assert "webhook-1" in table
    assert "webhook-2" in table
    ordered = {e.id for e in world.orders("by-webhook")}
    assert {d["status"] for d in world.deliveries() if d["experiment_id"] in ordered} == {200}


def test_updates_that_change_nothing_start_no_task_and_show_the_progress(world):
    run = world.experiment("progress", BINDER)
    world.asleep(run)
    (order,) = world.orders("progress")
    assert world.run(run).state.message == "in the laboratory: waiting for materials"
    seen = set()
    begun = tasks_of(world, run)

    def is_shown():
        now = world.run(run).state
        stage = world.service.experiment(order.id).status.replace("_", " ")
        return now.name == "Suspended" and f": {stage}" in now.message and now.message

    for _ in range(15):
        world.advance(days=1)
        if world.service.experiment(order.id).results_status != "none":
            break  # after 5 to 15 days
        seen.add(eventually(is_shown, seconds=60, what="the stage in the run's state"))
        assert tasks_of(world, run) == begun
    assert len(seen) > 1
    assert any("results expected" in message for message in seen)
    assert world.history(run).count("Resuming") >= len(seen) - 1

    world.advance(days=15)
    world.until(run, "Completed", seconds=90)
    shown = sorted(world.artifacts(run, "assay-progress-"), key=lambda artifact: artifact.created)
    percent = [artifact.data for artifact in shown]
    assert percent == sorted(percent)
    assert (percent[0], percent[-1]) == (20, 100)
    assert "| date | update |" in shown[-1].description
    ids = LogFilterFlowRunId(any_=[run.id])
    logged = [line.message for line in world.api.read_logs(LogFilter(flow_run_id=ids))]
    assert all(any(line.endswith(message) for line in logged) for message in seen)


def test_a_lost_webhook_is_made_up_for_by_the_sweep(world):
    run = world.experiment("by-sweep", BINDER)
    world.asleep(run)
    sweep(full_check_minutes=FEED_ONLY)  # sets the watermark

    world.stack.stop_receiver()
    try:
        world.advance(days=16)
        assert world.run(run).state.name == "Suspended"
        report = sweep(full_check_minutes=FEED_ONLY)
    finally:
        world.stack.start_receiver()

    assert str(run.id) in report.woken  # the installation is shared
    assert report.problems == ()
    assert str(run.id) not in sweep(full_check_minutes=FEED_ONLY).woken  # the same news does not wake twice
    world.until(run, "Completed", seconds=90)


def test_the_full_check_finds_what_the_feed_no_longer_tells(world):
    run = world.experiment("by-full-check", BINDER)
    world.asleep(run)

    world.stack.stop_receiver()
    try:
        world.advance(days=16)
        # This sweep is asleep too: its watermark moves past the news, and it wakes nobody.
        move_watermark(world, run)
        assert str(run.id) not in sweep(full_check_minutes=FEED_ONLY).woken
        report = sweep(full_check_minutes=0)
    finally:
        world.stack.start_receiver()

    assert str(run.id) in report.woken  # the installation is shared
    world.until(run, "Completed", seconds=90)


def tasks_of(world, run):
    """How many task runs the run has had."""
    return len(world.api.read_task_runs(flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=[run.id]))))


def move_watermark(world, run):
    """Put the watermark of the run's credentials behind every update of the lab, and those of all other tests'."""
    now = datetime.now(UTC)
    newest = list(islice(world.service.iter_updates(), 100))
    read = {
        "feed": newest[0].timestamp,
        "seen": tuple(hashlib.sha256(update.id.encode()).hexdigest()[:12] for update in newest),
        "full_check": now,
    }
    state = SweepState.read(world.api)
    for other in state.watermarks().values():  # their feeds have the same updates
        state.save(other.model_copy(update=read))
    state.save(state.overall.model_copy(update={"swept": now, "walked": now}))
    reference = as_text(run.parameters["credentials"]["$ref"])
    state.save(Watermark(reference=reference, used=now, **read))


def test_results_that_come_between_the_check_and_the_suspension_are_not_missed(world):
    """The look is answered before the results exist, and its answer arrives after their webhook."""
    # Holding back the terms of payment gives the time to aim at the look that follows it.
    world.fault("delay", method="POST", path="/api/v1/invoices/*/pay", seconds=8)
    world.stack.stop_receiver()  # nobody may wake the run but the run itself
    try:
        run = world.experiment("race", BINDER)
        (order,) = eventually(lambda: world.orders("race"), seconds=60, what="the order")
        look = f"/api/v1/experiments/{order.id}"
        # All that are made before the payment, which is held back: the next look waits for results.
        eventually(lambda: settled(world, look), seconds=60, what="the looks before the payment")
        world.fault("late_answer", method="GET", path=look, seconds=5)
        eventually(
            lambda: any(r["path"] == look and r["fault"] == "late_answer" for r in world.journal()),
            seconds=60,
            what="the slow look",
        )
        world.advance(days=16)
        world.until(run, "Completed", seconds=90)
    finally:
        world.stack.start_receiver()
    history = world.history(run)
    assert history.index("Suspended") < history.index("Resuming") < history.index("Completed")


def settled(world, look):
    """Whether there were looks, and none for two seconds."""
    before = sum(r["path"] == look for r in world.journal())
    time.sleep(2)
    return before and sum(r["path"] == look for r in world.journal()) == before


def test_a_served_process_pauses_no_schedule_and_keeps_what_operators_have_set(world):
    """Another one may serve when it ends, and deploying keeps a pause for an operator's wish."""
    name, choices = "campaign/assay-campaign", {"parameters": {"deadline_days": 60}, "concurrency_limit": 20}
    campaign = world.api.read_deployment_by_name(name)
    added = DeploymentScheduleCreate(schedule=CronSchedule(cron="0 6 * * 1-5"), active=False)
    (schedule,) = world.api.create_deployment_schedules(campaign.id, [added])
    world.api.update_deployment(campaign.id, DeploymentUpdate(**choices))
    try:
        world.stack.stop_runner()
        paused = [
            one.name for one in world.api.read_deployments() if one.paused and one.name.startswith("assay-")
        ]
        world.stack.start_runner()
        again = world.api.read_deployment_by_name(name)
    finally:
        world.api.delete_deployment_schedule(campaign.id, schedule.id)
        world.api.update_deployment(campaign.id, DeploymentUpdate(parameters={}, concurrency_limit=None))
    assert paused == []
    assert [kept.id for kept in again.schedules] == [schedule.id]
    assert again.parameters == choices["parameters"]
    assert again.global_concurrency_limit.limit == choices["concurrency_limit"]
