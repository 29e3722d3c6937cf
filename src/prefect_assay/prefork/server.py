"""The fork server: it has imported Prefect and the flows, and forks one child per flow run.

`python -m prefect_assay.prefork.server FD`, where `FD` is its end of a socket. Each message of one byte carries another
socket: over it comes a request (the child's environment and folder, as JSON), and back go a line with the child's
process id and a line with its exit status. It runs no second Python thread, whose locks a child would inherit, and ends with
the process that started it.
"""

import contextlib
import gc
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import sys
import threading
import warnings
from typing import Any, Final, NoReturn

from prefect_assay.client.http.wire import certificates
from prefect_assay.prefork.starter import ENGINE

_LENGTH_BYTES: Final = 4
IMPORTED_BY_RUNS: Final = (
    "prefect.flow_engine",
    "prefect_assay.flows",
    "prefect_assay.sweeping.idle_wakes",
    "prefect._internal.observers",
    "anyio._backends._asyncio",
    "encodings.idna",
    "rich._emoji_codes",
    # By every run that archives results, where the extras are installed: 1.9 s of CPU (docs/waiting.md).
    "prefect_assay.reporting.page.template",
    "prefect_assay.results.kinetics.melting",
    "prefect_assay.results.kinetics.package",
    "prefect_assay.results.kinetics.replicate",
    "scipy.stats",
    "matplotlib.backends.backend_svg",
    "matplotlib.figure",
    "matplotlib.style",
    "pyarrow.parquet",
    "pandas",  # pyarrow imports it at its first table, wherever it is installed
)


def main() -> None:
    """Import everything, then fork on request until the other end is closed."""
    import_all()
    # The collector must not write to the pages that all children share.
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=int(sys.argv[1])) as control:
        if threading.active_count() != 1:
            raise SystemExit("an import has started a thread: flow runs are not forked from here")
        control.sendall(b"r")
        request = _ForkServer(control).serve()
    if request is not None:  # this is a child
        _run_engine(request)


def import_all() -> None:
    """What every run would do again: import, register Prefect's collections, read the certificates."""
    for module in IMPORTED_BY_RUNS:
        with contextlib.suppress(ImportError):  # each run then imports it, in some milliseconds
            importlib.import_module(module)
    from prefect.plugins import load_prefect_collections  # noqa: PLC0415

    load_prefect_collections()  # as the first run with a block among its parameters does
    for trust_env in (True, False):
        with contextlib.suppress(OSError):  # a variable names a file that is not there: the run says so
            certificates(trust_env=trust_env)


class _ForkServer:
    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._children: dict[int, socket.socket] = {}
        self._ended, self._wake = socket.socketpair()
        self._ended.setblocking(False)
        self._wake.setblocking(False)
        signal.set_wakeup_fd(self._wake.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the runner handles Ctrl-C and ends its runs

    def serve(self) -> dict[str, Any] | None:
        """Returns in each child with its request, and in the server with None once its parent has ended."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._control, selectors.EVENT_READ)
            selector.register(self._ended, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if key.fileobj is self._ended:
                        self._reap()
                        continue
                    message, handles, _, _ = socket.recv_fds(self._control, 1, 1)
                    if not message:
                        return None
                    request = self._fork(socket.socket(fileno=handles[0]))
                    if request is not None:
                        return request

    def _fork(self, connection: socket.socket) -> dict[str, Any] | None:
        request = _read(connection)
        pid = os.fork()
        if pid:
            self._children[pid] = connection
            _reply(connection, {"pid": pid})
            return None
        signal.set_wakeup_fd(-1)
        for name in (signal.SIGCHLD, signal.SIGINT):
            signal.signal(name, signal.SIG_DFL if name == signal.SIGCHLD else signal.default_int_handler)
        for other in (connection, self._ended, self._wake, *self._children.values()):
            other.close()
        return request

    def _reap(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._ended.recv(4096):
                pass
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    return
                connection = self._children.pop(pid, None)
                if connection is not None:
                    _reply(connection, {"status": os.waitstatus_to_exitcode(status)})
                    connection.close()


def _run_engine(request: dict[str, Any]) -> NoReturn:
    """Do what `python -m prefect.engine` does, with everything imported."""
    os.environ.clear()
    os.environ.update(request["env"])
    if request["cwd"]:
        os.chdir(request["cwd"])
    sys.argv = [ENGINE]
    sys.path[0:0] = [""]  # as `python -m` has it

    from prefect.context import SettingsContext, get_settings_context  # noqa: PLC0415
    from prefect.settings import Settings  # noqa: PLC0415

    warnings.filterwarnings("ignore", category=RuntimeWarning, module="runpy")
    # The environment may differ from the one that the settings were read from.
    with SettingsContext(profile=get_settings_context().profile, settings=Settings()):
        from prefect_assay.sweeping.idle_wakes import suspended_again  # noqa: PLC0415

        if not suspended_again(os.environ.get("PREFECT__FLOW_RUN_ID")):
            runpy.run_module(ENGINE, run_name="__main__", alter_sys=True)
    raise SystemExit(0)


def _read(connection: socket.socket) -> dict[str, Any]:
    with connection.makefile("rb") as stream:
        length = int.from_bytes(stream.read(_LENGTH_BYTES), "big")
        request: dict[str, Any] = json.loads(stream.read(length))
    return request


def _reply(connection: socket.socket, reply: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):  # the starter has ended
        connection.sendall(json.dumps(reply).encode() + b"\n")


if __name__ == "__main__":
    main()
