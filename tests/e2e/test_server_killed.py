"""The server that `prefect-assay server` starts, on its own PostgreSQL: killed, its database killed, and answering."""

import os
import signal

import httpx
import pytest

from support.runs.world import a_world, eventually

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(400)]

DESIGN = "SESELEAKRQELKELMEKTEEKARELLAKGDVAGARAAYGAYLLKAAE"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with a_world(tmp_path_factory.mktemp("killed")) as made:
        yield made


def postmaster(world):
    return int((world.stack.database.embedded.data / "postmaster.pid").read_text().splitlines()[0])


def test_a_killed_server_and_a_killed_database_lose_no_waiting_run(world):
    run = world.experiment("killed", DESIGN)
    world.asleep(run, seconds=120)
    before = world.history(run)

    os.kill(world.stack.pid("server"), signal.SIGKILL)
    eventually(lambda: not world.stack.running("server"), seconds=20, what="the server's end")
    world.stack.start_server()  # while a helper process stops the database, which the server has left
    assert world.history(run) == before
    first = postmaster(world)

    os.kill(first, signal.SIGKILL)
    eventually(lambda: counted(world) is not None, seconds=90, what="an answer of the database")
    assert postmaster(world) != first
    assert world.history(run) == before

    world.advance(days=16)
    world.until(run, "Completed", seconds=120)
    assert len(world.orders("killed")) == len(world.settlements("killed")) == 1


def counted(world):
    try:
        answer = httpx.post(f"{world.stack.api_url}/flow_runs/count", json={}, timeout=30)
    except httpx.TransportError:
        return None
    return answer.json() if answer.status_code == 200 else None


def test_requests_one_after_the_other_and_many_at_once_are_all_answered(world):
    """What SQLite refused: 5 of 407 and 192 of 200."""
    url = f"{world.stack.api_url}/flow_runs/filter"
    with httpx.Client(timeout=60) as client:
        answers = [client.post(url, json={"limit": 20}).status_code for _ in range(400)]
    assert set(answers) == {200}
