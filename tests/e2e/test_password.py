"""`prefect-assay up --password`: everything of it works with the password, and nothing of it answers without."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager, suppress

import httpx
import psutil
import pytest

from assay_lab.testing import LocalLab
from prefect_assay.deployments.settings_files import RUNNER, read_shipped_settings
from prefect_assay.deployments.work_pool import FLOW_QUEUE, SWEEP_QUEUE, worker_command
from prefect_assay.local.environment import free_ports
from prefect_assay.service.client import AssayClient
from support.runs.world import eventually, healthy
from support.services.prefect_http import open_prefect_http

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

    def command(self, *arguments, stdin_text="", code=0, **env):
        done = subprocess.run(
            [sys.executable, "-m", "prefect_assay.cli", *arguments],
            cwd=self.folder,
            env=self.env | env,
            input=stdin_text,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert code is None or done.returncode == code, done.stdout + done.stderr
        return done.stdout

    @contextmanager
    def process(self, *arguments, **env):
        """A process in a terminal, which Ctrl-C ends; its log, which no password may be in."""
        log = self.folder / f"{time.monotonic_ns()}.log"
        with log.open("w") as output:
            process = subprocess.Popen(
                [sys.executable, *arguments],
                cwd=self.folder,
                env=self.env | env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        try:
            yield log
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(120)
        assert not any(password in log.read_text() for password in (PASSWORD, NEXT_PASSWORD))

    @contextmanager
    def up(self, *options, **env):
        arguments = ["up", "--port", str(self.server), "--receiver-port", str(self.receiver), *options]
        with self.process("-m", "prefect_assay.cli", *arguments, **env) as log:
            eventually(
                lambda: "Next, in another terminal" in log.read_text(), seconds=400, what="the start of up"
            )
            yield

    @contextmanager
    def server_alone(self, password):
        """The server of `prefect-assay server`; workers and commands of this machine use it."""
        self.env["PREFECT_API_URL"] = f"{self.url}/api"
        arguments = ["-m", "prefect_assay.cli", "server", "--port", str(self.server), "--password"]
        with self.process(*arguments, PREFECT_ASSAY_SERVER_PASSWORD=password):
            eventually(lambda: healthy(f"{self.url}/api"), seconds=300, what="the server")
            yield

    @contextmanager
    def workers(self):
        """Prefect's workers, with the settings of `runner.env`; the log of the one that runs flows."""
        settings = read_shipped_settings(RUNNER)
        with (
            self.process(*worker_command(FLOW_QUEUE, 2), **settings) as log,
            self.process(*worker_command(SWEEP_QUEUE, 1), **settings),
        ):
            yield log

    def executions(self):
        """The processes of flow runs on this machine, by the Prefect home."""
        processes = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                known = process.environ()
                if known.get("HOME") == str(self.folder) and "PREFECT__FLOW_RUN_ID" in known:
                    processes.append(process)
        return processes

    def sweep_often(self, password):
        """As an operator may set it."""
        with open_prefect_http(f"{self.url}/api", auth=("admin", password)) as api:
            sweep = api.get("/deployments/name/sweep/assay-sweep").raise_for_status().json()
            often = {"active": True, "schedule": {"interval": 20}}
            path = f"/deployments/{sweep['id']}/schedules/{sweep['schedules'][0]['id']}"
            api.patch(path, json=often).raise_for_status()

    def ready(self):
        """Wait until the receiver says that it could wake runs through the API."""
        url = f"http://127.0.0.1:{self.receiver}/assay/ready"

        def is_ready():
            with suppress(httpx.TransportError):  # it does not listen yet
                return httpx.get(url, timeout=30).is_success
            return False

        eventually(is_ready, seconds=300, what="the receiver's readiness")

    def refuses(self):
        with open_prefect_http(f"{self.url}/api") as api:
            answer = api.post("/block_documents/filter", json={"include_secrets": True})
        return answer.status_code == 401


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
                stdin_text=f"{lab.token}\n",
            )
            options = ["--campaign-id", "behind", "--max-usd", "5000", "--yes"]
            machine.command("run", "designs.fasta", "--target", "Human EGFR, extracellular domain", *options)
            eventually(
                lambda: "waits for its payment" in machine.command("status"), seconds=300, what="the wait"
            )
            machine.ready()
            other = {"PREFECT_HOME": str(tmp_path / "other"), "PREFECT_API_URL": f"{machine.url}/api"}
            machine.command("status", code=3, **other)
        with machine.up():  # a restart needs no option
            assert machine.refuses()
            assert "waits for its payment" in machine.command("status")
            machine.ready()
            parts = json.loads(machine.command("check", "--json", code=None))["lines"]
            # The first sweep may still be to come.
            assert {line["part"] for line in parts if not line["ok"]} <= {"schedule"}


def test_a_password_that_is_changed_while_a_run_executes_costs_that_execution_and_no_second_order(tmp_path):
    """Its process is refused by Prefect, and cannot even say so; the sweep takes it for dead, and starts it again."""
    machine = Machine(tmp_path)
    (tmp_path / "designs.fasta").write_text(DESIGN)
    with LocalLab(options=("--real-time-retries",)) as lab, AssayClient(lab.base_url, lab.token) as service:
        with ExitStack() as old_workers:
            with machine.server_alone(PASSWORD):
                machine.command("deploy", "--no-automations")
                machine.command(
                    *(
                        "init",
                        "--base-url",
                        lab.base_url,
                        "--per-experiment",
                        "5000",
                        "--per-campaign",
                        "5000",
                    ),
                    *("--archive", str(tmp_path / "archive"), "--receiver", "none"),
                    stdin_text=f"{lab.token}\n",
                )
                log = old_workers.enter_context(machine.workers())
                held = lab.fault("late_answer", method="POST", path="/api/v1/experiments", seconds=25)
                options = ["--campaign-id", "executing", "--max-usd", "5000", "--yes"]
                machine.command(
                    "run", "designs.fasta", "--target", "Human EGFR, extracellular domain", *options
                )
                eventually(lambda: held.used, seconds=300, what="the order")
                assert machine.executions()
            with machine.server_alone(NEXT_PASSWORD):
                eventually(lambda: not machine.executions(), seconds=300, what="the end of the refused run")
                assert "401" in log.read_text()
                old_workers.close()
                with machine.workers():
                    machine.sweep_often(NEXT_PASSWORD)
                    eventually(
                        lambda: "waits for its payment" in machine.command("status"),
                        seconds=600,
                        what="the wait",
                    )
                    (order,) = service.experiments.iterate(search="executing")
                    address = service.invoices.find_for_experiment(
                        order.id
                    ).provider_hosted_invoice_url.rstrip("/")
                    assert httpx.post(f"{address}/pay", follow_redirects=True).is_success
                    lab.advance(days=16)
                    eventually(
                        lambda: " complete" in machine.command("status", "executing"),
                        seconds=300,
                        what="the end",
                    )
        created = lab.journal(method="POST", path="/api/v1/experiments")
        assert len(created) == 1
