"""Canceled runs: what they say, and what the lab's books say. Suspended ones have no process and no hook."""

from datetime import UTC, datetime

import pytest
from prefect.states import Crashed

from prefect_assay.runs.crashes import RESCHEDULED_BY_AUTOMATION
from prefect_assay.runs.states import cancel, reschedule
from prefect_assay.sweeping.cancellations import report_canceled_runs
from support.runs.held import DESIGN, Held, hurry
from support.runs.world import EGFR, UNPRICED, eventually

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(240)]


@pytest.fixture
def held(world, monkeypatch):
    hurry(monkeypatch)
    return Held(world)


def told(world, run):
    """What the run's artifacts say, oldest first."""
    found = world.artifacts(run, "assay-canceled-")
    return [artifact.data for artifact in sorted(found, key=lambda artifact: artifact.created)]


def sweep(world):
    problems = []
    report_canceled_runs(world.api, datetime.now(UTC), problems)
    assert problems == []


def test_suspended_runs_say_what_remains_and_reject_their_open_quotes(world, held):
    quoted = held.experiment("cancel-unpriced", target=UNPRICED)
    paid = held.experiment("cancel-paid")
    for run in (quoted, paid):
        assert held.execute(run).name == "Suspended"
        assert held.cancel(run).name == "Cancelled"
        assert told(world, run) == []

    sweep(world)
    assert "prepares a quote. Nothing is billed unless" in told(world, quoted)[0]
    assert "The laboratory does the work, and 219.00 USD is billed and paid" in told(world, paid)[0]

    world.advance(days=2)
    (order,) = world.orders("cancel-unpriced")
    assert order.status == "quote_sent"
    sweep(world)
    sweep(world)
    (order,) = world.orders("cancel-unpriced")
    assert order.status == "draft"
    assert "Its quote is rejected" in told(world, quoted)[1]
    assert [len(told(world, run)) for run in (quoted, paid)] == [2, 1]
    assert len(world.settlements("cancel-paid")) == 1


def test_a_canceled_campaign_cancels_its_runs_and_one_in_the_middle_of_its_order_tells(world, held):
    creates = world.creates()
    world.fault("late_answer", method="POST", path="/api/v1/experiments", seconds=20)
    designs = str(world.designs("cancel-all", DESIGN))
    assay = {"experiment_type": "affinity", "method": "bli", "target": EGFR}
    run = held.start("campaign", **world.shared(), designs=designs, campaign_id="cancel-all", assay=assay)
    assert held.execute(run, "campaign").name == "Suspended"
    (child,) = world.children("cancel-all")
    eventually(lambda: world.creates() > creates, seconds=60, what="the create to be handled")
    held.cancel(run)
    sweep(world)
    assert "is canceled with it" in told(world, run)[0]
    world.until(child, "Cancelled", seconds=60)
    sweep(world)
    assert "Ordered: experiment" in told(world, child)[0]
    assert "The order remains in force, and" in told(world, child)[0]
    assert world.settlements("cancel-all") == []
    assert len(world.orders("cancel-all")) == 1


def test_a_crash_that_is_answered_after_the_cancellation_starts_nothing(world, held):
    """As the automation does that has seen the crash before: Prefect accepts it."""
    tight = world.policy.model_copy(update={"per_experiment_cents": 100})
    tight.save("cancel-tight", overwrite=True)
    creates = world.creates()
    run = held.experiment("cancel-race", policy=tight)
    assert held.execute(run).name == "Suspended"
    world.api.set_flow_run_state(run.id, Crashed(), force=True)
    cancel(world.api, world.run(run))
    assert reschedule(world.api, run.id, RESCHEDULED_BY_AUTOMATION)
    assert held.execute(run).name == "Cancelled"
    sweep(world)
    assert "Nothing was ordered" in told(world, run)[0]
    assert world.creates() == creates

    assert reschedule(world.api, run.id, "Retry from the UI")
    assert held.execute(run).name == "Suspended"  # it asks again
    held.cancel(run)
