"""Child processes with a log each, ended by id with everything they have started.

Each child has its own session: Ctrl-C reaches only the parent, which then stops its children in order. A parent that is killed
takes them with it (`leash`).
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Thread
from typing import Final

import psutil

from prefect_assay.errors import ConfigurationError
from prefect_assay.local.leash import leash

_STOP_SECONDS: Final = 10.0
_POLL_SECONDS: Final = 0.05
_TAIL_LINES: Final = 25
_LAUNCH_SECONDS: Final = 5.0  # making a process takes some milliseconds
_LAUNCH_POLL_SECONDS: Final = 0.01


class Child:
    """One child process."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        log: Path,
        errors_only: bool = False,
    ) -> None:
        """Start the process; `errors_only` keeps its standard output out of the log."""
        self.name = name
        self.log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603 - this interpreter, our own arguments
                command,
                env=dict(env),
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL if errors_only else output,
                stderr=output,
                start_new_session=True,
            )
        leash.hold(self._process.pid)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process is alive."""
        return self._process.poll() is None

    def wait_until(self, ready: Callable[[], bool], *, seconds: float) -> None:
        """Wait for a condition; the end of the process or of the time is a `ConfigurationError`."""
        deadline = time.monotonic() + seconds
        while not ready():
            if not self.running:
                raise self.failure(f"ended with code {self._process.returncode}")
            if time.monotonic() > deadline:
                raise self.failure(f"is not ready after {seconds:.0f} s")
            time.sleep(_POLL_SECONDS)

    def failure(self, what: str) -> ConfigurationError:
        """An error about this process, with the place and the end of its log."""
        return ConfigurationError(
            f"{self.name} {what}. The end of its log {self.log}:\n{read_tail(self.log)}"
        )

    def stop(self, seconds: float = _STOP_SECONDS) -> None:
        """Ask the process to end, then end it and all its descendants for certain. Safe to repeat."""
        below: Sequence[psutil.Process] = ()
        if self.running:
            below = list_descendants(self.pid)
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(seconds)
        self._end(below)

    def kill(self) -> None:
        """End the process and all its descendants at once, as a crash of the machine would."""
        self._end(list_descendants(self.pid) if self.running else ())

    def _end(self, below: Sequence[psutil.Process]) -> None:
        # Descendants with a session of their own are in the list, all others in the group.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        for process in below:
            with contextlib.suppress(psutil.NoSuchProcess):  # also where another process has its id by now
                process.kill()
        self._process.wait()
        leash.release(self._process.pid)


class StackProcesses:
    """Children by name, all of this interpreter; a signal at any moment loses none of them."""

    def __init__(self, folder: Path, *, work: Path | None = None) -> None:
        """Make the folder. Children work in it, or in `work`: Prefect reads settings files from there."""
        self._work = work or folder
        self._logs_folder = folder / "logs"
        self._logs_folder.mkdir(parents=True, exist_ok=True)
        self._children: dict[str, Child] = {}
        self._launches: list[list[BaseException | None]] = []  # each gets its end

    def __getitem__(self, name: str) -> Child:
        return self._children[name]

    @property
    def logs(self) -> dict[str, Path]:
        """Log file of each child that has been started, by name."""
        return {path.stem: path for path in sorted(self._logs_folder.glob("*.log"))}

    def log(self, name: str) -> Path:
        """The path of a child's log."""
        return self._logs_folder / f"{name}.log"

    def running(self, name: str) -> bool:
        """Whether a child was started and is alive."""
        return name in self._children and self._children[name].running

    def check(self) -> None:
        """Raise `ConfigurationError`, with the end of its log, if a child has ended without being stopped."""
        for child in self._children.values():
            if not child.running:
                raise child.failure("has ended")

    def launch(
        self, name: str, arguments: Sequence[str], env: Mapping[str, str], *, errors_only: bool = False
    ) -> None:
        """Start a child that is not running; `errors_only` keeps its standard output out of its log."""
        if self.running(name):
            raise ConfigurationError(f"the {name} of this stack runs already; stop it first")
        # On a thread of its own, which no signal interrupts: a process is never started without being noted. No lock
        # outlives the launch, because an exception of a signal handler may leave one taken.
        ended: list[BaseException | None] = []

        def start() -> None:
            try:
                self._children[name] = Child(
                    name,
                    [sys.executable, "-P", *arguments],  # -P: nothing of its folder is imported
                    env=env,
                    cwd=self._work,
                    log=self.log(name),
                    errors_only=errors_only,
                )
            except BaseException as error:  # noqa: BLE001 - raised below
                ended.append(error)
            else:
                ended.append(None)

        self._launches.append(ended)
        thread = Thread(target=start, name="stack-launcher")
        thread.start()
        thread.join()
        if ended[0] is not None:
            raise ended[0]

    def stop(self, name: str) -> None:
        """Stop a child, if it was started. Safe to repeat, also after an interruption."""
        self._wait_for_launches()
        child = self._children.get(name)
        if child is not None:
            child.stop()
            del self._children[name]  # only now: an interrupted stop can be repeated

    def kill(self, name: str) -> None:
        """SIGKILL a child and everything below it."""
        self._children.pop(name).kill()

    def _wait_for_launches(self) -> None:
        """Wait until every launch has been noted; an interruption may have kept one from beginning at all."""
        deadline = time.monotonic() + _LAUNCH_SECONDS
        while not all(self._launches) and time.monotonic() < deadline:
            time.sleep(_LAUNCH_POLL_SECONDS)
        self._launches.clear()


def list_descendants(pid: int) -> list[psutil.Process]:
    """The living processes below a process, parents before children."""
    try:
        below = psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []
    return [process for process in below if is_alive(process)]


def is_alive(process: psutil.Process) -> bool:
    """Whether a process runs; one that only its parent has not waited for does not."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def command_of(process: psutil.Process) -> str:
    """The command line of a process; empty when it has ended or belongs to another user."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def read_tail(path: Path, lines: int = _TAIL_LINES) -> str:
    """The last lines of a log."""
    try:
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])
    except FileNotFoundError:
        return "(no log)"
