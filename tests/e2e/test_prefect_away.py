"""A Prefect API that does not answer ends no run: it crashes, is taken up again, and orders nothing twice."""

import subprocess
import sys

import httpx
import pytest
from prefect.states import AwaitingRetry

from prefect_assay.runs.durable import durable_flow
from support.runs.prefect_proxy import PrefectProxy

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

# What a run asks of Prefect, from its parameters to its suspension. 500 and 504 are the last word for Prefect's client,
# after 503 it asks again.
FAULTS = {
    "a block": ("GET /api/block_documents/", 500, {}),
    "an artifact": ("POST /api/artifacts", 500, {}),
    "an artifact, for long": ("POST /api/artifacts", 503, {"times": 9}),
    "the suspension": ("POST /api/flow_runs/{id}/set_state", 500, {"after": 1}),
    "the suspension, taken": ("POST /api/flow_runs/{id}/set_state", 500, {"after": 1, "passed_on": True}),
}
QUICK = {"a block", "the suspension, taken"}


@pytest.fixture
def proxy(world):
    with PrefectProxy(world.stack.api_url) as made:
        yield made


def execute(world, run, api_url):
    """One process of Prefect's engine, as a runner starts it."""
    own = {
        "PREFECT_API_URL": api_url,
        "PREFECT__FLOW_RUN_ID": str(run.id),
        "PREFECT_CLIENT_MAX_RETRIES": "1",
        "PREFECT_CLIENT_RETRY_JITTER_FACTOR": "0",
    }
    return subprocess.run(
        [sys.executable, "-m", "prefect.engine"],
        env=world.stack.env | own,
        cwd=world.folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    "what", [pytest.param(what, marks=[] if what in QUICK else [pytest.mark.long]) for what in FAULTS]
)
def test_a_run_that_prefect_leaves_without_an_answer_goes_on_later(world, held, proxy, what):
    campaign = what.replace(", ", "-").replace(" ", "-")
    request, status, how = FAULTS[what]
    run = held.experiment(campaign)
    fault = proxy.fault(request.format(id=run.id), status, **how)
    process = execute(world, run, proxy.api_url)
    assert fault.struck, process.stderr
    state = held.state(run)
    assert state.name == "Crashed", (state, process.stderr)
    assert "Nothing is lost" in state.message
    proxy.faults.clear()
    world.api.set_flow_run_state(run.id, AwaitingRetry())  # as the automation and the sweep do
    execute(world, run, proxy.api_url)
    assert held.state(run).name == "Suspended"
    assert len(world.orders(campaign)) == 1
    assert len(world.settlements(campaign)) == 1


def test_an_answer_that_is_a_refusal_ends_the_run(world, held, proxy):
    run = held.experiment("refused")
    proxy.fault("POST /api/artifacts", 403)
    execute(world, run, proxy.api_url)
    assert held.state(run).name == "Failed"


def test_in_a_script_it_is_the_error_itself(world):
    @durable_flow(name="of-a-script")
    def away():
        raise httpx.ConnectError("refused")

    with pytest.raises(httpx.ConnectError):
        away()
    assert world.api.read_flow_by_name("of-a-script")
