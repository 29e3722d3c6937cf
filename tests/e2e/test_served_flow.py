"""`Flow.serve` of a user's own durable flow: the process that it starts runs a durable flow."""

import subprocess
import sys

import pytest
from prefect.exceptions import ObjectNotFound

from support.runs.world import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

OWN = """
from prefect.context import FlowRunContext
from prefect.states import Completed
from prefect_assay.runs.durable import durable_flow

@durable_flow(name="own-served")
def own(count: int = 1):
    flow = FlowRunContext.get().flow
    return Completed(message=f"{type(flow).__name__} {flow.retries} {count}")

if __name__ == "__main__":
    own.with_options(description="a copy").serve(name="copied")
"""


def test_a_served_copy_runs_durably(world, tmp_path):
    (tmp_path / "own_flows.py").write_text(OWN)
    with subprocess.Popen([sys.executable, "own_flows.py"], cwd=tmp_path, env=world.stack.env) as served:
        try:
            deployment = eventually(lambda: found(world), seconds=120, what="the served deployment")
            run = world.api.create_flow_run_from_deployment(deployment.id, parameters={"count": 3})
            assert world.until(run, "Completed", seconds=120).state.message == "DurableFlow 0 3"
        finally:
            served.terminate()


def found(world):
    try:
        return world.api.read_deployment_by_name("own-served/copied")
    except ObjectNotFound:
        return None
