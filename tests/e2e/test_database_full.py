"""The disk under the embedded PostgreSQL is full while a run waits, and while one orders; the lab's records are the judge."""

import tempfile
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import httpx
import pytest
from prefect.client.orchestration import get_client
from prefect.exceptions import PrefectHTTPStatusError
from prefect.settings import (
    PREFECT_CLIENT_MAX_RETRIES,
    PREFECT_FLOWS_HEARTBEAT_FREQUENCY,
    temporary_settings,
)

from prefect_assay.local.postgres_host import FOLDER_SETTING
from support.disk import fill, small_disk
from support.runs.held import DESIGN
from support.runs.sweeps import swept
from support.runs.world import a_world, eventually

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(1500)]


@pytest.fixture(scope="module")
def disk():
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)  # an unprivileged account enters it where root runs this
        with small_disk(Path(name) / "disk", "160m") as folder:
            yield folder


@pytest.fixture(scope="module")
def world(tmp_path_factory, disk):
    heartbeat = {PREFECT_FLOWS_HEARTBEAT_FREQUENCY: 30}
    env = {FOLDER_SETTING: str(disk / "database"), "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30"}
    with (
        temporary_settings(heartbeat),
        a_world(tmp_path_factory.mktemp("database-full"), stack_options={"env": env}) as made,
    ):
        yield made


def refuses(world):
    """Prefect's server writes nothing any more, or its database has stopped."""
    with (
        temporary_settings({PREFECT_CLIENT_MAX_RETRIES: 0}),
        get_client(sync_client=True, httpx_settings={"timeout": 10}) as client,
    ):
        try:
            client.request("POST", "/variables/", json={"name": f"v{uuid4().hex}", "value": "x" * 4000})
        except (PrefectHTTPStatusError, httpx.HTTPError):
            return True
    return False


def answers(world):
    with get_client(sync_client=True) as client:
        return not refuses(world) and client.read_flow_runs(limit=1)


def test_what_waits_and_what_orders_goes_on_once_there_is_space(world, disk):
    waiting = world.experiment("full-waits", DESIGN)
    world.asleep(waiting, seconds=150)

    before = world.creates()
    world.fault("late_answer", method="POST", path="/api/v1/experiments", seconds=20)
    orders = world.experiment("full-orders", DESIGN)
    eventually(lambda: world.creates() > before, seconds=150, what="the create to be handled")
    filler = fill(disk)
    eventually(lambda: fill(disk) and refuses(world), seconds=120, what="the database to refuse")
    world.advance(days=16)
    eventually(lambda: not world.stack.runner_processes(), seconds=300, what="the process to end")
    assert len(world.orders("full-orders")) == 1

    filler.unlink()
    eventually(lambda: answers(world), seconds=120, what="the database to write again")
    later = timedelta()

    def completed():
        nonlocal later
        later += timedelta(minutes=10)
        if not world.stack.running("runner"):  # Prefect's runner gives up; a supervisor starts it again
            world.stack.start_runner()
        swept(later)
        world.advance(days=16)
        return all(world.run(run).state.name == "Completed" for run in (waiting, orders))

    eventually(completed, seconds=500, what="both runs to complete")
    for campaign in ("full-waits", "full-orders"):
        assert len(world.orders(campaign)) == len(world.settlements(campaign)) == 1
