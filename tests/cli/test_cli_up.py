"""`prefect-assay up`: one for a Prefect home, also after a kill, and what its parts get."""

import signal
import socket
import subprocess
import sys

import psutil
import pytest

from prefect_assay.cli.services import up
from prefect_assay.cli.services.receiver import WORD_VARIABLE
from prefect_assay.cli.services.up import _Installation, _only_one
from prefect_assay.errors import ConfigurationError
from prefect_assay.local.processes import is_alive
from support.command import command
from support.runs.world import eventually

KILLED = """
import os, sys
from pathlib import Path
from prefect_assay.cli.services.up import _only_one
from prefect_assay.local.processes import StackProcesses
home = Path(sys.argv[1])
part = "import signal, time; signal.signal(signal.SIGTERM, lambda *_: time.sleep(2) or exit()); print(1, flush=True); time.sleep(100)"
with _only_one(home):
    processes = StackProcesses(home, work=home)
    processes.launch("worker", ["-c", part], dict(os.environ))
    processes["worker"].wait_until(lambda: processes.log("worker").read_text(), seconds=60)
    print(processes["worker"].pid, flush=True)
    sys.stdin.read()
"""


def test_after_a_kill_another_one_is_refused_until_the_parts_have_ended(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as killed:
        part = psutil.Process(int(killed.stdout.readline()))
        killed.send_signal(signal.SIGKILL)
    with pytest.raises(ConfigurationError, match="runs already"), _only_one(tmp_path):
        pass
    eventually(lambda: not is_alive(part), seconds=60, what="the end of the part")
    eventually(lambda: _is_free(tmp_path), seconds=60, what="the end of the lock")


def _is_free(home):
    try:
        with _only_one(home):
            return True
    except ConfigurationError:
        return False


def test_its_limit_without_the_option_is_that_of_this_machine():
    told = " ".join(command("up", "--help", COLUMNS="200").out.split())
    assert "Default: what half of the memory takes, at most four per core." in told


@pytest.mark.parametrize(
    ("saved", "env_word", "passed"),
    [("Service", None, None), ("Acme", None, "Acme"), ("Acme", "Other", "Other")],
)
def test_the_receiver_gets_the_word_of_the_saved_blocks(tmp_path, monkeypatch, saved, env_word, passed):
    launched = {}
    monkeypatch.setattr(up, "receiver_word", lambda _api: saved)
    monkeypatch.delenv(WORD_VARIABLE, raising=False)
    if env_word:
        monkeypatch.setenv(WORD_VARIABLE, env_word)
    installation = _Installation(tmp_path, "http://127.0.0.1:9/api", {"worker": [], "receiver": []})
    monkeypatch.setattr(installation._processes, "launch", lambda name, _, env: launched.update({name: env}))
    installation._read_word()
    for name in installation.parts:
        installation._launch(name)
    assert launched["receiver"].get(WORD_VARIABLE) == passed
    assert launched["worker"].get(WORD_VARIABLE) == env_word


@pytest.mark.parametrize("option", ["--port", "--receiver-port"])
def test_a_port_that_somebody_uses_is_refused_before_anything_is_written(tmp_path, option):
    with socket.create_server(("127.0.0.1", 0)) as somebody:
        port = str(somebody.getsockname()[1])
        done = command("up", option, port, PREFECT_HOME=str(tmp_path))
    assert done.code != 0
    assert f"port {port} of 127.0.0.1 cannot be used" in done.err
    assert f"name another with {option}" in done.err
    assert not (tmp_path / "profiles.toml").exists()
