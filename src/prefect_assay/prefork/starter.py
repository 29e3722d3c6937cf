"""Starts flow runs through the fork server (docs/waiting.md).

`python -m prefect.engine` spends two seconds of CPU on imports before a run's first line; a fork spends none. Runs
start as Prefect starts them, unforked, where forking does not work (no Linux, another Prefect, a fork server that has
ended, a job with its own PYTHONPATH) and with PREFECT_ASSAY_FORK=false.
"""

import asyncio
import contextlib
import importlib
import json
import logging
import os
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import anyio

ENGINE: Final = "prefect.engine"
VARIABLE: Final = "PREFECT_ASSAY_FORK"

_logger = logging.getLogger(__name__)
_POLL_SECONDS: Final = 0.2

RunProcess = Callable[..., Awaitable[Any]]


@dataclass(eq=False)
class ForkedRun:
    """A forked flow run, with the two attributes of a process that Prefect's runner reads."""

    pid: int
    returncode: int | None = None


class ForkingStarter:
    """Replaces Prefect's `run_process` for flow runs, and calls the replaced one for everything else."""

    def __init__(self, run_process: RunProcess) -> None:
        """Start the fork server; it is ready a few seconds later, and runs start unforked until then."""
        self._run_process = run_process
        self._control, theirs = socket.socketpair()
        with theirs:
            self.server = subprocess.Popen(  # noqa: S603 - this interpreter, our own module
                [sys.executable, "-m", "prefect_assay.prefork.server", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        self._control.setblocking(False)
        self._ready = False

    def ready(self) -> bool:
        """Whether runs can be forked now."""
        if self.server.poll() is not None:
            return False
        if not self._ready:
            with contextlib.suppress(BlockingIOError):
                self._ready = self._control.recv(1) == b"r"
        return self._ready

    async def __call__(
        self,
        command: list[str],
        *,
        task_status: Any = anyio.TASK_STATUS_IGNORED,
        task_status_handler: Callable[[Any], Any] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | str | None = None,
        **options: Any,
    ) -> Any:
        """`prefect.utilities.processutils.run_process`; the engine's command is forked where possible."""
        connection = None
        environment = dict(os.environ if env is None else env)
        forked = command == [sys.executable, "-m", ENGINE] and set(options) <= {"stream_output"}
        if (
            forked
            and _interpreter_settings(environment) == _interpreter_settings(os.environ)
            and self.ready()
        ):
            connection = await self._request_child(environment, cwd)
        if connection is None:
            return await self._run_process(
                command,
                task_status=task_status,
                task_status_handler=task_status_handler,
                env=env,
                cwd=cwd,
                **options,
            )
        reader, writer, pid = connection
        process = ForkedRun(pid)
        task_status.started(task_status_handler(process) if task_status_handler else process)
        try:
            process.returncode = await _exit_code(reader, pid)
        finally:
            writer.close()
        return process

    async def _request_child(
        self, env: dict[str, str], cwd: Path | str | None
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, int] | None:
        """Request a child; None only if no child was made, so that no run is started twice."""
        # This process has compared Prefect's version with its server's when it started; each run would twice more.
        env.setdefault("PREFECT_CLIENT_SERVER_VERSION_CHECK_ENABLED", "false")
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                socket.send_fds(self._control, [b"f"], [theirs.fileno()])
            except OSError as error:
                _logger.warning("Flow runs are started without a fork: %s", error)
                ours.close()
                return None
        reader, writer = await asyncio.open_connection(sock=ours)
        body = json.dumps({"env": env, "cwd": str(cwd) if cwd else None}).encode()
        writer.write(len(body).to_bytes(4, "big") + body)
        line = await reader.readline()
        if not line:
            writer.close()
            raise RuntimeError("the process that forks flow runs has ended during a request")
        return reader, writer, int(json.loads(line)["pid"])


def _interpreter_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Variables that Python and its loader read once, at their start: a job with its own values cannot be forked."""
    return {name: value for name, value in environment.items() if name.startswith(("PYTHON", "LD_"))}


async def _exit_code(reader: asyncio.StreamReader, pid: int) -> int:
    line = await reader.readline()
    if line:
        return int(json.loads(line)["status"])
    # The server has ended, its child may not have. Its exit code is lost; a crash is found by missing heartbeats.
    await asyncio.to_thread(_wait_for, pid)
    return 0


def _wait_for(pid: int) -> None:
    while _lives(pid):
        time.sleep(_POLL_SECONDS)


def _lives(pid: int) -> bool:
    """Whether a process executes; one that has ended stays a zombie where process 1, as in a container, reaps none."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state.split()[0] != "Z"


def fork_flow_runs() -> bool:
    """Let this process's runner or worker fork its flow runs; False where that is impossible or switched off."""
    if sys.platform != "linux" or os.environ.get(VARIABLE, "").lower() in {"0", "false", "no"}:
        return False
    try:
        # Prefect's own place for this: "patch the module to override".
        starter: Any = importlib.import_module("prefect.runner._starter_engine")
        replaced = starter.run_process
    except (ImportError, AttributeError):
        _logger.warning(
            "This version of Prefect starts flow runs in another way; they are started without a fork."
        )
        return False
    starter.run_process = ForkingStarter(replaced)
    return True
