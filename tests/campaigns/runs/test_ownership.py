"""Flows of other packages with the same names: their runs are not reported, and their blocks not read."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from prefect.client.schemas.objects import FlowRun, State, StateType

from prefect_assay.campaigns.runs.queries import FLOW_NAMES, is_assay_run
from prefect_assay.flows import campaign, design_build_test

NOW = datetime(2026, 11, 22, tzinfo=UTC)
FOREIGN = {"account": {"$ref": str(uuid4())}, "spec": {"learning_rate": 0.1}}


def run(parameters, kind):
    then = NOW - timedelta(hours=2)
    state = State(type=kind, timestamp=then)
    return FlowRun(
        id=uuid4(), flow_id=uuid4(), name="a-run", parameters=parameters, state=state, end_time=then
    )


@pytest.mark.parametrize("flow", [campaign, design_build_test], ids=lambda flow: flow.name)
def test_every_assay_flow_has_the_parameters_that_identify_it(flow):
    required = set(flow.parameters.required)
    assert flow.name in FLOW_NAMES
    assert is_assay_run(run(dict.fromkeys(required), StateType.RUNNING))


def test_a_flow_of_the_same_name_is_not_an_assay_run():
    assert not is_assay_run(run(FOREIGN, StateType.RUNNING))
    assert not is_assay_run(run({}, StateType.RUNNING))
