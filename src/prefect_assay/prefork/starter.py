"""Starts flow runs by forking them from a process that has imported everything already (docs/waiting.md).

A run that is started as `python -m prefect.engine` spends two seconds of CPU on imports before its first line; a
fork spends none. Where forking does not work (no Linux, a Prefect with other insides, a zygote that has ended, a job
with a PYTHONPATH of its own), and with PREFECT_ASSAY_FORK=false, runs are started as Prefect starts them.
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
from pathlib import Path
from typing import Any, Final

import anyio

from prefect_assay.prefork.server import ENGINE

VARIABLE: Final = "PREFECT_ASSAY_FORK"

_logger = logging.getLogger("prefect_assay.warm")
_GONE_SECONDS: Final = 0.2

RunProcess = Callable[..., Awaitable[Any]]


class WarmProcess:
    """A forked flow run, as far as Prefect's runner looks at a process: its id, and its exit code at the end."""

    def __init__(self, pid: int) -> None:
        """Take a child that runs."""
        self.pid = pid
        self.returncode: int | None = None

    def __repr__(self) -> str:
        return f"WarmProcess(pid={self.pid}, returncode={self.returncode})"


class WarmStarter:
    """Replaces Prefect's `run_process` for flow runs; everything else goes to the one it has replaced."""

    def __init__(self, cold: RunProcess) -> None:
        """Start the zygote; it is ready a few seconds later, and runs are started cold until then."""
        self._cold = cold
        self._control, theirs = socket.socketpair()
        with theirs:
            self._zygote = subprocess.Popen(  # noqa: S603 - this interpreter, our own module
                [sys.executable, "-m", "prefect_assay.prefork.server", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        self._control.setblocking(False)
        self._ready = False

    def ready(self) -> bool:
        """Whether runs can be forked now."""
        if self._zygote.poll() is not None:
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
        """`prefect.utilities.processutils.run_process` for the engine's command, forked where possible."""
        connection = None
        environment = dict(os.environ if env is None else env)
        forked = command == [sys.executable, "-m", ENGINE] and set(options) <= {"stream_output"}
        if forked and _read_at_start(environment) == _read_at_start(os.environ) and self.ready():
            connection = await self._requested(environment, cwd)
        if connection is None:
            return await self._cold(
                command,
                task_status=task_status,
                task_status_handler=task_status_handler,
                env=env,
                cwd=cwd,
                **options,
            )
        reader, writer, pid = connection
        process = WarmProcess(pid)
        task_status.started(task_status_handler(process) if task_status_handler else process)
        try:
            process.returncode = await _ended(reader, pid)
        finally:
            writer.close()
        return process

    async def _requested(
        self, env: dict[str, str], cwd: Path | str | None
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, int] | None:
        """Ask for a child. None only where none was made, so that no run is started twice."""
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                socket.send_fds(self._control, [b"f"], [theirs.fileno()])
            except OSError as error:
                _logger.warning("Flow runs are started cold: %s", error)
                ours.close()
                return None
        reader, writer = await asyncio.open_connection(sock=ours)
        body = json.dumps({"env": env, "cwd": str(cwd) if cwd else None}).encode()
        writer.write(len(body).to_bytes(4, "big") + body)
        line = await reader.readline()
        if not line:
            writer.close()
            raise RuntimeError("the process that forks flow runs has ended while it was asked for one")
        return reader, writer, int(json.loads(line)["pid"])


def _read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    """What Python and its loader read once: a job that sets it (a PYTHONPATH, say) is no fork of ours."""
    return {name: value for name, value in environment.items() if name.startswith(("PYTHON", "LD_"))}


async def _ended(reader: asyncio.StreamReader, pid: int) -> int:
    line = await reader.readline()
    if line:
        return int(json.loads(line)["status"])
    # The zygote is gone, its child may not be. How it ends cannot be known; crashes are found by their heartbeats.
    await asyncio.to_thread(_wait_for, pid)
    return 0


def _wait_for(pid: int) -> None:
    while Path(f"/proc/{pid}").exists():
        time.sleep(_GONE_SECONDS)


def fork_flow_runs() -> bool:
    """From now on, this process's runner or worker forks its flow runs; False where that does not work or is not wanted."""
    if sys.platform != "linux" or os.environ.get(VARIABLE, "").lower() in {"0", "false", "no"}:
        return False
    try:
        # Prefect's own place for this: "patch the module to override".
        starter: Any = importlib.import_module("prefect.runner._starter_engine")
        cold = starter.run_process
    except (ImportError, AttributeError):
        _logger.warning("This version of Prefect starts flow runs in another way; they are started cold.")
        return False
    starter.run_process = WarmStarter(cold)
    return True
