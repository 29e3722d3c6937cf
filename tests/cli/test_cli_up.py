"""`prefect-assay up` ends what another one has left behind, and nothing else."""

import json
import os
import socket

import psutil
import pytest

from prefect_assay.cli.services import up
from prefect_assay.cli.services.receiver import WORD_VARIABLE
from prefect_assay.cli.services.up import _Installation, _only_one
from support.command import command


@pytest.fixture
def left_behind(tmp_path):
    """The child of an `up` that was killed after it had noted it."""
    with (tmp_path / "processes.json").open("a+") as state:
        installation = _Installation(tmp_path, "http://127.0.0.1:9/api", {"worker": []}, state)
        installation._processes.launch("worker", ["-c", "import time; time.sleep(100)"], dict(os.environ))
        installation._note()
    yield installation._processes["worker"]
    installation._processes.stop("worker")


def test_what_was_left_behind_is_ended_also_after_the_clock_was_set(left_behind, tmp_path, monkeypatch):
    created = psutil.Process.create_time
    monkeypatch.setattr(psutil.Process, "create_time", lambda process: created(process) + 3600)
    with _only_one(tmp_path):
        assert not left_behind.running


def test_another_process_with_the_id_of_one_that_was_left_behind_is_not_ended(left_behind, tmp_path):
    state = tmp_path / "processes.json"
    state.write_text(json.dumps({"worker": [left_behind.pid, "another"]}))
    with _only_one(tmp_path):
        assert left_behind.running


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
    with (tmp_path / "processes.json").open("a+") as state:
        installation = _Installation(
            tmp_path, "http://127.0.0.1:9/api", {"worker": [], "receiver": []}, state
        )
        monkeypatch.setattr(
            installation._processes, "launch", lambda name, _, env: launched.update({name: env})
        )
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
