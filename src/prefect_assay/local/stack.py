"""Starts and stops the parts of a stack, on loopback and below one folder, without the user's Prefect settings."""

import contextlib
import secrets
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Self

import httpx
import psutil

from prefect_assay.deployments.work_pool import (
    FLOW_QUEUE,
    SWEEP_LIMIT,
    SWEEP_QUEUE,
    WORK_POOL,
    default_limit,
    worker_command,
)
from prefect_assay.errors import ConfigurationError
from prefect_assay.local.environment import StackDatabase, free_ports, make_stack_environment
from prefect_assay.local.loopback import HOST, NO_TLS, is_answering
from prefect_assay.local.processes import (
    StackProcesses,
    command_of,
    list_descendants,
    read_tail,
)

if TYPE_CHECKING:
    from prefect_assay.local.stack_lab import StackLab

RunnerKind = Literal["serve", "worker"]

START_SECONDS: Final = 120.0
# The last one that a served process creates: once it exists, all do.
_LAST_DEPLOYMENT: Final = "sweep/assay-sweep"


class LocalStack:
    """Everything a campaign needs, on one machine.

    Attributes:
        folder: holds logs, the Prefect home and the lab's database.
        env: environment for further processes that use this stack's Prefect.
        api_url: the Prefect API, with /api.
        receiver_url: the address for a `WebhookEndpoint` block, as is `signing_key`.
        database: the Prefect server's database, to copy or to change.
        lab: `base_url`, tokens, clock, journal, faults (`assay_lab.testing.LocalLab`).
    """

    def __init__(
        self,
        folder: Path,
        *,
        env: Mapping[str, str] | None = None,
        sweep: bool = False,
        runner: RunnerKind = "serve",
        worker_limit: int | None = None,
        start_seconds: float = START_SECONDS,
    ) -> None:
        """Choose ports and prepare the folder; nothing is started.

        Args:
            folder: a fresh one has a fresh Prefect database.
            env: extra environment for every process; takes precedence over the stack's own.
            sweep: run the sweep, every five minutes.
            runner: flows served by one process, or Prefect's process workers as `prefect-assay up` starts them.
            worker_limit: flow runs at once, besides the sweep (worker only); None for what memory and cores allow.
            start_seconds: how long any part may take to answer.

        Raises:
            ConfigurationError: the local lab is not installed.
        """
        self.folder = folder.resolve()
        self._parts = StackProcesses(self.folder)
        server, lab, receiver = free_ports(3)
        self.ui_url = f"http://{HOST}:{server}"
        self.api_url = f"{self.ui_url}/api"
        self.receiver_url = f"http://{HOST}:{receiver}/assay"
        self.signing_key = secrets.token_urlsafe(32)
        self.lab = _prepare_lab(lab, self.folder / "lab.sqlite")
        self._ports = {"server": server, "receiver": receiver}
        self._sweep = sweep
        self._runner_kind = runner
        self._worker_limit = worker_limit
        self._start_seconds = start_seconds
        self.env = make_stack_environment(self.folder, self.api_url, env or {})
        self.database = StackDatabase(self.env)

    @property
    def logs(self) -> dict[str, Path]:
        """Log file of each part that has been started, by name."""
        return self._parts.logs

    def start(self) -> None:
        """Start all parts side by side, and wait for them; a failure is a `ConfigurationError`, and stops everything."""
        try:
            self._launch_server()
            if self._runner_kind == "serve":
                self._launch_runner()  # imports while the server starts, then waits for it
            self._launch_lab()
            self._launch_receiver()
            self.wait_for_lab()
            self.wait_for_server()
            self.wait_for_receiver()
            if self._runner_kind == "worker":
                self._deploy()
                self.start_runner()
            else:
                self.wait_for_runner()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop everything. Safe to repeat, and from any state."""
        self.stop_runner()
        self._parts.stop("receiver")
        self.stop_lab()
        self.stop_server()

    def discard(self) -> None:
        """Stop everything, and delete what is outside the folder: the database, where root runs the stack."""
        self.stop()
        self.database.discard()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.discard()

    def stop_server(self) -> None:
        """Stop the Prefect server, and its database if the server was killed before."""
        self._parts.stop("server")
        self.database.stop()

    def stop_lab(self) -> None:
        """Stop the lab."""
        self.lab.stop()
        self._parts.stop("lab")

    def start_runner(self) -> None:
        """Start what runs the flows."""
        self._launch_runner()
        self.wait_for_runner()

    def stop_runner(self) -> None:
        """Ask what runs the flows to end; runs in progress end with it."""
        self._parts.stop("sweeper")
        self._parts.stop("runner")

    def runner_processes(self) -> list[psutil.Process]:
        """The processes below the runner: one per flow run in progress, none while all are suspended."""
        runner = self._parts["runner"].pid
        return [process for process in list_descendants(runner) if not _is_helper(process)]

    def cpu_seconds(self) -> dict[int, int]:
        """The whole seconds of processor time of each process below the runner."""
        seconds = {}
        for process in self.runner_processes():
            with contextlib.suppress(psutil.Error):
                times = process.cpu_times()
                seconds[process.pid] = int(times.user + times.system)
        return seconds

    def pid(self, name: str) -> int:
        """Process id of a part that was started."""
        return self._parts[name].pid

    def running(self, name: str) -> bool:
        """Whether a part (`server`, `lab`, `receiver`, `runner`) is alive."""
        return self._parts.running(name)

    def check(self) -> None:
        """Raise `ConfigurationError`, with the end of its log, if a part has ended without being stopped."""
        self._parts.check()

    def failure(self, name: str, what: str) -> ConfigurationError:
        """An error about a part that was started, with the end of its log."""
        return self._parts[name].failure(what)

    def wait_for_server(self) -> None:
        """Wait for the Prefect API."""
        self._wait("server", lambda: is_answering(f"{self.api_url}/health"))

    def wait_for_lab(self) -> None:
        """Wait for the lab."""
        self._wait("lab", self.lab.is_answering)
        self.lab.attach()

    def wait_for_receiver(self) -> None:
        """Wait for the receiver."""
        self._wait("receiver", lambda: is_answering(f"{self.receiver_url}/health"))

    def wait_for_runner(self) -> None:
        """Wait until the deployments exist (served) or the worker is online (worker)."""
        self._wait("runner", self._served if self._runner_kind == "serve" else self._worker_online)

    def _launch_server(self) -> None:
        # The server reads its address from the options; an API address would lead back to itself.
        env = {name: value for name, value in self.env.items() if name != "PREFECT_API_URL"}
        self._parts.launch("server", self._listening("server"), env)

    def _launch_lab(self) -> None:
        # Its output is one line with tokens, which no log needs.
        self._parts.launch("lab", self.lab.arguments(), self.lab.environment(self.env), errors_only=True)

    def _launch_receiver(self) -> None:
        settings = {
            "PREFECT_ASSAY_RECEIVER_SIGNING_KEYS": self.signing_key,
            # the lab signs with its own clock, which stops and jumps
            "PREFECT_ASSAY_RECEIVER_TOLERANCE_SECONDS": "none",
        }
        self._parts.launch("receiver", self._listening("receiver"), {**settings, **self.env})

    def _launch_runner(self) -> None:
        if self._runner_kind == "worker":
            limit = self._worker_limit or default_limit()
            self._parts.launch("runner", worker_command(FLOW_QUEUE, limit), self.env)
            if self._sweep:
                self._parts.launch("sweeper", worker_command(SWEEP_QUEUE, SWEEP_LIMIT), self.env)
        else:
            arguments = ["-m", "prefect_assay.local.runner", "--wait-seconds", str(self._start_seconds)]
            arguments += [] if self._sweep else ["--no-sweep"]
            self._parts.launch("runner", arguments, self.env)

    def _listening(self, command: str) -> list[str]:
        return ["-m", "prefect_assay.cli", command, "--host", HOST, "--port", str(self._ports[command])]

    def _deploy(self) -> None:
        """Create the work pool and the deployments; a worker needs them before it starts."""
        log = self._parts.log("deploy")
        arguments = [sys.executable, "-P", "-m", "prefect_assay.cli", "deploy"]
        with log.open("ab") as output:
            done = subprocess.run(  # noqa: S603 - this interpreter, our own arguments
                arguments, env=self.env, cwd=self.folder, stdout=output, stderr=output, check=False
            )
        if done.returncode:
            raise ConfigurationError(f"the deployment failed. The end of its log {log}:\n{read_tail(log)}")

    def _wait(self, name: str, ready: Callable[[], bool]) -> None:
        self._parts[name].wait_until(ready, seconds=self._start_seconds)

    def _served(self) -> bool:
        return is_answering(f"{self.api_url}/deployments/name/{_LAST_DEPLOYMENT}")

    def _worker_online(self) -> bool:
        with contextlib.suppress(httpx.TransportError):
            answer = httpx.post(
                f"{self.api_url}/work_pools/{WORK_POOL}/workers/filter",
                json={},
                trust_env=False,
                verify=NO_TLS,
            )
            return answer.is_success and any(worker.get("status") == "ONLINE" for worker in answer.json())
        return False


def _is_helper(process: psutil.Process) -> bool:
    """Whether a process runs no flow and stays as long as the runner, such as multiprocessing's."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return "multiprocessing" in command_of(process)
    return True


def _prepare_lab(port: int, database: Path) -> "StackLab":
    from prefect_assay.local.stack_lab import StackLab  # the lab is a distribution of its own

    return StackLab(port, database)
