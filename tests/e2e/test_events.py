"""Each fact is one event on a real server, fired by real runs, also after kills and resumes."""

import pytest

from prefect_assay.blocks import SpendingPolicy
from prefect_assay.events import EVENTS_LABEL, sending
from support.runs.events import names, of_campaign
from support.runs.held import Held
from support.runs.world import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

BINDER = "NSDSECPLSHDGYCLHDGVCMYIEALDKYACNCVVGYIGERCQYRDLKWWELR"


def test_a_paid_experiment_reports_each_fact_once(world):
    run = world.experiment("events-once", BINDER)
    world.asleep(run)

    def ordered():
        found = names(of_campaign("events-once"))
        return found if found["assay.experiment.paid"] else None

    eventually(ordered, seconds=10, what="the events of the suspended run")
    world.advance(days=16)
    world.until(run, "Completed", seconds=90)

    def done():
        found = of_campaign("events-once")
        return found if names(found)["assay.experiment.results-ready"] else None

    events = eventually(done, seconds=10, what="the events of the finished run")
    assert names(events) == {
        "assay.estimate.completed": 1,
        "assay.experiment.ordered": 1,
        "assay.experiment.invoiced": 1,
        "assay.experiment.paid": 1,
        "assay.experiment.stage-changed": 2,
        "assay.experiment.archived": 1,
        "assay.experiment.results-ready": 1,
    }
    assert len({event.id for event in events}) == len(events)
    deployment = f"prefect.deployment.{world.run(run).deployment_id}"
    for event in events:
        roles = event.roles()
        assert roles["flow-run"] == f"prefect.flow-run.{run.id}"
        assert (roles["deployment"], roles["campaign"]) == (deployment, "assay.campaign.events-once")


def test_questions_and_kills_are_no_second_events(world, monkeypatch):
    """Executed step by step. A run that is killed before its label is written sends its events again."""
    held = Held(world)
    policy = SpendingPolicy(
        per_experiment_cents=100,
        per_campaign_cents=5_000_000,
        rolling_cents=50_000_000,
        machine_payments=True,
    )
    policy.save("events-cap", overwrite=True)
    run = held.experiment("events-asked", policy=policy)
    killed = [True]
    flush = sending.flush
    monkeypatch.setattr(sending, "flush", lambda: flush() and not killed[0])
    held.execute(run)
    held.answer(run, decision="approve")
    assert EVENTS_LABEL not in world.run(run).labels
    for killed[0] in (True, False, False):
        world.api.resume_flow_run(run.id)
        held.execute(run)
    assert world.run(run).labels[EVENTS_LABEL]
    flush()
    expected = {
        "assay.estimate.completed": 1,
        "assay.budget.reached": 1,
        "assay.approval.requested": 1,
        "assay.approval.answered": 1,
        "assay.experiment.ordered": 1,
        "assay.experiment.invoiced": 1,
        "assay.experiment.paid": 1,
        "assay.experiment.stage-changed": 1,
    }
    eventually(
        lambda: names(of_campaign("events-asked")) == expected,
        seconds=20,
        what=f"{expected}; there are {names(of_campaign('events-asked'))}",
    )
