import os
import signal
import subprocess
import sys
import time

import httpx
import pytest

from prefect_assay.cli.services import receiver
from prefect_assay.local.environment import free_ports
from support.command import command

KEY = "k" * 40


def _serve(*arguments, **env):
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    return subprocess.Popen(
        [sys.executable, "-m", "prefect_assay.cli", "receiver", *arguments],
        env={**inherited, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _health(url, process):
    """Its answer, as soon as there is one; the test's own limit ends the wait."""
    while process.poll() is None:
        try:
            return httpx.get(f"{url}/health", trust_env=False)
        except httpx.TransportError:
            time.sleep(0.05)
    raise AssertionError(process.stdout.read())


def test_keys_of_a_file_and_a_prefix(tmp_path):
    keys = tmp_path / "keys"
    keys.write_text(f"# current\n{KEY}\n\n{'o' * 40}\n")
    (port,) = free_ports(1)
    process = _serve("--port", str(port), "--prefix", "/hooks", "--keys-file", str(keys))
    try:
        assert _health(f"http://127.0.0.1:{port}/hooks", process).status_code == 200
        forged = httpx.post(f"http://127.0.0.1:{port}/hooks/{'a' * 20}", content=b"{}", trust_env=False)
        assert forged.status_code == 401
    finally:
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    assert KEY not in output


@pytest.mark.parametrize(
    "key", [f"{'k' * 32},{'o' * 32}", f"k,{'o' * 32}", f"#{KEY}", f'["{KEY}', f"[{KEY}]", f'k"\\{KEY}', KEY]
)
def test_a_key_of_a_file_is_loaded_as_the_block_holds_it(tmp_path, monkeypatch, key):
    loaded = []
    monkeypatch.setenv("PREFECT_ASSAY_RECEIVER_SIGNING_KEYS", "")
    monkeypatch.setattr(receiver, "check_api_address", lambda: None)
    monkeypatch.setattr(receiver, "serve_receiver", lambda _, settings, *place: loaded.append(settings))
    file = tmp_path / "keys"
    file.write_text(f"# {'c' * 40}\n#\n  {key}\n\n{KEY}2\n")
    receiver.run_receiver(host="127.0.0.1", port=1, prefix=None, keys_file=file)
    assert [one.get_secret_value() for one in loaded[0].signing_keys] == [key, f"{KEY}2"]


def test_a_missing_key_is_an_error_that_names_the_variable():
    done = command("receiver")
    assert done.code == 1
    assert "PREFECT_ASSAY_RECEIVER_SIGNING_KEYS" in done.err
    assert "Traceback" not in done.err


def test_a_short_key_is_refused_and_not_shown(tmp_path):
    keys = tmp_path / "keys"
    keys.write_text("short-and-secret\n")
    done = command("receiver", "--keys-file", str(keys))
    assert done.code == 1
    assert "short-and-secret" not in done.err + done.out


def test_a_keys_file_that_is_missing(tmp_path):
    done = command("receiver", "--keys-file", str(tmp_path / "none"))
    assert done.code == 1
    assert "Traceback" not in done.err
