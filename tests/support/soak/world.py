"""What a soak runs in: a real Prefect server, lab and receiver, and in place of the served flows a worker that forks (`support/runs/worker.py`).

Counts the CPU time of every process it has started, ended ones too. It must not know what is soaked.
"""

import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import certifi
import psutil
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.settings import (
    PREFECT_API_URL,
    PREFECT_HOME,
    PREFECT_LOGGING_TO_API_ENABLED,
    temporary_settings,
)

from prefect_assay.deployments.serve import served_deployments
from prefect_assay.deployments.setup import register
from prefect_assay.local.processes import Child, StackProcesses, descendants
from prefect_assay.local.stack import LocalStack
from prefect_assay.service.client import AssayClient
from support.accounts import make_account, save_account
from support.runs.scale import shared_services
from support.runs.world import _saved_blocks
from support.stories.stack import WORKER

_START_SECONDS: Final = 900.0
# A line in Prefect's log costs a request; what a soak needs to know stands in the worker's own log.
_ENVIRONMENT: Final = {
    "PREFECT_LOGGING_TO_API_ENABLED": "false",
    "PREFECT_LOGGING_LEVEL": "WARNING",
    "PREFECT_CLIENT_SERVER_VERSION_CHECK_ENABLED": "false",  # as the runs of the product's fork server have it
}


@dataclass
class WorkerOptions:
    """How the worker works.

    Attributes:
        seed: of the kills.
        children: executions side by side.
        kill_share: of the executions that are killed.
        generation: makes a worker's successor draw other numbers.
    """

    seed: int
    children: int = 8
    kill_share: float = 0.02
    generation: int = 0


class _CountedParts(StackProcesses):
    """Parts whose CPU time is counted over all their restarts."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._used: Counter[str] = Counter()

    def cpu(self) -> dict[str, float]:
        """CPU seconds of each part so far."""
        return {
            name: self._used[name] + (_cpu_of(self[name]) if self.running(name) else 0.0)
            for name in ("server", "lab", "receiver", "runner")
        }

    def stop(self, name: str) -> None:
        self._count(name)
        super().stop(name)

    def kill(self, name: str) -> None:
        self._count(name)
        super().kill(name)

    def _count(self, name: str) -> None:
        if self.running(name):
            self._used[name] += _cpu_of(self[name])


class SoakStack(LocalStack):
    """A stack whose runner forks, and whose parts can be killed as well as stopped."""

    def __init__(self, folder: Path, worker: WorkerOptions, server: dict[str, str]) -> None:
        folder.mkdir(parents=True)
        one = folder / "one.pem"
        # Everything is plain HTTP, and reading the certificates of the world is an eighth of an execution.
        one.write_text(
            Path(certifi.where()).read_text().partition("-----END CERTIFICATE-----")[0]
            + "-----END CERTIFICATE-----\n"
        )
        certificates = {"SSL_CERT_FILE": str(one), "PREFECT_API_SSL_CERT_FILE": str(one)}
        # Generous: a busy machine makes it slow, and that is no finding.
        answers = {"PREFECT_SERVER_LOGGING_LEVEL": "INFO"}  # a line for each request, which the judge reads
        env = _ENVIRONMENT | certificates | answers | server
        super().__init__(folder, env=env, start_seconds=_START_SECONDS)
        self.worker = worker
        self.journal = self.folder / "executions.jsonl"
        self.executions_log = self.folder / "executions.log"
        self._parts = self._counted = _CountedParts(self.folder)

    def start(self) -> None:
        """Start everything side by side, and wait for it."""
        try:
            self._launch_server()
            self.start_runner()
            self._launch_lab()
            self._launch_receiver()
            self.wait_for_lab()
            self.wait_for_server()
            self.wait_for_receiver()
        except BaseException:
            self.stop()
            raise

    def start_runner(self) -> None:
        """The worker, the next generation of it."""
        options = self.worker
        arguments = [str(WORKER), "--api", self.api_url, "--journal", str(self.journal), "--declare-crashed"]
        arguments += ["--log", str(self.executions_log), "--children", str(options.children)]
        arguments += ["--seed", f"{options.seed}-{options.generation}"]
        arguments += ["--kill-share", str(options.kill_share)]
        options.generation += 1
        self._parts.launch("runner", arguments, self.env)

    def kill(self, name: str) -> None:
        """SIGKILL a part and everything below it."""
        self._parts.kill(name)

    def cpu(self) -> dict[str, float]:
        """CPU seconds of each part so far; of the worker without its forks, which the journal counts."""
        return self._counted.cpu()


def _cpu_of(child: Child) -> float:
    """User and system time of a process and the living ones below it."""
    total = 0.0
    for process in (psutil.Process(child.pid), *descendants(child.pid)):
        with suppress(psutil.NoSuchProcess):
            used = process.cpu_times()
            total += used.user + used.system
    return total


@dataclass
class SoakWorld:
    """A running soak stack with one user's blocks and our deployments."""

    stack: SoakStack
    folder: Path
    api: SyncPrefectClient
    service: AssayClient
    blocks: dict[str, Any]
    deployments: dict[str, UUID] = field(default_factory=dict)  # by flow

    def ended(self) -> int:
        """How many executions have ended so far, by the size of the workers' journal."""
        journal = self.stack.journal
        return journal.stat().st_size if journal.exists() else 0

    def executions(self) -> list[dict[str, Any]]:
        """What the workers have written down; a line may be cut short by a kill."""
        if not self.stack.journal.exists():
            return []
        return [
            json.loads(line) for line in self.stack.journal.read_text().splitlines() if line.endswith("}")
        ]


@contextmanager
def a_soak_world(folder: Path, worker: WorkerOptions) -> Iterator[SoakWorld]:
    """Start everything, register what the flows need, and stop everything at the end.

    On the server's own PostgreSQL; with ASSAY_SOAK_ON=redis on the PostgreSQL and Redis that the environment names.
    """
    with shared_services() if os.environ.get("ASSAY_SOAK_ON") == "redis" else nullcontext({}) as server:
        yield from _a_world(folder, SoakStack(folder / "stack", worker, server))


def _a_world(folder: Path, stack: SoakStack) -> Iterator[SoakWorld]:
    settings = {
        PREFECT_API_URL: stack.api_url,
        PREFECT_HOME: folder / "client-home",
        PREFECT_LOGGING_TO_API_ENABLED: False,
    }
    with temporary_settings(updates=settings), stack:
        register(with_automations=False)  # on SQLite they make the server stand still (docs/operating.md)
        blocks = _saved_blocks(stack, folder)
        blocks["account"] = save_account(make_account(**blocks), "soak")
        with get_client(sync_client=True) as api, blocks["credentials"].get_client() as service:
            world = SoakWorld(stack, folder, api, service, blocks)
            for deployment in served_deployments(None):
                world.deployments[deployment.flow_name] = deployment.apply()
            yield world
