"""Flows of other packages with the same names: their runs are not reported, and their blocks not read."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from prefect.client.schemas.objects import FlowRun, State, StateType

from prefect_assay.flows import campaign, design_build_test, experiment
from prefect_assay.flows.sweep import _Sweep
from prefect_assay.runs.queries import FLOW_NAMES, is_assay_run
from prefect_assay.sweeping.cancellations import report_canceled_runs
from prefect_assay.sweeping.stuck_runs import find_stuck_runs
from prefect_assay.sweeping.watermarks import SweepState

NOW = datetime(2026, 11, 22, tzinfo=UTC)
OURS = {"credentials": {"$ref": str(uuid4())}, "policy": {}, "archive": {}}
FOREIGN = {"credentials": {"$ref": str(uuid4())}, "spec": {"learning_rate": 0.1}}


def run(parameters, kind):
    then = NOW - timedelta(hours=2)
    state = State(type=kind, timestamp=then)
    return FlowRun(
        id=uuid4(), flow_id=uuid4(), name="a-run", parameters=parameters, state=state, end_time=then
    )


class Server:
    """Lists one run, and takes no order: whatever else is asked of it fails."""

    def __init__(self, listed):
        self.listed = listed

    def read_flow_runs(self, *, flow_run_filter, offset=0, **_):
        kinds = flow_run_filter.state.type.any_ if flow_run_filter.state else [self.listed.state.type]
        return [self.listed] if self.listed.state.type in kinds and not offset else []


@pytest.mark.parametrize("flow", [experiment, campaign, design_build_test], ids=lambda flow: flow.name)
def test_every_assay_flow_has_the_parameters_that_identify_it(flow):
    required = set(flow.parameters.required)
    assert flow.name in FLOW_NAMES
    assert is_assay_run(run(dict.fromkeys(required), StateType.RUNNING))


def test_a_flow_of_the_same_name_is_not_an_assay_run():
    assert not is_assay_run(run(FOREIGN, StateType.RUNNING))
    assert not is_assay_run(run({}, StateType.RUNNING))


@pytest.mark.parametrize("kind", [StateType.CRASHED, StateType.PENDING])
def test_only_our_runs_need_attention(kind):
    assert len(find_stuck_runs(Server(run(OURS, kind)), NOW)) == 1
    assert find_stuck_runs(Server(run(FOREIGN, kind)), NOW) == []


def test_a_canceled_run_of_somebody_else_is_left_alone():
    problems = []
    assert report_canceled_runs(Server(run(FOREIGN, StateType.CANCELLED)), NOW, problems).read == 0
    assert problems == []
    assert report_canceled_runs(Server(run(OURS, StateType.CANCELLED)), NOW, problems).read == 1


def test_the_blocks_of_other_peoples_runs_are_not_read():
    def blocks_of(parameters):
        server = Server(run(parameters, StateType.RUNNING))
        return _Sweep(server, SweepState(server), NOW, 60).watch.started_since(NOW)

    assert len(blocks_of(OURS)) == 1
    assert blocks_of(FOREIGN) == {}
