"""Which child run a parent takes for its own, by what Prefect knows of both."""

from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from uuid import UUID, uuid4

import pytest
from prefect.client.schemas.objects import FlowRun, State, StateType

from prefect_assay.runs import children
from prefect_assay.runs.states import has_ended
from prefect_assay.runs.tags import REPLACED_TAG

START = datetime(2026, 11, 22, tzinfo=UTC)


def at(minutes):
    return START + timedelta(minutes=minutes)


def run(key, created, kind):
    state = State(type=kind, timestamp=at(created))
    return FlowRun(id=uuid4(), flow_id=uuid4(), name=key, created=at(created), state=state)


class Prefect:
    """Child runs by idempotency key, and the history of one parent."""

    def __init__(self, monkeypatch, *history, execution=2, created=0):
        self.runs, self.now = {}, 100
        self.history = [State(type=kind, timestamp=at(minutes)) for kind, minutes in history]
        parent = SimpleNamespace(id=uuid4(), created=at(created), run_count=execution)
        monkeypatch.setattr(children, "this_run", lambda: parent)
        monkeypatch.setattr(children, "start_run", self.start_run)
        monkeypatch.setattr(children, "get_client", lambda **_: nullcontext(self))

    def start_run(self, _deployment, _parameters, *, idempotency_key, **_):
        return self.runs.setdefault(idempotency_key, run(idempotency_key, self.now, StateType.SCHEDULED))

    def read_flow_run(self, run_id):
        return self.replaced[run_id]

    def read_flow_run_states(self, run_id):
        assert isinstance(run_id, UUID)
        return self.history

    def child(self, *, done=True):
        return children.start_child(
            "experiment", "k", {}, run_name="r", groups=[], is_done=lambda _: done
        ).name


@pytest.mark.parametrize(
    ("flow", "here"), [("campaign", True), ("design-build-test", False), ("experiment", False)]
)
def test_only_a_campaign_is_said_to_run_without_a_deployment(flow, here):
    message = str(children.no_deployment(children.deployment_of(flow)))
    assert "prefect-assay deploy" in message
    assert ("--here" in message) == here


WAITED = (StateType.RUNNING, 0), (StateType.PAUSED, 1), (StateType.SCHEDULED, 20), (StateType.RUNNING, 21)
RETRIED = *WAITED, (StateType.FAILED, 22), (StateType.SCHEDULED, 40), (StateType.RUNNING, 41)
CRASHED = *WAITED, (StateType.CRASHED, 22), (StateType.SCHEDULED, 40), (StateType.RUNNING, 41)


@pytest.mark.parametrize("kind", [StateType.FAILED, StateType.CANCELLED])
@pytest.mark.parametrize(
    ("history", "expected"),
    [(WAITED, "k-1"), (CRASHED, "k-1"), (RETRIED, "k-2")],
    ids=["woken", "crashed", "retried"],
)
def test_a_retried_parent_tries_its_failed_children_again(monkeypatch, history, expected, kind):
    prefect = Prefect(monkeypatch, *history)
    prefect.runs["k-1"] = run("k-1", 2, kind)
    assert prefect.child() == expected
    assert prefect.child() == expected


def test_the_second_failure_is_the_result_of_the_retry(monkeypatch):
    prefect = Prefect(monkeypatch, *RETRIED)
    prefect.runs |= {"k-1": run("k-1", 2, StateType.FAILED), "k-2": run("k-2", 42, StateType.FAILED)}
    assert prefect.child() == "k-2"


def test_a_child_that_was_retried_itself_is_waited_for(monkeypatch):
    prefect = Prefect(monkeypatch, *RETRIED)
    prefect.runs["k-1"] = run("k-1", 2, StateType.RUNNING)
    assert prefect.child() == "k-1"


@pytest.mark.parametrize(("done", "expected"), [(True, "k-1"), (False, "k-2")])
def test_a_child_that_has_succeeded_is_not_tried_again(monkeypatch, done, expected):
    prefect = Prefect(monkeypatch, *RETRIED)
    prefect.runs["k-1"] = run("k-1", 2, StateType.COMPLETED)
    assert prefect.child(done=done) == expected


def test_a_child_that_was_replaced_is_followed(monkeypatch):
    prefect = Prefect(monkeypatch, *WAITED)
    old, new = run("k-1", 2, StateType.CANCELLED), run("goes on", 3, StateType.PAUSED)
    old.tags = [f"{REPLACED_TAG}{new.id}"]
    prefect.runs["k-1"], prefect.replaced = old, {new.id: new}
    assert prefect.child() == "goes on"
    assert not has_ended(old)


def test_a_failure_before_the_parent_began_is_tried_again(monkeypatch):
    prefect = Prefect(monkeypatch, execution=1, created=5)
    prefect.runs["k-1"] = run("k-1", 2, StateType.FAILED)
    assert prefect.child() == "k-2"
