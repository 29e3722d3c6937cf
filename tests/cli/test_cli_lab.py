import io
import json
import os
import re
import signal
import subprocess
import sys

import httpx
import pytest
from prefect.settings import PREFECT_HOME, temporary_settings

from prefect_assay.blocks import LocalArchive, X402Wallet
from prefect_assay.cli.services import lab as command
from prefect_assay.cli.services.receiver_address import record_address
from prefect_assay.local.processes import is_alive, list_descendants


def test_the_lab_in_the_foreground_ends_cleanly_on_ctrl_c():
    process = subprocess.Popen(
        [sys.executable, "-m", "prefect_assay.cli", "lab", "--port", "0", "--seed", "a-seed"],
        env={**os.environ, "COLUMNS": "200", "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        lines = [process.stdout.readline() for _ in range(7)]
        address = re.search(r"http://\S+", lines[0])[0]
        token = lines[1].split()[1]
        who = httpx.get(
            f"{address}/api/v1/whoami", headers={"Authorization": f"Bearer {token}"}, trust_env=False
        )
        assert who.status_code == 200
        named = {line.split()[0]: line.split()[1] for line in lines[5:]}
        assert httpx.get(named["portal"], trust_env=False).status_code == 200
        assert named["tools"] == f"{address}/mcp"
        below = list_descendants(process.pid)
        assert len(below) == 1
    finally:
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=20)
    assert process.returncode == 0
    assert "stopped" in output
    assert errors == ""
    assert not is_alive(below[0])


def test_a_port_in_use_is_an_error_without_our_traceback():
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = subprocess.run(
            [sys.executable, "-m", "prefect_assay.cli", "lab", "--port", str(taken.getsockname()[1])],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 1
    assert (
        "cannot be used (Address already in use); stop what uses it, or name another with --port"
        in done.stderr
    )
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("in_blocks", [False, True])
def test_long_tokens_are_printed_only_where_no_block_takes_them(capsys, in_blocks):
    names = ("token", "viewer_token", "partner_token", "sim_token", "portal_url", "mcp_url")
    ready = {"base_url": "http://127.0.0.1:9"} | {name: f"<{name}>" for name in names}
    assert command._print_introduction(io.StringIO(json.dumps(ready) + "\n"), in_blocks=in_blocks) == ready
    shown = capsys.readouterr().out
    assert [name for name in names if f"<{name}>" in shown] == list(names[3:] if in_blocks else names)


@pytest.mark.parametrize(
    ("recorded", "receiver", "url"),
    [
        (None, None, "http://127.0.0.1:8100/assay"),
        ("http://127.0.0.1:21001/assay", None, "http://127.0.0.1:21001/assay"),
        ("http://127.0.0.1:21001/assay", "http://127.0.0.1:9/assay", "http://127.0.0.1:9/assay"),
    ],
)
def test_the_webhook_block_leads_to_the_receiver_of_up(account, capsys, tmp_path, recorded, receiver, url):
    if recorded:
        record_address(tmp_path, recorded)
    assert account(receiver).webhook.url == url
    assert url in capsys.readouterr().out


@pytest.fixture
def account(monkeypatch, tmp_path):
    """The account that is saved for a lab and a receiver; `kept` are blocks that exist already."""
    saved = []
    monkeypatch.setattr(command, "save_account", lambda account, name: saved.append((account, name)) or [])

    def save(receiver=None, kept=(), wallet=None):
        existing = {type(block): block for block in kept}
        monkeypatch.setattr(command, "find_block", lambda kind, _name: existing.get(kind))
        monkeypatch.setattr(command, "_make_wallet", lambda: wallet)
        with temporary_settings({PREFECT_HOME: tmp_path}):
            command._save_lab_account({"base_url": "http://127.0.0.1:9", "token": "t"}, receiver)
        ((account, name),) = saved
        assert name == "lab"
        return account

    return save


def test_the_next_command_names_the_account_that_was_saved(account, capsys):
    saved = account("http://127.0.0.1:8100/assay")
    assert saved.archive.root.endswith("assay-lab-archive")
    assert (saved.wallet, saved.payment_method) == (None, "async_invoice")
    shown = capsys.readouterr().out
    assert "Account lab is simulated: http://127.0.0.1:9" in shown
    assert "Next: prefect-assay run designs.fasta --target NAME --account lab" in shown


def test_a_wallet_and_an_archive_that_exist_stay_and_the_wallet_pays(account):
    archive = LocalArchive(root="/kept")
    wallet = X402Wallet(private_key="0x" + "1" * 64, networks=["eip155:1"], assets=["usdc"], pay_to=["0x1"])
    saved = account(kept=[archive], wallet=wallet)
    assert (saved.archive, saved.wallet) == (archive, wallet)
    assert saved.payment_method == "x402-exact"
