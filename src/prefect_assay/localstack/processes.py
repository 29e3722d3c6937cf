"""Child processes with a log file each, ended for certain: by id, with everything they have started themselves.

Every child gets a session of its own, so that Ctrl-C in a terminal reaches only the parent, which then stops its
children in order. It must not know what the children are.
"""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from prefect_assay.errors import ConfigurationError

STOP_SECONDS: Final = 10.0
_STEP_SECONDS: Final = 0.05
_TAIL_LINES: Final = 25
_PROC: Final = Path("/proc")


@dataclass(frozen=True)
class ProcessEntry:
    """One line of the system's process table."""

    pid: int
    parent: int
    command: str


class Child:
    """One running child process."""

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

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process is alive."""
        return self._process.poll() is None

    def wait_until(self, ready: Callable[[], bool], *, seconds: float) -> None:
        """Wait for a condition that this process is to bring about.

        Raises:
            ConfigurationError: the process has ended, or time is up; with the end of its log.
        """
        deadline = time.monotonic() + seconds
        while not ready():
            if not self.running:
                raise self.failure(f"ended with code {self._process.returncode}")
            if time.monotonic() > deadline:
                raise self.failure(f"is not ready after {seconds:.0f} s")
            time.sleep(_STEP_SECONDS)

    def failure(self, what: str) -> ConfigurationError:
        """An error about this process, with the end of its log and where the log lies."""
        return ConfigurationError(f"{self.name} {what}. The end of its log {self.log}:\n{tail(self.log)}")

    def stop(self, seconds: float = STOP_SECONDS) -> None:
        """Ask the process to end, then end it and all its descendants for certain. Safe to repeat."""
        if self.running:
            family = descendants(self.pid)
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(seconds)
            self._end(family)
        else:
            self._end([])

    def kill(self) -> None:
        """End the process and all its descendants at once, as a crash of the machine would."""
        self._end(descendants(self.pid) if self.running else [])

    def _end(self, family: Sequence[ProcessEntry]) -> None:
        # Those that a descendant has put into a session of its own are in the list; the rest is in the group.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        current = {entry.pid: entry.command for entry in process_table()} if family else {}
        for entry in family:
            if current.get(entry.pid) == entry.command:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(entry.pid, signal.SIGKILL)
        self._process.wait()


def descendants(pid: int) -> list[ProcessEntry]:
    """The living processes below a process, parents before children."""
    children: dict[int, list[ProcessEntry]] = {}
    for entry in process_table():
        children.setdefault(entry.parent, []).append(entry)
    found: list[ProcessEntry] = []
    queue = [pid]
    while queue:
        below = children.get(queue.pop(0), [])
        found += below
        queue += [entry.pid for entry in below]
    return found


def process_table() -> list[ProcessEntry]:
    """Every living process that this user may see."""
    return list(_from_proc()) if (_PROC / "self" / "stat").exists() else _from_ps()


def tail(path: Path, lines: int = _TAIL_LINES) -> str:
    """The last lines of a log."""
    try:
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])
    except FileNotFoundError:
        return "(no log)"


def _from_proc() -> list[ProcessEntry]:
    entries = []
    for folder in _PROC.iterdir():
        if not folder.name.isdigit():
            continue
        with contextlib.suppress(OSError, ValueError, IndexError):
            # The name in brackets may hold anything; state and parent follow the last bracket.
            state, parent = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[:2]
            if state != "Z":
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                entries.append(ProcessEntry(int(folder.name), int(parent), command.strip()))
    return entries


def _from_ps() -> list[ProcessEntry]:
    """Systems without /proc, such as macOS."""
    listed = subprocess.run(
        ["/bin/ps", "-A", "-o", "pid=,ppid=,state=,args="], capture_output=True, text=True, check=True
    ).stdout
    entries = []
    for line in listed.splitlines():
        pid, parent, state, *command = line.split(None, 3)
        if not state.startswith("Z"):
            entries.append(ProcessEntry(int(pid), int(parent), command[0] if command else ""))
    return entries
