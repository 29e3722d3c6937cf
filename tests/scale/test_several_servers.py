"""Two Prefect servers on one PostgreSQL and one Redis, with the shipped settings (docs/operating.md).

The runner talks to the first server, the receiver to the second; the test asks both.
"""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from uuid import uuid4

import httpx
import pytest

from support.runs.scale import MISSING, another_server, named, shared_services
from support.runs.world import a_world, eventually
from support.services.prefect_http import open_prefect_http

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.long,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not named(), reason=MISSING),
]

BINDER = "NSDSECPLSHDGYCLHDGVCMYIEALDKYACNCVVGYIGERCQYRDLKWWELR"


@pytest.fixture(scope="module")
def installation(tmp_path_factory):
    """A world on PostgreSQL and Redis, and the address of a second server that the receiver uses."""
    folder = tmp_path_factory.mktemp("scale")
    with (
        shared_services() as env,
        a_world(folder, stack_options={"env": env}) as world,
        another_server(world.stack) as second,
    ):
        world.stack.stop_receiver()
        world.stack.env["PREFECT_API_URL"] = second
        world.stack.start_receiver()
        world.stack.env["PREFECT_API_URL"] = world.stack.api_url
        yield world, second


def test_one_experiment_from_order_to_archive_over_both_servers(installation):
    world, second = installation
    run = world.experiment("scale-once", BINDER)
    world.asleep(run, seconds=120)
    with open_prefect_http(second) as api:
        assert api.get(f"/flow_runs/{run.id}").json()["state"]["name"] == "Suspended"

    world.advance(days=16)

    world.until(run, "Completed", seconds=120)
    (order,) = world.orders("scale-once")
    assert len(world.settlements("scale-once")) == 1
    assert {d["status"] for d in world.deliveries() if d["experiment_id"] == order.id} == {200}
    assert list((world.folder / "archive" / "scale-once").rglob("manifest.json"))


def test_many_wakes_at_once_through_both_servers_run_the_flow_once(installation):
    """Prefect looks before it locks, so more than one may be told it was accepted; the run still runs once."""
    world, second = installation
    run = world.experiment("scale-race", BINDER, webhook=None)
    world.asleep(run, seconds=120)
    before = world.history(run).count("Running")
    world.advance(days=16)  # without news the flow would not be started
    addresses = [world.stack.api_url, second] * 8

    with ThreadPoolExecutor(len(addresses)) as pool:
        answers = list(
            pool.map(lambda url: httpx.post(f"{url}/flow_runs/{run.id}/resume", timeout=60), addresses)
        )

    assert {a.status_code for a in answers} <= {200, 201}
    assert "ACCEPT" in {a.json()["status"] for a in answers}
    eventually(lambda: world.history(run).count("Running") > before, seconds=60, what="the wake")
    world.until(run, "Completed", seconds=120)
    assert world.history(run).count("Running") == before + 1


def test_an_event_at_one_server_sets_off_an_automation_made_at_the_other(installation):
    world, second = installation
    name = f"assay.scale.{uuid4().hex}"
    automation = {
        "name": name,
        "trigger": {
            "type": "event",
            "posture": "Reactive",
            "expect": [name],
            "threshold": 1,
            "within": 0,
        },
        "actions": [{"type": "do-nothing"}],
    }
    api = open_prefect_http(second)
    made = api.post("/automations/", json=automation).raise_for_status().json()
    executed = {
        "filter": {
            "event": {"name": ["prefect.automation.action.executed"]},
            "resource": {"id": [f"prefect.automation.{made['id']}"]},
        }
    }

    def set_off():
        event = {
            "event": name,
            "id": str(uuid4()),
            "occurred": datetime.now(UTC).isoformat(),
            "resource": {"prefect.resource.id": name},
            "payload": {},
        }
        api.post(f"{world.stack.api_url}/events", json=[event]).raise_for_status()
        answer = api.post("/events/filter", json=executed)
        return answer.raise_for_status().json()["events"]

    assert eventually(set_off, seconds=90, what="the automation")
