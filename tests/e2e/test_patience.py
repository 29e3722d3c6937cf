"""Trouble that passes never ends a run that waits, and never repeats what it did. The lab's books are the judge."""

from datetime import UTC, datetime
from uuid import uuid4

import pytest
from prefect.client.schemas.objects import StateType

from prefect_assay.archive import LocalStore
from prefect_assay.client.http.exchange import RetryPolicy
from prefect_assay.errors import ArchiveError, ArchiveUnavailable, ConfigurationError
from prefect_assay.runs.tags import RETRY_TAG, tag_values
from prefect_assay.sweeping import find_open_orders
from prefect_assay.tasks import archive, estimate, order, pay
from support.runs.held import DESIGN
from support.runs.sweeps import swept
from support.runs.world import EGFR, UNPRICED

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(240)]


@pytest.fixture
def held(held, monkeypatch):
    """Runs whose client and tasks do not try again by themselves: the trouble outlives any retry."""
    monkeypatch.setattr(RetryPolicy, "delay", lambda *_: None)
    for task in (order.find_order, pay.read_due, archive.archive_experiment, estimate.estimate_cost):
        monkeypatch.setattr(task, "retries", 0)
    return held


def again(world, run):
    return tag_values(world.run(run).tags, RETRY_TAG)


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
            assert held.wake(run).name == "Suspended"
            assert again(world, run) == [str(times)]
    finally:
        world.stack.lab.clear_faults()
    assert held.wake(run).name == "Suspended"
    assert again(world, run) == []
    world.advance(days=16)
    assert held.wake(run).type == StateType.COMPLETED
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
        assert held.wake(run).name == "Suspended"
        assert again(world, run) == [str(times)]
    monkeypatch.setattr(LocalStore, "put_if_absent", whole)
    assert held.wake(run).type == StateType.COMPLETED
    (folder,) = (world.folder / "archive" / "no-archive").iterdir()
    assert [version.name for version in sorted(folder.iterdir())] == ["v001"]


def test_the_invoice_that_cannot_be_read_after_the_order_is_paid_later_and_once(world, held):
    world.fault("status", method="GET", path="/api/v1/invoices/*", status=502, count=1000)
    run = held.experiment("late-pay")
    assert held.execute(run).name == "Suspended"
    assert again(world, run) == ["1"]
    assert world.settlements("late-pay") == []
    world.stack.lab.clear_faults()
    assert held.wake(run).name == "Suspended"
    assert (len(world.orders("late-pay")), len(world.settlements("late-pay"))) == (1, 1)


def test_a_confirmation_whose_answer_was_lost_is_looked_at_again(world, held):
    run = held.experiment("lost-confirm", target=UNPRICED)
    held.execute(run)
    world.advance(days=2)
    world.fault("lose_answer", method="POST", path="/api/v1/experiments/*/quote/confirm")
    assert held.wake(run).name == "Suspended"
    assert again(world, run) == ["1"]
    assert held.wake(run).name == "Suspended"
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
    world.fault("status", method="GET", path="/api/v1/experiments/*", status=401, after=2, count=1)
    assert held.wake(run).name == "Suspended"
    assert again(world, run) == ["1"]  # it was the second look that failed
    assert len(world.orders("second-look")) == 1
    world.stack.lab.clear_faults()


def test_updates_that_cannot_be_read_for_the_progress_end_no_run(world, held):
    run = held.experiment("not-shown")
    held.execute(run)
    world.fault("status", method="GET", path="/api/v1/experiments/*/updates", status=401)
    assert held.wake(run).name == "Suspended"
    assert world.run(run).state.message is None
    world.stack.lab.clear_faults()


def refusing(monkeypatch, error):
    """The archive answers every write like this, until the patch is undone."""

    def refuse(*_args, **_kwargs):
        raise error

    monkeypatch.setattr(LocalStore, "put_if_absent", refuse)


@pytest.mark.parametrize("status", [401, 403, 404])
def test_an_access_that_is_lost_after_the_order_is_waited_for(world, held, status):
    name = f"no-access-{status}"
    run = held.experiment(name)
    held.execute(run)
    world.advance(days=16)
    broken(world, "status", status=status)
    try:
        for times in (1, 2):
            assert held.wake(run).name == "Suspended"
            assert again(world, run) == [str(times)]
        assert "will look again, because of" in held.state(run).message
    finally:
        world.stack.lab.clear_faults()
    assert held.wake(run).type == StateType.COMPLETED
    assert (len(world.orders(name)), len(world.settlements(name))) == (1, 1)


@pytest.mark.parametrize(
    "error",
    [
        ArchiveError("s3://b/k: AccessDenied: no; the credentials may not do this"),
        ConfigurationError("the profile is not there"),
        FileNotFoundError(2, "No such file or directory", "/etc/ssl/ca.pem"),
        OSError(28, "No space left on device", "/tmp/assay-x"),
        OSError(116, "Stale file handle", "/mnt/archive"),
    ],
    ids=lambda error: f"{type(error).__name__}-{getattr(error, 'errno', '')}",
)
def test_what_a_person_can_bring_back_ends_no_run_that_has_ordered(world, held, monkeypatch, error):
    name = f"mended-{uuid4().hex[:6]}"
    run = held.experiment(name)
    held.execute(run)
    world.advance(days=16)
    with monkeypatch.context() as patched:
        refusing(patched, error)
        for times in (1, 2):
            assert held.wake(run).name == "Suspended"
            assert again(world, run) == [str(times)]
    assert held.wake(run).type == StateType.COMPLETED
    assert (len(world.orders(name)), len(world.settlements(name))) == (1, 1)


@pytest.mark.parametrize(
    "error", [ArchiveUnavailable("away"), ArchiveError("AccessDenied"), OSError(5, "EIO")]
)
def test_a_first_execution_that_fails_behind_its_create_goes_on_with_that_order(
    world, held, monkeypatch, error
):
    name = f"behind-{uuid4().hex[:6]}"
    run = held.experiment(name)
    whole = LocalStore.put_if_absent

    def once_sent(store, key, data, *rest, **options):
        if world.orders(name):
            raise error
        return whole(store, key, data, *rest, **options)

    with monkeypatch.context() as patched:
        patched.setattr(LocalStore, "put_if_absent", once_sent)
        assert held.execute(run).name == "Suspended"
        assert held.wake(run).name == "Suspended"
    assert held.wake(run).name == "Suspended"
    assert again(world, run) == []
    assert (len(world.orders(name)), len(world.settlements(name))) == (1, 1)


def test_what_was_never_there_ends_the_first_execution_and_orders_nothing(world, held, monkeypatch):
    before = world.creates()
    for error in (
        ArchiveUnavailable("there are no S3 credentials now"),
        ArchiveError("AccessDenied"),
        OSError(5, "EIO"),
    ):
        with monkeypatch.context() as patched:
            refusing(patched, error)
            run = held.experiment("never-there")
            state = held.execute(run)
        assert state.type == StateType.FAILED
        assert str(error) in state.message
    assert world.creates() == before


def test_a_campaign_that_has_started_its_experiments_waits_as_well(world, held, monkeypatch):
    name = f"parent-{uuid4().hex[:6]}"
    assay = {"experiment_type": "affinity", "method": "bli", "target": EGFR}
    mine = {"designs": f">a\n{DESIGN}\n", "assay": assay, "campaign_id": name}
    parent = held.start("campaign", **world.shared() | mine)
    assert held.execute(parent, "campaign").name == "Suspended"
    child = world.children(name)[0]
    world.until(child, "Suspended")
    world.advance(days=16)
    world.until(child, "Completed", seconds=120)
    with monkeypatch.context() as patched:
        refusing(patched, ArchiveError("AccessDenied"))
        assert held.wake(parent, "campaign").name == "Suspended"
    assert held.wake(parent, "campaign").type == StateType.COMPLETED


def test_a_run_that_fails_with_an_open_order_is_a_problem_until_it_goes_on(world, held, monkeypatch):
    name = f"failed-{uuid4().hex[:6]}"
    run = held.experiment(name)
    held.execute(run)
    world.advance(days=16)
    with monkeypatch.context() as patched:
        refusing(patched, RuntimeError("a fault of the program"))
        assert held.wake(run).type == StateType.FAILED
    (problem,) = open_orders(world, run)
    assert "is open" in problem.text
    assert "a fault of the program" in problem.text
    report = swept(minutes=60)
    assert any("same campaign id" in line and f"{name}-0" in line for line in report.attention)
    again_started = held.experiment(name)
    assert held.execute(again_started).type == StateType.COMPLETED
    assert open_orders(world, run) == []
    assert (len(world.orders(name)), len(world.settlements(name))) == (1, 1)


def open_orders(world, run):
    name = world.run(run).name
    return [problem for problem in find_open_orders(world.api, datetime.now(UTC)) if name in problem.runs]
