"""Two executions of one run at once: a process that was declared dead leaves the run to the one that has taken it up."""

from contextlib import contextmanager
from datetime import timedelta
from types import SimpleNamespace
from uuid import uuid4

import pytest
from prefect.exceptions import Abort
from prefect.states import AwaitingRetry, Crashed, Pending, Running

from prefect_assay.approvals import questions
from prefect_assay.approvals.spending import SpendingApproval
from prefect_assay.runs import suspend, wait_until


def wait():
    wait_until(lambda: None, key="test", timeout=timedelta(days=1))


def ask():
    questions.ask(SpendingApproval, question="price-test", description="May it?", hours=1)


def go_on_in_a_run_that_is(state, monkeypatch, step):
    run = SimpleNamespace(id=uuid4(), state=state, deployment_id=uuid4(), parent_task_run_id=None, tags=[])

    @contextmanager
    def client(**_options):
        yield SimpleNamespace(read_flow_run=lambda _run_id: run)

    def refused(**_options):
        # What Prefect raises when the server does not suspend, because the run is not running.
        raise RuntimeError("Flow run cannot be suspended. Received unexpected state from API")

    monkeypatch.setattr(suspend, "get_client", client)
    monkeypatch.setattr(suspend, "suspend_flow_run", refused)
    monkeypatch.setattr(suspend.FlowRunContext, "get", lambda: SimpleNamespace(flow_run=run))
    monkeypatch.setattr(questions, "add_tags", lambda _run_id, _tags: None)
    monkeypatch.setattr(questions, "_stored", lambda form, _key: form)
    step()


@pytest.mark.parametrize("step", [wait, ask])
@pytest.mark.parametrize("state", [Crashed(), AwaitingRetry(), Pending()], ids=lambda state: state.name)
def test_a_process_that_has_lost_its_run_leaves_it_as_it_is(state, step, monkeypatch):
    with pytest.raises(Abort, match="another execution"):
        go_on_in_a_run_that_is(state, monkeypatch, step)


@pytest.mark.parametrize("step", [wait, ask])
def test_any_other_refusal_is_an_error(step, monkeypatch):
    with pytest.raises(RuntimeError, match="cannot be suspended"):
        go_on_in_a_run_that_is(Running(), monkeypatch, step)
