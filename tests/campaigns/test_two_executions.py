"""Two executions of one run at once: a process that was declared dead leaves the run to the one that has taken it up."""

from contextlib import contextmanager
from datetime import UTC, datetime
from types import SimpleNamespace
from uuid import uuid4

import pytest
from prefect.client.schemas.responses import SetStateStatus
from prefect.exceptions import Abort, Pause
from prefect.states import AwaitingRetry, Crashed, Pending, Running

from prefect_assay.campaigns import suspension
from prefect_assay.campaigns.runs.looks import Look
from prefect_assay.campaigns.suspension import suspend_until_news

NOW = datetime(2026, 11, 27, tzinfo=UTC)


def wait():
    suspend_until_news("in the laboratory", look=Look.after_success(NOW), has_news=lambda: False)


def wait_in_a_run_that_is(state, monkeypatch, *, answer_lost=False, woken=False):
    policy = SimpleNamespace(pause_keys={"another"})
    run = SimpleNamespace(
        id=uuid4(),
        state=state,
        deployment_id=uuid4(),
        parent_task_run_id=None,
        tags=[],
        empirical_policy=policy,
    )

    def refused(_run_id, proposed):
        if answer_lost:  # the first attempt has taken effect, and Prefect refuses its repetition
            run.state = state if woken else proposed
            policy.pause_keys.add(proposed.state_details.pause_key)
        reason = "Cannot suspend flows that are not currently running."
        return SimpleNamespace(status=SetStateStatus.REJECT, details=SimpleNamespace(reason=reason))

    @contextmanager
    def client(**_options):
        yield SimpleNamespace(read_flow_run=lambda _run_id: run, set_flow_run_state=refused)

    monkeypatch.setattr(suspension, "get_client", client)
    monkeypatch.setattr(suspension, "this_run", lambda: run)
    wait()


@pytest.mark.parametrize("state", [Crashed(), AwaitingRetry(), Pending()], ids=lambda state: state.name)
def test_a_process_that_has_lost_its_run_leaves_it_as_it_is(state, monkeypatch):
    with pytest.raises(Abort, match="this execution is over"):
        wait_in_a_run_that_is(state, monkeypatch)


def test_any_other_refusal_is_an_error(monkeypatch):
    with pytest.raises(RuntimeError, match="refused the suspension: Cannot suspend"):
        wait_in_a_run_that_is(Running(), monkeypatch)


def test_a_suspension_whose_answer_was_lost_is_one(monkeypatch):
    with pytest.raises(Pause):
        wait_in_a_run_that_is(Running(), monkeypatch, answer_lost=True)


def test_a_suspension_whose_answer_was_lost_and_that_was_woken_leaves_the_run_to_the_next(monkeypatch):
    """The run is running in the process that woke it: an error raised here would fail it."""
    with pytest.raises(Abort, match="another execution"):
        wait_in_a_run_that_is(Running(), monkeypatch, answer_lost=True, woken=True)


@pytest.mark.parametrize("has_news", [True, False])
def test_news_that_came_while_a_run_was_suspended_resumes_it_at_once(has_news, monkeypatch):
    """A wake-up right before the suspension met a running run, and was lost."""
    run = SimpleNamespace(id=uuid4(), empirical_policy=SimpleNamespace(pause_keys=set()))
    resumed = []

    @contextmanager
    def client(**_options):
        yield SimpleNamespace(set_flow_run_state=lambda *_: SimpleNamespace(status=SetStateStatus.ACCEPT))

    monkeypatch.setattr(suspension, "get_client", client)
    monkeypatch.setattr(suspension, "this_run", lambda: run)
    monkeypatch.setattr(suspension, "resume_run", lambda _client, run_id: resumed.append(run_id))
    with pytest.raises(Pause):
        suspend_until_news("in the laboratory", look=Look.after_success(NOW), has_news=lambda: has_news)
    assert resumed == [run.id] * has_news
