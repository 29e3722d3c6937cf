"""Where stories are played: a real Prefect server, lab and receiver, and a worker that forks, or Prefect's own runner."""

import json
import os
import secrets
import signal
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Literal

import certifi
import httpx
from prefect.events.worker import EventsWorker
from prefect.settings import (
    PREFECT_API_URL,
    PREFECT_HOME,
    PREFECT_LOCAL_STORAGE_PATH,
    PREFECT_LOGGING_TO_API_ENABLED,
    temporary_settings,
)

from prefect_assay.campaigns.receiver.settings import ENV_PREFIX
from prefect_assay.deployments.serve import served_deployments
from prefect_assay.deployments.setup import register_all
from support.controlled_stack import ControlledStack
from support.runs.world import eventually

WORKER: Final = Path(__file__).parents[1] / "runs" / "worker.py"
START_SECONDS: Final = 300.0
Kind = Literal["fork", "serve"]
# Everything is plain HTTP, and reading the certificates of the world is an eighth of an execution.
_ENVIRONMENT: Final = {
    "PREFECT_LOGGING_TO_API_ENABLED": "false",
    "PREFECT_CLIENT_SERVER_VERSION_CHECK_ENABLED": "false",
}


class StoryStack(ControlledStack):
    """A stack whose flows run in forks of a warm process, unless they are to run as users run them.

    Attributes:
        names: who listens at an origin, or what a folder is, in the names of points.
        traps: folder of the traps that executions spring (`support/crash/points.py`); of forks only.
    """

    def __init__(
        self, folder: Path, *, names: Mapping[str, str], env: Mapping[str, str] | None = None
    ) -> None:
        folder.mkdir(parents=True)
        one = folder / "one.pem"
        one.write_text(Path(certifi.where()).read_text().partition("-----END CERTIFICATE-----")[0])
        with one.open("a") as file:
            file.write("-----END CERTIFICATE-----\n")
        certificates = {"SSL_CERT_FILE": str(one), "PREFECT_API_SSL_CERT_FILE": str(one)}
        super().__init__(
            folder,
            env=_ENVIRONMENT | certificates | dict(env or {}),
            start_seconds=START_SECONDS,
        )
        self.kind: Kind = "fork"
        self._worker_options: tuple[str, ...] = ()
        self.names = dict(names)
        self.traps = self.folder / "traps"
        self.traps.mkdir()
        self.journal = self.folder / "executions.jsonl"

    def arguments_of_worker(self) -> list[str]:
        """Of the process that forks."""
        names = self.names | {self.lab.base_url: "lab", self.ui_url: "prefect"}
        arguments = [str(WORKER), "--api", self.api_url, "--journal", str(self.journal)]
        arguments += ["--log", str(self.folder / "logs" / "executions.log"), "--poll-seconds", "0.2"]
        return [*arguments, "--traps", str(self.traps), "--names", json.dumps(names), *self._worker_options]

    def replace_worker(self, *options: str, kind: Kind = "fork") -> None:
        """Kill what runs the flows, and start it again, as another kind or with other options of the worker."""
        self.kill_runner()
        self.kind, self._worker_options = kind, options
        self.start_runner()

    def _launch_runner(self) -> None:
        if self.kind == "fork":
            self._parts.launch("runner", self.arguments_of_worker(), self.env)
        else:
            super()._launch_runner()

    def wait_for_runner(self) -> None:
        """Forks are there as soon as their worker is."""
        if self.kind != "fork":
            super().wait_for_runner()

    def replace_signing_key(self, *, keep_old: bool = True) -> None:
        """Start the receiver again with a new signing key, before the old one unless that is dropped."""
        keys = f"{ENV_PREFIX}SIGNING_KEYS"
        old = self.env.get(keys, self.signing_key)
        self.signing_key = secrets.token_urlsafe(32)
        self.env[keys] = f"{self.signing_key},{old}" if keep_old else self.signing_key
        self.stop_receiver()
        self.start_receiver()

    def kill_server(self) -> None:
        """SIGKILL the Prefect server."""
        self._parts.kill("server")

    def kill_database(self) -> None:
        """SIGKILL the server's PostgreSQL, and wait until another one answers the server."""
        first = self._postmaster()
        os.kill(first, signal.SIGKILL)
        eventually(
            lambda: self._counts_runs() and self._postmaster() != first, seconds=90, what="a new database"
        )

    def _postmaster(self) -> int:
        assert self.database.embedded is not None
        return int((self.database.embedded.data / "postmaster.pid").read_text().splitlines()[0])

    def _counts_runs(self) -> bool:
        with suppress(httpx.TransportError, OSError):
            return httpx.post(f"{self.api_url}/flow_runs/count", json={}, timeout=30).is_success
        return False


class HomeStack(StoryStack):
    """Another Prefect home: a server with a database of its own, and a worker. It has neither lab nor receiver."""

    def start(self) -> None:
        """Start both, and wait for them."""
        try:
            self._launch_server()
            self._launch_runner()
            self.wait_for_server()
        except BaseException:
            self.stop()
            raise

    def stop_lab(self) -> None:
        """There is none."""


def apply_deployments() -> None:
    """Those that a served process makes, for the workers that fork."""
    for deployment in served_deployments(None):
        deployment.apply()
    register_all(with_automations=True)  # the automation names the deployment of `decide`


@contextmanager
def running(stack: StoryStack, folder: Path) -> Iterator[dict[Any, Any]]:
    """A running stack, with this process's Prefect settings on its server; the settings."""
    settings: dict[Any, Any] = {
        PREFECT_API_URL: stack.api_url,
        PREFECT_HOME: folder / "client-home",
        PREFECT_LOCAL_STORAGE_PATH: folder / "results",
        PREFECT_LOGGING_TO_API_ENABLED: False,  # its sender outlives the server and keeps the process waiting
    }
    with ExitStack() as ends:
        ends.enter_context(temporary_settings(updates=settings))
        ends.enter_context(stack)
        # Else they try for over a minute to reach this server while the next one of this process stops.
        ends.callback(EventsWorker.drain_all, timeout=10)
        apply_deployments()
        yield settings
