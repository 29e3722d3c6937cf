"""Forked flow runs as Prefect's runner sees them: real processes, no Prefect server."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from uuid import uuid4

import pytest

from prefect_assay.localstack.processes import descendants
from prefect_assay.prefork.starter import ForkedRun, ForkingStarter

pytestmark = [
    pytest.mark.long,  # three processes that import everything
    pytest.mark.skipif(sys.platform != "linux", reason="flow runs are forked on Linux only"),
    pytest.mark.timeout(240),
]

COMMAND = [sys.executable, "-m", "prefect.engine"]
UNFORKED = object()


@pytest.fixture(scope="module")
def starter():
    """A starter whose fork server is ready; it hands everything else to a function that returns UNFORKED."""

    async def unforked(*_, **__):
        return UNFORKED

    starter = ForkingStarter(unforked)
    deadline = time.monotonic() + 120
    while not starter.ready():
        assert time.monotonic() < deadline, "the fork server is not ready"
        assert starter.server.poll() is None, "the fork server has ended"
        time.sleep(0.1)
    yield starter
    starter._control.close()
    assert starter.server.wait(30) == 0  # it ends with the socket of its starter


@pytest.fixture
def silent_api():
    """An API that takes connections and never answers: a flow run that asks it stays where it is."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/api"


class Started:
    """Stands in for Prefect's task status."""

    def __init__(self):
        self.is_started = asyncio.Event()

    def started(self, value):
        self.process = value
        self.is_started.set()


def environment(tmp_path, **own):
    return {**os.environ, "PREFECT_HOME": str(tmp_path), "PREFECT__FLOW_RUN_ID": str(uuid4()), **own}


def run(starter, env, cwd=None, meanwhile=None):
    """Run the engine's command; the process at its end. `meanwhile` is called with it while it runs."""

    async def whole():
        status = Started()
        task = asyncio.create_task(starter(COMMAND, task_status=status, env=env, cwd=cwd, stream_output=True))
        await asyncio.wait(
            [task, asyncio.create_task(status.is_started.wait())], return_when=asyncio.FIRST_COMPLETED
        )
        if meanwhile and not task.done():
            await asyncio.to_thread(meanwhile, status.process)
        return await asyncio.wait_for(task, 60)

    return asyncio.run(whole())


def test_the_exit_code_is_the_engines(starter, tmp_path):
    process = run(starter, environment(tmp_path, PREFECT__FLOW_RUN_ID="no id"))
    assert isinstance(process, ForkedRun)
    assert process.returncode == 1


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_signal_ends_a_run_and_is_its_exit_code(starter, tmp_path, silent_api, how):
    def meanwhile(process):
        assert process.pid in {entry.pid for entry in descendants(os.getpid())}
        os.kill(process.pid, how)

    process = run(starter, environment(tmp_path, PREFECT_API_URL=silent_api), meanwhile=meanwhile)
    assert process.returncode == -how


def test_a_run_has_its_own_environment_and_folder(starter, tmp_path, silent_api):
    def meanwhile(process):
        folder = Path(f"/proc/{process.pid}/cwd")
        deadline = time.monotonic() + 30
        while folder.readlink() != tmp_path:
            assert time.monotonic() < deadline, folder.readlink()
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGKILL)

    # Only this environment has the address that makes the engine wait; else it would have ended with 1.
    env = environment(tmp_path, PREFECT_API_URL=silent_api)
    assert run(starter, env, cwd=tmp_path, meanwhile=meanwhile).returncode == -signal.SIGKILL


def test_a_run_does_not_ask_for_the_servers_version_as_its_runner_did(starter, tmp_path):
    asked = []

    def meanwhile(process):
        server.settimeout(30)
        connection, _ = server.accept()
        with connection:
            connection.settimeout(30)
            asked.append(connection.recv(4096))
        os.kill(process.pid, signal.SIGKILL)

    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/api"
        run(starter, environment(tmp_path, PREFECT_API_URL=url), meanwhile=meanwhile)
    assert asked[0].startswith(b"GET /api/flow_runs/"), asked


def test_runs_at_the_same_time_are_kept_apart(starter, tmp_path, silent_api):
    env = environment(tmp_path, PREFECT_API_URL=silent_api)

    async def both():
        statuses = [Started(), Started()]
        tasks = [asyncio.create_task(starter(COMMAND, task_status=status, env=env)) for status in statuses]
        for status in statuses:
            await asyncio.wait_for(status.is_started.wait(), 60)
        os.kill(statuses[0].process.pid, signal.SIGKILL)
        first = await asyncio.wait_for(tasks[0], 60)
        assert not tasks[1].done()
        os.kill(statuses[1].process.pid, signal.SIGTERM)
        return first, await asyncio.wait_for(tasks[1], 60)

    first, second = asyncio.run(both())
    assert (first.returncode, second.returncode) == (-signal.SIGKILL, -signal.SIGTERM)
    assert first.pid != second.pid


def test_other_commands_are_not_forked(starter):
    assert asyncio.run(starter(["ls"], env={})) is UNFORKED
    assert asyncio.run(starter(COMMAND, env={}, start_new_session=True)) is UNFORKED


@pytest.mark.parametrize("name", ["PYTHONPATH", "PYTHONOPTIMIZE", "LD_PRELOAD"])
def test_a_job_that_sets_what_python_reads_at_its_start_is_not_forked(starter, tmp_path, name):
    env = environment(tmp_path, PREFECT__FLOW_RUN_ID="no id")
    assert asyncio.run(starter(COMMAND, env=env | {name: "another"})) is UNFORKED
    assert run(starter, env | {"ANOTHER": "another"}).returncode == 1


def test_without_the_fork_server_runs_are_started_as_prefect_does(monkeypatch):
    async def unforked(*_, **__):
        return UNFORKED

    starter = ForkingStarter(unforked)
    assert asyncio.run(starter(COMMAND, env={})) is UNFORKED  # it is still importing
    starter.server.kill()
    starter.server.wait(30)
    assert asyncio.run(starter(COMMAND, env={})) is UNFORKED
    starter._control.close()


def test_the_fork_server_ends_with_the_process_that_started_it():
    code = (
        "import time; from prefect_assay.prefork.starter import ForkingStarter\n"
        "s = ForkingStarter(None)\n"
        "while not s.ready(): time.sleep(0.1)\n"
        "print(s.server.pid, flush=True); time.sleep(100)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        pid = int(parent.stdout.readline())
        parent.kill()
    deadline = time.monotonic() + 30
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < deadline, "the fork server has outlived its runner"
        time.sleep(0.05)
