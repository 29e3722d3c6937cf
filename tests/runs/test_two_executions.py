"""Two executions of one run at once: a process that was declared dead leaves the run to the one that has taken it up."""

from contextlib import contextmanager
from datetime import timedelta
from types import SimpleNamespace
from uuid import uuid4

import pytest
from prefect.client.schemas.responses import SetStateStatus
from prefect.exceptions import Abort, Pause
from prefect.states import AwaitingRetry, Crashed, Pending, Running

from prefect_assay.approvals import questions
from prefect_assay.approvals.spending import SpendingApproval
from prefect_assay.runs import suspend, wait_until


def wait():
    wait_until(lambda: None, key="test", timeout=timedelta(days=1))


def ask():
    questions.ask(SpendingApproval, question="price-test", title="May it", description="May it?", hours=1)


def go_on_in_a_run_that_is(state, monkeypatch, step, *, answer_lost=False, woken=False):
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

    monkeypatch.setattr(suspend, "get_client", client)
    monkeypatch.setattr(suspend.FlowRunContext, "get", lambda: SimpleNamespace(flow_run=run))
    monkeypatch.setattr(questions, "add_tags", lambda _run_id, _tags: None)
    monkeypatch.setattr(questions, "emit", lambda _event: None)
    monkeypatch.setattr(SpendingApproval, "save", classmethod(lambda _cls, _keyset: None))
    step()


@pytest.mark.parametrize("step", [wait, ask])
@pytest.mark.parametrize("state", [Crashed(), AwaitingRetry(), Pending()], ids=lambda state: state.name)
def test_a_process_that_has_lost_its_run_leaves_it_as_it_is(state, step, monkeypatch):
    with pytest.raises(Abort, match="another execution"):
        go_on_in_a_run_that_is(state, monkeypatch, step)


@pytest.mark.parametrize("step", [wait, ask])
def test_any_other_refusal_is_an_error(step, monkeypatch):
    with pytest.raises(RuntimeError, match="refused the suspension: Cannot suspend"):
        go_on_in_a_run_that_is(Running(), monkeypatch, step)


@pytest.mark.parametrize("step", [wait, ask])
def test_a_suspension_whose_answer_was_lost_is_one(step, monkeypatch):
    with pytest.raises(Pause):
        go_on_in_a_run_that_is(Running(), monkeypatch, step, answer_lost=True)


@pytest.mark.parametrize("step", [wait, ask])
def test_a_suspension_whose_answer_was_lost_and_that_was_woken_leaves_the_run_to_the_next(step, monkeypatch):
    """The run is running in the process that woke it: an error raised here would fail it."""
    with pytest.raises(Abort, match="another execution"):
        go_on_in_a_run_that_is(Running(), monkeypatch, step, answer_lost=True, woken=True)
