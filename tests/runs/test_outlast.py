"""`outlast` and `wait_until` under trouble: what passes is waited out, and nothing ends a suspended run."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from unittest.mock import MagicMock
from uuid import uuid4

import pytest
from prefect.client.schemas.objects import FlowRun
from prefect.exceptions import Pause
from prefect.logging import disable_run_logger

from prefect_assay.errors import (
    ArchiveError,
    ArchiveUnavailable,
    NotReady,
    OrderNotVisible,
    OrderOutcomeUnknown,
    PaymentOutcomeUnknown,
    RateLimited,
    ServiceUnavailable,
    Unauthorized,
    UnexpectedAnswer,
)
from prefect_assay.runs import suspend
from prefect_assay.runs import transient_failures as trouble
from prefect_assay.runs.suspend import PollPolicy, outlast, wait_until
from prefect_assay.runs.tags import ASKS_TAG, RETRY_TAG
from prefect_assay.runs.transient_failures import (
    RETRY_KEY,
    is_due,
    is_temporary,
    lacks_retry_mark,
    pause_after,
    retry_count,
    was_suspended,
)

QUICK = PollPolicy(first_seconds=0.001, longest_seconds=0.002)
DAY = timedelta(days=1)
PASSING = (ServiceUnavailable, RateLimited, UnexpectedAnswer, NotReady, ArchiveUnavailable)
LASTING = (Unauthorized, ArchiveError, OrderOutcomeUnknown, PaymentOutcomeUnknown)


@pytest.fixture(autouse=True)
def _no_run_logger():
    with disable_run_logger():
        yield


@pytest.mark.parametrize("kind", PASSING)
def test_what_passes_is_waited_out_where_nothing_can_be_suspended(kind):
    outcomes = iter([kind("away"), kind("still away"), "done"])

    def step():
        outcome = next(outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    assert outlast(step, key="k", timeout=DAY, poll=QUICK) == "done"


@pytest.mark.parametrize("kind", LASTING)
def test_what_does_not_pass_is_raised_at_once(kind):
    calls = []

    def step():
        calls.append(1)
        raise kind("no")

    with pytest.raises(kind):
        outlast(step, key="k", timeout=DAY, poll=QUICK)
    assert calls == [1]


@pytest.mark.parametrize(
    ("error", "parameter"),
    [
        (Unauthorized("401"), "credentials"),
        (OrderNotVisible("another organisation"), "credentials"),
        (ArchiveError("another archive"), "archive"),
    ],
)
@pytest.mark.parametrize("waited", [True, False])
def test_a_deployed_run_that_has_waited_waits_for_the_block_that_is_to_blame(
    monkeypatch, error, parameter, waited
):
    run = FlowRun(
        id=uuid4(),
        flow_id=uuid4(),
        tags=["assay-experiment:e-1"] if waited else [],
        labels={f"assay.block.{parameter}": f"a-type/{parameter}"},
    )
    shown, keys = [], []
    client = MagicMock()
    client.__enter__.return_value.read_flow_run.return_value = run
    monkeypatch.setattr(suspend, "can_suspend", lambda: True)
    monkeypatch.setattr(suspend, "this_run", lambda: run)
    monkeypatch.setattr(suspend, "get_client", lambda **_: client)
    monkeypatch.setattr(suspend, "create_markdown_artifact", lambda **values: shown.append(values))

    def suspended(key, _timeout, *, failed):
        keys.append((key, failed is not None))
        raise Pause

    monkeypatch.setattr(suspend, "_suspend", suspended)

    def step():
        raise error

    with pytest.raises(Pause if waited else type(error)):
        outlast(step, key="steps-k", timeout=DAY)
    if not waited:  # nothing is ordered: a wrong token shows at once
        assert (keys, shown) == ([], [])
        return
    assert keys == [(f"again-unfit-{parameter}=a-type/{parameter}", True)]
    assert shown[0]["key"] == f"assay-block-{parameter}"
    assert f"correct the block a-type/{parameter} of its parameter {parameter}" in shown[0]["markdown"]


def test_at_the_timeout_the_last_error_is_raised():
    def step():
        raise ServiceUnavailable("away for good")

    with pytest.raises(ServiceUnavailable, match="away for good"):
        outlast(step, key="k", timeout=timedelta(seconds=0.02), poll=QUICK)


def test_only_errors_of_this_package_can_pass():
    assert not is_temporary(ValueError("no"))
    assert not is_temporary(KeyboardInterrupt())


@pytest.fixture
def deployed(monkeypatch):
    """A run that can suspend; the server's answers are those of a healthy one."""
    run = SimpleNamespace(id=uuid4(), tags=[])
    seen = SimpleNamespace(run=run, marks=[], cleared=[], keys=[], resumed=[])

    def suspended(suspended_run, state):
        assert suspended_run is run
        seen.keys.append(state.state_details.pause_key)
        raise Pause(state=state)

    monkeypatch.setattr(suspend, "can_suspend", lambda: True)
    monkeypatch.setattr(suspend, "this_run", lambda: run)
    monkeypatch.setattr(suspend, "suspend", suspended)
    monkeypatch.setattr(suspend, "mark_retry", seen.marks.append)
    monkeypatch.setattr(suspend, "clear_marks", seen.cleared.append)
    monkeypatch.setattr(suspend, "resume", lambda _client, run_id: seen.resumed.append(run_id))
    return seen


@pytest.mark.parametrize("kind", PASSING)
def test_a_step_that_fails_temporarily_suspends_the_run_with_a_retry_mark(deployed, kind):
    def step():
        raise kind("away")

    with pytest.raises(Pause):
        outlast(step, key="steps", timeout=DAY)
    assert deployed.marks == [deployed.run.id]
    assert deployed.keys[0].startswith(f"{RETRY_KEY}steps:")


def test_a_failed_check_suspends_with_a_retry_mark_and_a_successful_one_clears_it(deployed):
    def away():
        raise ServiceUnavailable("503")

    with pytest.raises(Pause):
        wait_until(away, key="results-k", timeout=DAY)
    assert (deployed.marks, deployed.cleared) == ([deployed.run.id], [])
    with pytest.raises(Pause):
        wait_until(lambda: None, key="results-k", timeout=DAY)
    assert (deployed.marks, deployed.cleared) == ([deployed.run.id], [deployed.run])


@pytest.mark.parametrize(
    "error", [ServiceUnavailable("503"), Unauthorized("401"), OSError("Prefect is away")]
)
def test_no_error_after_the_suspension_ends_the_run(deployed, error):
    answers = iter([None, error])

    def ready():
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    with pytest.raises(Pause):
        wait_until(ready, key="results-k", timeout=DAY)
    assert deployed.marks == [deployed.run.id]
    assert deployed.resumed == []


def test_a_mark_that_cannot_be_set_ends_nothing(deployed, monkeypatch):
    def refused(_run_id):
        raise OSError("Prefect is away")

    monkeypatch.setattr(suspend, "mark_retry", refused)

    def away():
        raise ServiceUnavailable("503")

    with pytest.raises(Pause):
        wait_until(away, key="k", timeout=DAY)


def test_pauses_grow_to_an_hour_and_an_unreadable_mark_counts_as_none():
    assert [pause_after(n).total_seconds() / 60 for n in range(7)] == [5, 5, 10, 20, 40, 60, 60]
    run = SimpleNamespace(tags=["assay", f"{RETRY_TAG}soon"])
    assert retry_count(run) == 0
    now = datetime(2026, 1, 1, tzinfo=UTC)
    run = SimpleNamespace(tags=[f"{RETRY_TAG}2"], state=SimpleNamespace(timestamp=now))
    assert not is_due(run, now + timedelta(minutes=8))
    assert is_due(run, now + timedelta(minutes=9, seconds=1))


def test_a_run_that_could_not_be_marked_is_found_by_what_it_waits_for():
    now = datetime(2026, 1, 1, tzinfo=UTC)

    def suspended(key, *tags):
        details = SimpleNamespace(pause_key=key)
        return SimpleNamespace(tags=list(tags), state=SimpleNamespace(timestamp=now, state_details=details))

    again = f"{RETRY_KEY}order-k:1"
    assert lacks_retry_mark(suspended(again, "assay"))
    assert not lacks_retry_mark(suspended(again, f"{RETRY_TAG}1"))
    assert not lacks_retry_mark(suspended("results-k:1", "assay-experiment:e"))
    # One whose question is answered, and that could not look since: it bears the question's mark alone.
    asked = suspended(again, ASKS_TAG)
    assert not is_due(asked, now + timedelta(minutes=3))
    assert is_due(asked, now + timedelta(minutes=4, seconds=1))


def test_a_tag_shows_that_a_run_was_suspended():
    assert not was_suspended(["assay", "assay-group:g"])
    for tag in (ASKS_TAG, f"{RETRY_TAG}1", "assay-experiment:e", "assay-waits:g"):
        assert was_suspended(["assay", tag])


def test_a_mark_counts_up_and_is_taken_away(monkeypatch):
    record = {"tags": ["assay"]}
    run = SimpleNamespace(id=uuid4(), tags=record["tags"])

    class Client:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def read_flow_run(self, _run_id):
            return SimpleNamespace(id=run.id, tags=list(record["tags"]))

        def update_flow_run(self, _run_id, tags):
            record["tags"] = tags

    for module in (trouble, "prefect_assay.runs.tags"):
        target = module if isinstance(module, str) else module.__name__
        monkeypatch.setattr(f"{target}.get_client", lambda **_: Client())
    for _ in range(7):
        trouble.mark_retry(run.id)
    assert record["tags"] == ["assay", f"{RETRY_TAG}5"]
    run.tags = [*record["tags"], ASKS_TAG]
    record["tags"] = run.tags
    trouble.clear_marks(run)
    assert record["tags"] == ["assay"]
