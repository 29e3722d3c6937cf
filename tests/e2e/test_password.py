"""`prefect-assay up --password`: everything of it works with the password, and nothing of it answers without."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress

import httpx
import pytest

from prefect_assay.client import AssayClient
from prefect_assay.lab.testing import LocalLab
from prefect_assay.localstack.environment import free_ports
from support.runs.world import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(1200)]

PASSWORD = "correct horse battery"
NEXT_PASSWORD = "staple, correctly"
DESIGN = ">a\nSESELEAKRQELKELMEKTEEKARELLAKGDVAGARAAYGAYLLKAAE\n"


class Machine:
    """A user's machine: a home, and commands in terminals that know only the home."""

    def __init__(self, folder):
        self.folder = folder
        self.server, self.receiver = free_ports(2)
        self.url = f"http://127.0.0.1:{self.server}"
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
        self.env = inherited | {"HOME": str(folder), "COLUMNS": "120"}

    def command(self, *arguments, given="", code=0, **env):
        done = subprocess.run(
            [sys.executable, "-m", "prefect_assay.cli", *arguments],
            cwd=self.folder,
            env=self.env | env,
            input=given,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert code is None or done.returncode == code, done.stdout + done.stderr
        return done.stdout

    @contextmanager
    def up(self, *options, **env):
        log = self.folder / f"up-{time.monotonic_ns()}.log"
        arguments = ["up", "--port", str(self.server), "--receiver-port", str(self.receiver), *options]
        with log.open("w") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "prefect_assay.cli", *arguments],
                cwd=self.folder,
                env=self.env | env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        try:
            eventually(
                lambda: "Next, in another terminal" in log.read_text(), seconds=400, what="the start of up"
            )
            yield
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(120)
        assert not any(password in log.read_text() for password in (PASSWORD, NEXT_PASSWORD))

    def ready(self):
        """Wait until the receiver says that it could wake runs through the API."""
        url = f"http://127.0.0.1:{self.receiver}/assay/ready"

        def is_ready():
            with suppress(httpx.TransportError):  # it does not listen yet
                return httpx.get(url, timeout=30).is_success
            return False

        eventually(is_ready, seconds=300, what="the receiver's readiness")

    def refuses(self):
        asked = httpx.post(f"{self.url}/api/block_documents/filter", json={"include_secrets": True})
        return asked.status_code == 401


def test_server_worker_receiver_and_commands_share_the_password(tmp_path):
    machine = Machine(tmp_path)
    (tmp_path / "designs.fasta").write_text(DESIGN)
    with LocalLab(options=("--real-time-retries",)) as lab:
        with machine.up("--password", PREFECT_ASSAY_SERVER_PASSWORD=PASSWORD):
            assert machine.refuses()
            machine.command(
                *("init", "--base-url", lab.base_url, "--per-experiment", "5000", "--per-campaign", "5000"),
                *(
                    "--archive",
                    str(tmp_path / "archive"),
                    "--receiver",
                    f"http://127.0.0.1:{machine.receiver}/assay",
                ),
                given=f"{lab.token}\n",
            )
            options = ["--campaign-id", "behind", "--webhook", "main"]
            machine.command("run", "designs.fasta", "--target", "Human EGFR, extracellular domain", *options)
            eventually(
                lambda: "waits for the laboratory" in machine.command("status"), seconds=300, what="the wait"
            )
            machine.ready()
            other = {"PREFECT_HOME": str(tmp_path / "other"), "PREFECT_API_URL": f"{machine.url}/api"}
            machine.command("status", code=3, **other)
        with machine.up():  # a restart needs no option
            assert machine.refuses()
            assert "waits for the laboratory" in machine.command("status")
            machine.ready()
            parts = json.loads(machine.command("check", "--json", code=None))["lines"]
            # The first sweep may still be to come.
            assert {line["part"] for line in parts if not line["ok"]} <= {"schedule"}


def test_a_password_that_is_changed_while_a_run_waits_keeps_nothing_from_going_on(tmp_path):
    machine = Machine(tmp_path)
    (tmp_path / "designs.fasta").write_text(DESIGN)

    def admits(password):
        api = f"{machine.url}/api/flow_runs/filter"
        return httpx.post(api, json={"limit": 1}, auth=("admin", password)).is_success

    with LocalLab(options=("--real-time-retries",)) as lab:
        with machine.up("--password", PREFECT_ASSAY_SERVER_PASSWORD=PASSWORD):
            assert admits(PASSWORD)
            machine.command(
                *("init", "--base-url", lab.base_url, "--per-experiment", "5000", "--per-campaign", "5000"),
                *("--archive", str(tmp_path / "archive")),
                *("--receiver", f"http://127.0.0.1:{machine.receiver}/assay"),
                given=f"{lab.token}\n",
            )
            options = ["--campaign-id", "changed", "--webhook", "main"]
            machine.command("run", "designs.fasta", "--target", "Human EGFR, extracellular domain", *options)
            eventually(
                lambda: "waits for the laboratory" in machine.command("status"), seconds=300, what="the wait"
            )
        changed = {
            "PREFECT_ASSAY_SERVER_PASSWORD": NEXT_PASSWORD,
            "PREFECT_ASSAY_RECEIVER_TOLERANCE_SECONDS": "none",  # the lab's clock jumps
        }
        with machine.up("--password", **changed):
            assert admits(NEXT_PASSWORD)
            assert not admits(PASSWORD)
            machine.ready()
            with AssayClient(lab.base_url, lab.token) as service:
                (order,) = service.iter_experiments(search="changed")
                address = service.find_invoice(order.id).provider_hosted_invoice_url.rstrip("/")
            assert httpx.post(f"{address}/pay", follow_redirects=True).is_success
            lab.advance(days=16)
            eventually(
                lambda: "Completed" in machine.command("status", "changed"), seconds=300, what="the end"
            )
