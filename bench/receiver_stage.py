"""The stage of `bench_receiver.py`: a Prefect server on SQLite, suspended runs in it, the receiver, the bare app.

The suspended runs are made through the API, in the state that `suspend_flow_run` leaves behind; nothing executes.
"""

import contextlib
import hashlib
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import psutil

from prefect_assay.local.environment import free_ports, make_stack_environment
from prefect_assay.local.loopback import HOST
from prefect_assay.local.processes import Child, list_descendants

SIGNING_KEY = "the-signing-key-of-the-benchmark-0001"


@dataclass
class Stage:
    """What runs, and where."""

    api: httpx.Client
    receiver_port: int
    bare_port: int
    children: dict[str, Child]
    receiver_log: Path

    def cpu_seconds(self) -> dict[str, float]:
        """CPU time so far of each part with its children, and of this process."""
        used = {
            name: _cpu([psutil.Process(child.pid), *list_descendants(child.pid)])
            for name, child in self.children.items()
        }
        return used | {"load generator": time.process_time(), "whole machine": _machine()}


@contextlib.contextmanager
def stage() -> Iterator[Stage]:
    """Everything started, and ended in any case."""
    with tempfile.TemporaryDirectory(prefix="bench-receiver-") as name, contextlib.ExitStack() as ending:
        folder = Path(name)
        server, receiver, bare = free_ports(3)
        api_url = f"http://{HOST}:{server}/api"
        env = make_stack_environment(folder, api_url, {})
        children = {}

        def start(part: str, *arguments: str, **more: str) -> Child:
            child = Child(
                part, [sys.executable, *arguments], env=env | more, cwd=folder, log=folder / f"{part}.log"
            )
            ending.callback(child.stop)
            children[part] = child
            return child

        del env["PREFECT_API_URL"]  # the server's own must not lead back to itself
        prefect = start("prefect", "-m", "prefect_assay.cli", "server", "--host", HOST, "--port", str(server))
        env["PREFECT_API_URL"] = api_url
        start(
            *("receiver", "-m", "prefect_assay.cli", "receiver", "--host", HOST, "--port", str(receiver)),
            PREFECT_ASSAY_RECEIVER_SIGNING_KEYS=SIGNING_KEY,
        )
        start("bare", str(Path(__file__).with_name("bare_receiver.py")), str(bare))
        prefect.wait_until(lambda: _answers(f"{api_url}/health"), seconds=120)
        children["receiver"].wait_until(lambda: _answers(f"http://{HOST}:{receiver}/assay/ready"), seconds=60)
        api = ending.enter_context(httpx.Client(base_url=api_url, timeout=60, trust_env=False))
        yield Stage(api, receiver, bare, children, folder / "receiver.log")


def _answers(url: str) -> bool:
    with contextlib.suppress(httpx.HTTPError):
        return httpx.get(url, timeout=5, trust_env=False).is_success
    return False


def ask(api: httpx.Client, path: str, body: dict) -> dict | list:
    """POST, again while SQLite is busy."""
    for _ in range(20):
        answer = api.post(path, json=body)
        if answer.status_code != 503:
            break
        time.sleep(0.2)
    answer.raise_for_status()
    return answer.json()


def order_of(experiment: str) -> str:
    """The key of the order that an experiment is of."""
    return hashlib.sha256(experiment.encode()).hexdigest()[:20]


def suspend_runs(api: httpx.Client, experiments: list[str]) -> str:
    """One suspended run of a deployment for each experiment; returns the flow's id."""
    flow = ask(api, "/flows/", {"name": f"bench-{uuid.uuid4()}"})["id"]
    deployment = ask(api, "/deployments/", {"name": "bench", "flow_id": flow})["id"]
    until = (datetime.now(UTC) + timedelta(days=30)).isoformat()
    for experiment in experiments:
        ask(
            api,
            "/flow_runs/",
            {
                "flow_id": flow,
                "deployment_id": deployment,
                "tags": [f"assay-experiment:{experiment}", f"assay-order:{order_of(experiment)}"],
                "state": {
                    "type": "PAUSED",
                    "name": "Suspended",
                    "state_details": {"pause_timeout": until, "pause_reschedule": True},
                },
            },
        )
    return flow


def states(api: httpx.Client, flow: str) -> dict[str, str]:
    """Prefect's own word on each experiment's run: its state type."""
    state_types: dict[str, str] = {}
    runs = 0
    while True:
        page = ask(
            api,
            "/flow_runs/filter",
            {"flows": {"id": {"any_": [flow]}}, "sort": "ID_DESC", "limit": 200, "offset": runs},
        )
        state_types |= {run["tags"][0].removeprefix("assay-experiment:"): run["state_type"] for run in page}
        runs += len(page)
        if len(page) < 200:
            return state_types


def _cpu(processes: list[psutil.Process]) -> float:
    total = 0.0
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            used = process.cpu_times()
            total += used.user + used.system
    return total


def _machine() -> float:
    used = psutil.cpu_times()
    return used.user + used.nice + used.system + used.irq + used.softirq
