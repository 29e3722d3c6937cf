"""Children that end when their parent is gone, also after a SIGKILL: one helper per parent watches a pipe.

The operating system closes the pipe whatever ends the parent, on Linux and on macOS. The helper asks the children to end,
and then ends them for certain. It must not know what they are.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import Final

_GRACE_SECONDS: Final = 20.0
_POLL_SECONDS: Final = 0.1
_LOOK_SECONDS: Final = 1.0
_READ_BYTES: Final = 1 << 16
# A database stops by a command of its own: a SIGKILL would cost it a recovery.
_SPARED: Final = "postgres"


class Leash:
    """The children of this process. `hold` and `release` take any number of them, in any thread."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a signal's handler may stop what this thread is just starting
        self._parent = 0
        self._held: set[str] = set()
        self._helper: subprocess.Popen[bytes] | None = None

    def hold(self, pid: int) -> None:
        """End this process and everything below it when the parent is gone."""
        self._add(f"end {pid}")

    def release(self, pid: int) -> None:
        """Forget a process that the parent has ended itself."""
        self._remove(f"end {pid}")

    def run_at_end(self, command: Sequence[str]) -> None:
        """Run a command when the parent is gone."""
        self._add(f"run {json.dumps(list(command))}")

    def forget(self, command: Sequence[str]) -> None:
        """Do not run the command any more."""
        self._remove(f"run {json.dumps(list(command))}")

    def _add(self, line: str) -> None:
        with self._lock:
            if self._parent != os.getpid():  # forked: the helper is the parent's
                self._parent, self._held, self._helper = os.getpid(), set(), None
            self._held.add(line)
            if self._helper is None or self._helper.poll() is not None:
                self._helper = subprocess.Popen(  # noqa: S603 - this interpreter, this file
                    [sys.executable, "-I", __file__],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,  # Ctrl-C must not reach it
                    close_fds=False,  # an inheritable lock of the parent lasts until the children have ended
                    cwd="/",
                )
                for held in self._held:
                    self._send("+", held)
            else:
                self._send("+", line)

    def _remove(self, line: str) -> None:
        with self._lock:
            if self._parent != os.getpid() or line not in self._held:
                return
            self._held.discard(line)
            self._send("-", line)
            if not self._held and self._helper is not None:
                helper, self._helper = self._helper, None
                with contextlib.suppress(OSError):
                    helper.stdin.close()  # type: ignore[union-attr]  # a pipe
                helper.wait()

    def _send(self, sign: str, line: str) -> None:
        with contextlib.suppress(OSError):  # somebody has ended the helper: the next `hold` makes another
            os.write(self._helper.stdin.fileno(), f"{sign} {line}\n".encode())  # type: ignore[union-attr]


leash: Final = Leash()


def _watch_parent() -> None:
    """The helper: note what is held until the parent is gone, and then end it."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    parent, rest, held = os.getppid(), b"", dict[str, str]()
    # A forked child of the parent may hold the pipe open: the parent's id is looked at as well.
    while os.getppid() == parent:
        if not select.select([0], [], [], _LOOK_SECONDS)[0]:
            continue
        read = os.read(0, _READ_BYTES)
        if not read:
            break
        *lines, rest = (rest + read).split(b"\n")
        for sign, line in (text.decode().split(" ", 1) for text in lines):
            if sign == "+":
                held[line] = _start_of(line.partition(" ")[2])
            else:
                held.pop(line, None)
    _end_processes({int(line[4:]): start for line, start in held.items() if line.startswith("end ")})
    for line in held:
        if line.startswith("run "):
            subprocess.run(json.loads(line[4:]), check=False, timeout=120)  # noqa: S603 - the parent's own


def _end_processes(held: dict[int, str]) -> None:
    living = {pid: start for pid, start in held.items() if start and _start_of(pid) == start}
    below = [process for pid in living for process in _list_below(pid)]
    for pid in living:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGTERM)
    end = time.monotonic() + _GRACE_SECONDS
    while time.monotonic() < end and any(_start_of(pid) == start for pid, start in living.items()):
        time.sleep(_POLL_SECONDS)
    for pid in living:
        with contextlib.suppress(OSError):
            os.killpg(pid, signal.SIGKILL) if _leads_group(pid) else os.kill(pid, signal.SIGKILL)
    for process in below:
        with contextlib.suppress(Exception):  # has ended
            if not process.name().startswith(_SPARED):
                process.kill()


def _leads_group(pid: int) -> bool:
    """Whether the process has a group of its own; the group outlives it."""
    try:
        return os.getpgid(pid) == pid
    except OSError:
        return True


def _list_below(pid: int) -> list:  # type: ignore[type-arg]  # of psutil.Process
    try:
        import psutil

        return list(psutil.Process(pid).children(recursive=True))
    except Exception:  # noqa: BLE001 - without it, the group has most of them
        return []


def _start_of(pid: object) -> str:
    """What tells a process from a later one of the same id; empty for one that has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:  # noqa: PTH123 - the helper imports little
            fields = stat.read().rpartition(b")")[2].split()
        return "" if fields[0] == b"Z" else fields[19].decode()
    except OSError:
        if os.path.isdir("/proc/self"):  # noqa: PTH112
            return ""
    command = ["ps", "-o", "stat=,lstart=", "-p", str(pid)]
    output = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()  # noqa: S603 - of ps alone
    return "" if output.startswith("Z") else output.partition(" ")[2]


if __name__ == "__main__":
    _watch_parent()
