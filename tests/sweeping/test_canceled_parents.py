"""A canceled campaign or loop: what it has started is canceled, also what crashes while it is canceled."""

from datetime import UTC, datetime
from types import SimpleNamespace
from uuid import uuid4

import pytest
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.client.schemas.responses import SetStateStatus
from prefect.states import Cancelled, Completed, Crashed, Running, Scheduled

from prefect_assay.runs.tags import CHILDREN_TAG, GROUP_TAG, WAITS_TAG
from prefect_assay.sweeping import cancellations
from prefect_assay.sweeping.cancellations import report_canceled_runs

PARAMETERS = {"credentials": {}, "policy": {}, "archive": {}, "campaign_id": "c"}


class Prefect:
    """Runs by state and tag. A run that is killed stays Cancelling until the test ends it."""

    def __init__(self):
        self.runs, self.artifacts = {}, []

    def run(self, name, state, *tags):
        run = FlowRun(
            id=uuid4(), flow_id=uuid4(), name=name, state=state, tags=list(tags), parameters=PARAMETERS
        )
        self.runs[run.id] = run
        return run

    def read_flow_runs(self, *, flow_run_filter, **_):
        tags, states = flow_run_filter.tags, flow_run_filter.state
        return [
            run
            for run in self.runs.values()
            if (tags is None or set(tags.all_) <= set(run.tags))
            and (states is None or run.state.type in states.type.any_)
        ]

    def set_flow_run_state(self, run_id, state, **_):
        self.runs[run_id].state = state
        return SimpleNamespace(status=SetStateStatus.ACCEPT)

    def create_artifact(self, artifact):
        self.artifacts.append(artifact)

    def said_of(self, run):
        return [artifact.data for artifact in self.artifacts if artifact.flow_run_id == run.id]

    def set_tag(self, run_id, prefix, value):
        run = self.runs[run_id]
        run.tags = [*(tag for tag in run.tags if not tag.startswith(prefix)), prefix + value]

    def sweep(self):
        problems = []
        report_canceled_runs(self, datetime.now(UTC), problems)
        assert problems == []


@pytest.fixture
def prefect(monkeypatch):
    server = Prefect()
    monkeypatch.setattr(cancellations, "set_tag", server.set_tag)
    return server


def test_a_child_that_crashes_while_it_is_canceled_is_canceled_again(prefect):
    parent = prefect.run("loop", Cancelled(), CHILDREN_TAG + "g", WAITS_TAG + "g")
    child = prefect.run("c-1", Running(), GROUP_TAG + "g")
    prefect.sweep()
    assert child.state.type is StateType.CANCELLING
    for crashed in (Crashed(), Scheduled(name="AwaitingRetry")):
        child.state = crashed
        prefect.sweep()
        assert child.state.type in {StateType.CANCELLED, StateType.CANCELLING}
    child.state = Cancelled()
    prefect.sweep()
    assert "assay-canceled:0-told" in parent.tags
    (said,) = prefect.said_of(parent)
    assert "c-1: is canceled with it" in said

    child.state = Running()  # somebody has started it again
    prefect.sweep()
    assert child.state.type is StateType.RUNNING


@pytest.mark.parametrize("state", [Completed(), Running()])
def test_what_has_ended_or_is_shared_needs_no_second_look(prefect, state):
    parent = prefect.run("loop", Cancelled(), CHILDREN_TAG + "g")
    child = prefect.run("c-1", state, GROUP_TAG + "g")
    if state.is_running():
        prefect.run("other", State(type=StateType.PAUSED), WAITS_TAG + "g")
    prefect.sweep()
    assert child.state is state
    assert "assay-canceled:0-told" in parent.tags
    assert len(prefect.said_of(parent)) == 1
