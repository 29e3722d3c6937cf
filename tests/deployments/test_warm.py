"""Forked flow runs: as Prefect's runner sees a process it has started. Real processes, no Prefect server."""

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
from prefect_assay.prefork.starter import WarmProcess, WarmStarter

pytestmark = [
    pytest.mark.long,  # three processes that import everything
    pytest.mark.skipif(sys.platform != "linux", reason="flow runs are forked on Linux only"),
    pytest.mark.timeout(240),
]

COMMAND = [sys.executable, "-m", "prefect.engine"]
COLD = object()


@pytest.fixture(scope="module")
def warm():
    """A starter whose zygote is ready; what it does not fork it hands to a function that says so."""

    async def cold(*_, **__):
        return COLD

    starter = WarmStarter(cold)
    deadline = time.monotonic() + 120
    while not starter.ready():
        assert time.monotonic() < deadline, "the zygote is not ready"
        assert starter._zygote.poll() is None, "the zygote has ended"
        time.sleep(0.1)
    yield starter
    starter._control.close()
    assert starter._zygote.wait(30) == 0  # it ends with the socket of whoever started it


@pytest.fixture
def silent_api():
    """An API that takes connections and never answers: a flow run that asks it stays where it is."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/api"


class Started:
    """Prefect's task status: what it was told."""

    def __init__(self):
        self.told = asyncio.Event()

    def started(self, value):
        self.process = value
        self.told.set()


def environment(tmp_path, **own):
    return {**os.environ, "PREFECT_HOME": str(tmp_path), "PREFECT__FLOW_RUN_ID": str(uuid4()), **own}


def run(starter, env, cwd=None, meanwhile=None):
    """Run the engine's command; the process at its end. `meanwhile` is called with it while it runs."""

    async def whole():
        status = Started()
        task = asyncio.create_task(starter(COMMAND, task_status=status, env=env, cwd=cwd, stream_output=True))
        await asyncio.wait(
            [task, asyncio.create_task(status.told.wait())], return_when=asyncio.FIRST_COMPLETED
        )
        if meanwhile and not task.done():
            await asyncio.to_thread(meanwhile, status.process)
        return await asyncio.wait_for(task, 60)

    return asyncio.run(whole())


def test_the_exit_code_is_the_engines(warm, tmp_path):
    process = run(warm, environment(tmp_path, PREFECT__FLOW_RUN_ID="no id"))
    assert isinstance(process, WarmProcess)
    assert process.returncode == 1


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_signal_ends_a_run_and_is_told(warm, tmp_path, silent_api, how):
    def meanwhile(process):
        assert process.pid in {entry.pid for entry in descendants(os.getpid())}
        os.kill(process.pid, how)

    process = run(warm, environment(tmp_path, PREFECT_API_URL=silent_api), meanwhile=meanwhile)
    assert process.returncode == -how


def test_a_run_has_its_own_environment_and_folder(warm, tmp_path, silent_api):
    def meanwhile(process):
        folder = Path(f"/proc/{process.pid}/cwd")
        deadline = time.monotonic() + 30
        while folder.readlink() != tmp_path:
            assert time.monotonic() < deadline, folder.readlink()
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGKILL)

    # Only this environment has the address that makes the engine wait; else it would have ended with 1.
    env = environment(tmp_path, PREFECT_API_URL=silent_api)
    assert run(warm, env, cwd=tmp_path, meanwhile=meanwhile).returncode == -signal.SIGKILL


def test_runs_at_the_same_time_are_told_apart(warm, tmp_path, silent_api):
    env = environment(tmp_path, PREFECT_API_URL=silent_api)

    async def both():
        statuses = [Started(), Started()]
        tasks = [asyncio.create_task(warm(COMMAND, task_status=status, env=env)) for status in statuses]
        for status in statuses:
            await asyncio.wait_for(status.told.wait(), 60)
        os.kill(statuses[0].process.pid, signal.SIGKILL)
        first = await asyncio.wait_for(tasks[0], 60)
        assert not tasks[1].done()
        os.kill(statuses[1].process.pid, signal.SIGTERM)
        return first, await asyncio.wait_for(tasks[1], 60)

    first, second = asyncio.run(both())
    assert (first.returncode, second.returncode) == (-signal.SIGKILL, -signal.SIGTERM)
    assert first.pid != second.pid


def test_other_commands_are_not_forked(warm):
    assert asyncio.run(warm(["ls"], env={})) is COLD
    assert asyncio.run(warm(COMMAND, env={}, start_new_session=True)) is COLD


@pytest.mark.parametrize("name", ["PYTHONPATH", "PYTHONOPTIMIZE", "LD_PRELOAD"])
def test_a_job_that_sets_what_python_reads_at_its_start_is_not_forked(warm, tmp_path, name):
    env = environment(tmp_path, PREFECT__FLOW_RUN_ID="no id")
    assert asyncio.run(warm(COMMAND, env=env | {name: "another"})) is COLD
    assert run(warm, env | {"ANOTHER": "another"}).returncode == 1


def test_without_its_zygote_runs_are_started_as_prefect_does(monkeypatch):
    async def cold(*_, **__):
        return COLD

    starter = WarmStarter(cold)
    assert asyncio.run(starter(COMMAND, env={})) is COLD  # it is importing still
    starter._zygote.kill()
    starter._zygote.wait(30)
    assert asyncio.run(starter(COMMAND, env={})) is COLD
    starter._control.close()


def test_the_zygote_ends_with_whoever_started_it():
    code = (
        "import time; from prefect_assay.prefork.starter import WarmStarter\n"
        "s = WarmStarter(None)\n"
        "while not s.ready(): time.sleep(0.1)\n"
        "print(s._zygote.pid, flush=True); time.sleep(100)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        pid = int(parent.stdout.readline())
        parent.kill()
    deadline = time.monotonic() + 30
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < deadline, "the zygote has outlived its runner"
        time.sleep(0.05)
