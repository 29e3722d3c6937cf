"""The quick start, executed: its commands, in its order, against a local lab that stands for the service."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from importlib.resources import files

import httpx
import psutil
import pytest

from assay_lab.testing import LocalLab
from prefect_assay.deployments.work_pool import FLOW_QUEUE
from prefect_assay.local.environment import free_ports
from prefect_assay.local.processes import command_of, list_descendants
from support.pages import QUICK_START, commands
from support.runs.world import eventually
from support.services.prefect_http import open_prefect_http

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(1200)]

STEP_SECONDS = 600


class Machine:
    """A user's machine with nothing on it: a home, a folder with designs, and a terminal."""

    def __init__(self, folder, lab):
        self.lab, self.home, self.work = lab, folder / "home", folder / "work"
        for place in (self.home, self.work, self.home / "designs"):
            place.mkdir()
        text = (files("assay_lab") / "data" / "egfr_round1_designs.fasta").read_text()
        records = [f">{record}" for record in text.split(">")[1:]]
        (self.work / "designs.fasta").write_text("".join(records[:3]))
        (self.home / "designs" / "round-1.fasta").write_text("".join(records[3:5]))
        self.server, self.receiver = free_ports(2)
        self.api = f"http://127.0.0.1:{self.server}/api"
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
        self.env = inherited | {
            "HOME": str(self.home),
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "COLUMNS": "120",
        }
        self.log = folder / "up.log"

    def here(self, command):
        """The command with this machine's addresses: the service, the receiver's, and free ports."""
        receiver = f"http://127.0.0.1:{self.receiver}/assay"
        command = command.replace("https://lab.example.org", self.lab.base_url)
        command = command.replace("https://hooks.example.org/assay", receiver).replace("~", str(self.home))
        if command == "prefect-assay up":
            command += f" --port {self.server} --receiver-port {self.receiver}"
        return [sys.executable, "-m", "prefect_assay.cli", *shlex.split(command)[1:]]

    def run(self, command, stdin_text=""):
        done = subprocess.run(
            self.here(command),
            cwd=self.work,
            env=self.env,
            input=stdin_text,
            capture_output=True,
            text=True,
            timeout=STEP_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def up(self):
        with self.log.open("w") as log:
            return subprocess.Popen(
                self.here("prefect-assay up"),
                cwd=self.work,
                env=self.env,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )

    def runs(self, flow):
        criteria = {"flows": {"name": {"any_": [flow]}}}
        with open_prefect_http(self.api) as api:
            return api.post("/flow_runs/filter", json=criteria).json()

    def listed(self, what):
        headers = {"Authorization": f"Bearer {self.lab.token}"}
        return httpx.get(f"{self.lab.base_url}/api/v1/{what}", headers=headers).json()["items"]

    def faults(self):
        """The parts that `prefect-assay check` finds faults in; the others it has looked at, too."""
        done = subprocess.run(
            self.here("prefect-assay check --json"),
            cwd=self.work,
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
        )
        lines = json.loads(done.stdout)["lines"]
        assert {"server", "database", "worker", "account", "receiver", "archive"} <= {
            line["part"] for line in lines
        }
        return {line["part"] for line in lines if not line["ok"]}

    def receives(self):
        try:
            return httpx.get(f"http://127.0.0.1:{self.receiver}/assay/health").is_success
        except httpx.TransportError:
            return False

    def orders(self):
        return len(self.listed("experiments"))

    def pay(self):
        """What a person does on the hosted pages."""
        for one in self.listed("invoices"):
            if one["status"] in {"draft", "open"}:
                page = one["provider_hosted_invoice_url"].rstrip("/")
                assert httpx.post(f"{page}/pay", follow_redirects=True).is_success


@pytest.fixture
def machine(tmp_path):
    with LocalLab() as lab:
        made = Machine(tmp_path, lab)
        process = made.up()
        try:
            yield made, process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                process.wait(60)


def part(process, name):
    """The process of a part of `up`; the worker is Prefect's, and the sweep has one of its own."""
    fragment = f"--work-queue {FLOW_QUEUE} " if name == "worker" else f"cli {name}"
    return next(p for p in psutil.Process(process.pid).children() if fragment in command_of(p))


def test_from_a_fresh_machine_to_a_campaign_in_production(machine):
    made, process = machine
    first, init, rehearse, estimate, run, status, loop = commands(QUICK_START)
    assert first == "prefect-assay up"
    eventually(lambda: "Next, in another terminal" in made.log.read_text(), seconds=STEP_SECONDS, what="up")
    assert f"PREFECT_API_URL of the Prefect profile 'ephemeral' is now {made.api}" in made.log.read_text()

    saved = made.run(init, stdin_text=f"{made.lab.token}\n")
    assert saved.count(": new") == 5

    assert "PROBLEM" not in made.run(rehearse)
    assert re.search(r"\d USD", made.run(estimate))
    assert made.orders() == 0
    started = made.run(run)
    assert "--account" not in run, "init's account is the default"
    assert re.search(r"http://127.0.0.1:\d+/runs/flow-run/", started)
    assert "campaign" in made.run(status).lower()
    made.run(loop)

    def waiting():
        runs = made.runs("campaign") + made.runs("design-build-test")
        return len(runs) == 2 and all(one["state"]["type"] == "PAUSED" for one in runs)

    eventually(waiting, seconds=STEP_SECONDS, what="campaign and loop to wait without a process")
    worker = part(process, "worker").pid
    eventually(
        lambda: not [p for p in list_descendants(worker) if "prefect.engine" in command_of(p)],
        seconds=STEP_SECONDS,
        what="the processes of the waiting runs to end",
    )

    shown = made.run(status)
    assert shown.count(" USD  ordered, not paid: ") == 2
    assert {one["provider_hosted_invoice_url"] for one in made.listed("invoices")} <= set(shown.split())
    assert shown.count("1 waits for its payment") == 2, "the campaign and the round of the loop"
    made.pay()
    made.lab.advance(days=20)
    eventually(
        lambda: all(one["state"]["type"] == "COMPLETED" for one in made.runs("campaign")),
        seconds=STEP_SECONDS,
        what="the results",
    )
    assert made.orders() == 2
    assert "not paid" not in made.run(status)
    metrics = httpx.get(f"http://127.0.0.1:{made.receiver}/assay/metrics").text
    assert re.search(r'outcome="woken".*\} [1-9]', metrics), metrics
    assert list((made.home / "assay-archive").rglob("manifest.json"))
    with open_prefect_http(made.api) as api:
        deployment = api.get("/deployments/name/design-build-test/assay-design-build-test").json()
    assert [(one["slug"], one["schedule"]["cron"]) for one in deployment["schedules"]] == [
        ("egfr-weekly", "0 6 * * 1-5")
    ]

    assert not made.faults() - {"schedule"}, "the first sweep comes after five minutes"
    part(process, "worker").suspend()
    part(process, "receiver").suspend()
    assert made.faults() >= {"receiver"}
    part(process, "worker").resume()
    part(process, "receiver").resume()

    below = list_descendants(process.pid)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 0
    assert not [p for p in below if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]
    assert made.lab.token not in saved + made.log.read_text()


def test_up_starts_what_ends_and_goes_on_after_it_was_killed_itself(machine):
    made, process = machine
    ready = "Next, in another terminal"
    eventually(
        lambda: "Prefect's user interface" in made.log.read_text(), seconds=STEP_SECONDS, what="an address"
    )
    assert httpx.get(f"{made.api}/health").is_success, "an address is printed when it answers"
    eventually(lambda: "The receiver answers" in made.log.read_text(), seconds=STEP_SECONDS, what="up")
    assert made.receives()
    eventually(lambda: ready in made.log.read_text(), seconds=STEP_SECONDS, what="up")
    for name in ("worker", "receiver"):
        part(process, name).kill()
    eventually(lambda: made.log.read_text().count("it is started again") == 2, seconds=60, what="new parts")
    eventually(made.receives, seconds=60, what="the new receiver")

    left = list_descendants(process.pid)
    process.kill()
    process.wait()
    eventually(
        lambda: not [p for p in left if p.is_running() and p.status() != psutil.STATUS_ZOMBIE],
        seconds=60,
        what="their end",
    )
    again = made.up()
    try:
        eventually(lambda: ready in made.log.read_text(), seconds=STEP_SECONDS, what="up again")
        eventually(made.receives, seconds=60, what="the receiver again")
        assert "present" in made.log.read_text(), "the database is the one of before"
        refused = subprocess.run(
            made.here("prefect-assay up"), env=made.env, capture_output=True, text=True, check=False
        )
        assert refused.returncode == 1
        assert "runs already" in refused.stderr
        below = list_descendants(again.pid)
    finally:
        again.send_signal(signal.SIGTERM)
        assert again.wait(60) == 128 + signal.SIGTERM
    assert not [p for p in below if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]
