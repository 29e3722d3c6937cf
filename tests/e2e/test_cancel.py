"""Canceled runs: what they say, and what the lab's books say. Suspended ones have no process and no hook."""

from datetime import UTC, datetime

import pytest
from prefect.states import Crashed

from prefect_assay.runs.crashes import RESCHEDULED_BY_AUTOMATION
from prefect_assay.runs.states import cancel, reschedule
from prefect_assay.sweeping.cancellations import report_canceled_runs, settle_canceled_run
from support.runs import here
from support.runs.held import DESIGN
from support.runs.world import EGFR, UNPRICED, eventually

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(240)]


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


@pytest.mark.timeout(500)
def test_what_another_home_waits_for_is_left_alone_until_a_person_says_that_it_is_gone(
    world, held, tmp_path_factory
):
    """A script on another machine: no deployment, no tags, only the archive in common."""
    folder = tmp_path_factory.mktemp("homes")
    run = held.experiment("cancel-shared", target=UNPRICED)
    script = here.start(
        folder / "script",
        here.template(folder / "empty"),
        base_url=world.credentials.base_url,
        token=world.credentials.token.get_secret_value(),
        archive=str(world.archive.root),
        campaign_id="cancel-shared",
        wallet=None,
        spec=run.parameters["spec"],
    )
    try:
        log = world.folder / "archive" / "BOOKS"
        eventually(
            lambda: any('"working"' in path.read_text() for path in log.glob("**/cancel-shared/**/*.json")),
            seconds=200,
            what="the other home to wait for its order",
        )
        assert held.execute(run).name == "Suspended"
        held.cancel(run)
        sweep(world)
        assert "of another Prefect home" in told(world, run)[0]
        assert "Nothing was rejected" in told(world, run)[0]
    finally:
        here.kill(script)
    world.advance(days=2)
    sweep(world)
    (order,) = world.orders("cancel-shared")
    assert order.status == "quote_sent"

    settled = settle_canceled_run(world.api, world.run(run), datetime.now(UTC), alone=True)
    assert (str(settled.remains.state), settled.shared_with) == ("quote-rejected", ())
    (order,) = world.orders("cancel-shared")
    assert order.status == "draft"
