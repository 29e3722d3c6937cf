"""Trouble that passes never ends a run that waits, and never repeats what it did. The lab's books are the judge."""

import pytest
from prefect.client.schemas.objects import StateType

from prefect_assay.archive import LocalStore
from prefect_assay.client.http.exchange import RetryPolicy
from prefect_assay.errors import ArchiveUnavailable
from prefect_assay.runs.tags import RETRY_TAG, tag_values
from prefect_assay.tasks import archive, estimate, order, pay
from support.runs.held import Held, hurry
from support.runs.world import UNPRICED

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(240)]


@pytest.fixture
def held(world, monkeypatch):
    """Runs whose client and tasks do not try again by themselves: the trouble outlives any retry."""
    hurry(monkeypatch)
    monkeypatch.setattr(RetryPolicy, "delay", lambda *_: None)
    for task in (order.find_order, pay.read_due, archive.archive_experiment, estimate.estimate_cost):
        monkeypatch.setattr(task, "retries", 0)
    return Held(world)


def again(world, run):
    return tag_values(world.run(run).tags, RETRY_TAG)


def wake(world, held, run):
    assert world.api.resume_flow_run(run.id).status == "ACCEPT"
    return held.execute(run)


def broken(world, action, **details):
    """Every read of an experiment and all that belongs to it fails."""
    world.fault(action, method="GET", path="/api/v1/experiments/*", count=1000, **details)


@pytest.mark.parametrize(
    ("action", "details"),
    [("status", {"status": 503}), ("status", {"status": 429}), ("reset", {}), ("truncate", {})],
)
def test_a_service_that_is_away_for_many_wakes_ends_nothing(world, held, action, details):
    name = f"away-{action}-{details.get('status', 0)}"
    run = held.experiment(name)
    assert held.execute(run).name == "Suspended"
    broken(world, action, **details)
    try:
        for times in (1, 2, 3):
            assert wake(world, held, run).name == "Suspended"
            assert again(world, run) == [str(times)]
    finally:
        world.stack.lab.clear_faults()
    assert wake(world, held, run).name == "Suspended"
    assert again(world, run) == []
    world.advance(days=16)
    assert wake(world, held, run).type == StateType.COMPLETED
    assert (len(world.orders(name)), len(world.settlements(name))) == (1, 1)


def test_an_archive_that_is_away_is_tried_again_soon_and_written_once(world, held, monkeypatch):
    run = held.experiment("no-archive")
    held.execute(run)
    world.advance(days=16)
    whole = LocalStore.put_if_absent

    def away(*_args, **_kwargs):
        raise ArchiveUnavailable("no connection to the store")

    monkeypatch.setattr(LocalStore, "put_if_absent", away)
    for times in (1, 2):
        assert wake(world, held, run).name == "Suspended"
        assert again(world, run) == [str(times)]
    monkeypatch.setattr(LocalStore, "put_if_absent", whole)
    assert wake(world, held, run).type == StateType.COMPLETED
    (folder,) = (world.folder / "archive" / "no-archive").iterdir()
    assert [version.name for version in sorted(folder.iterdir())] == ["v001"]


def test_the_invoice_that_cannot_be_read_after_the_order_is_paid_later_and_once(world, held):
    world.fault("status", method="GET", path="/api/v1/invoices/*", status=502, count=1000)
    run = held.experiment("late-pay")
    assert held.execute(run).name == "Suspended"
    assert again(world, run) == ["1"]
    assert world.settlements("late-pay") == []
    world.stack.lab.clear_faults()
    assert wake(world, held, run).name == "Suspended"
    assert (len(world.orders("late-pay")), len(world.settlements("late-pay"))) == (1, 1)


def test_a_confirmation_whose_answer_was_lost_is_looked_at_again(world, held):
    run = held.experiment("lost-confirm", target=UNPRICED)
    held.execute(run)
    world.advance(days=2)
    world.fault("lose_answer", method="POST", path="/api/v1/experiments/*/quote/confirm")
    assert wake(world, held, run).name == "Suspended"
    assert again(world, run) == ["1"]
    assert wake(world, held, run).name == "Suspended"
    assert again(world, run) == []
    assert (len(world.orders("lost-confirm")), len(world.settlements("lost-confirm"))) == (1, 1)


def test_before_anything_is_ordered_trouble_ends_the_run_and_says_so(world, held):
    before = world.creates()
    world.fault("status", method="POST", path="/api/v1/experiments/cost-estimate", status=503, count=1000)
    run = held.experiment("not-yet")
    assert held.execute(run).type == StateType.FAILED
    world.stack.lab.clear_faults()
    assert world.creates() == before


def test_an_error_after_the_suspension_leaves_the_run_suspended(world, held):
    """The second look, the one that closes the race, comes when the server has the run as suspended already."""
    run = held.experiment("second-look")
    held.execute(run)
    world.fault("status", method="GET", path="/api/v1/experiments/*", status=401, after=4, count=1)
    assert wake(world, held, run).name == "Suspended"
    assert again(world, run) == ["1"]  # it was the second look that failed
    assert len(world.orders("second-look")) == 1
    world.stack.lab.clear_faults()


def test_updates_that_cannot_be_read_for_the_progress_end_no_run(world, held):
    run = held.experiment("not-shown")
    held.execute(run)
    world.fault("status", method="GET", path="/api/v1/experiments/*/updates", status=401)
    assert wake(world, held, run).name == "Suspended"
    assert world.run(run).state.message is None
    world.stack.lab.clear_faults()
