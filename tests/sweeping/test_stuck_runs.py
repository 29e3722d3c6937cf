"""What is advised for a run that hangs."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from uuid import uuid4

import pytest
from prefect.client.schemas.objects import FlowRun, State, StateType

from prefect_assay.sweeping.stuck_runs import find_stuck_runs

NOW = datetime(2026, 11, 22, tzinfo=UTC)
OURS = {"credentials": {}, "policy": {}, "archive": {}}


class Server:
    """One run, without heartbeats."""

    def __init__(self, kind):
        state = State(type=kind, timestamp=NOW - timedelta(hours=2))
        self.run = FlowRun(id=uuid4(), flow_id=uuid4(), name="c", parameters=OURS, state=state)

    def read_flow_runs(self, *, flow_run_filter, **_):
        return [self.run] if self.run.state.type in flow_run_filter.state.type.any_ else []

    def read_events(self, *_, **__):
        return SimpleNamespace(events=[])


@pytest.mark.parametrize(
    ("kind", "advice"),
    [(StateType.RUNNING, "or set it to Crashed"), (StateType.CANCELLING, "the sweep sets it to Cancelled")],
)
def test_a_run_that_is_being_canceled_is_not_to_be_started_again(kind, advice):
    (problem,) = find_stuck_runs(Server(kind), NOW)
    assert "without a heartbeat" in problem.text
    assert advice in problem.line
    assert ("Crashed" in problem.line) is (kind is StateType.RUNNING)
