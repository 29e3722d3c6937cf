"""Where a stack runs: the ports and the environment of its processes, and its database."""

import os
import socket
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from prefect_assay.errors import ConfigurationError
from prefect_assay.local.loopback import HOST

if TYPE_CHECKING:
    from prefect_assay.local.postgres import EmbeddedDatabase

_DATABASE_FOLDER: Final = "PREFECT_ASSAY_DATABASE_FOLDER"
# The lab's days pass in seconds here; `runner.env` polls half as often.
_POLLING: Final = {"PREFECT_RUNNER_POLL_FREQUENCY": "1", "PREFECT_WORKER_QUERY_SECONDS": "1"}
_QUIET: Final = {
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_LOGGING_COLORS": "false",
    "PYTHONSAFEPATH": "1",  # Prefect starts each run with `python -m`
    "PYTHONUNBUFFERED": "1",
    "NO_COLOR": "1",
}


def free_ports(count: int) -> list[int]:
    """Different ports of the loopback interface that were free a moment ago."""
    with ExitStack() as held:  # all at once, so that they differ
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind((HOST, 0))
        return [one.getsockname()[1] for one in sockets]


def make_stack_environment(folder: Path, api_url: str, extra: Mapping[str, str]) -> dict[str, str]:
    """The user's environment without its Prefect settings, then the stack's own, then `extra`. Makes the folder `tmp`."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    temporary = folder / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    variables = {
        "PREFECT_HOME": str(folder / "prefect"),
        "PREFECT_API_URL": api_url,
        "TMPDIR": str(temporary),  # Prefect leaves folders there
    }
    return {**inherited, **_POLLING, **_QUIET, **variables, **extra}


class StackDatabase:
    """The PostgreSQL that a stack's Prefect server starts, for when the server is killed."""

    def __init__(self, env: dict[str, str]) -> None:
        """Choose a folder where the stack's own is not usable, and put it into `env`."""
        self._own_folder = hasattr(os, "geteuid") and os.geteuid() == 0 and _DATABASE_FOLDER not in env
        if self._own_folder:  # the account that PostgreSQL runs under may not enter root's folders
            env[_DATABASE_FOLDER] = str(Path(tempfile.gettempdir()) / f"prefect-assay-{os.urandom(6).hex()}")
        self._env = env

    def stop(self) -> None:
        """Stop it if its server was killed and no other server uses it."""
        if self.embedded and self.embedded.exists:
            self.embedded.stop()

    def discard(self) -> None:
        """Delete it if it is outside the stack's folder."""
        if self.embedded and self._own_folder:
            self.embedded.remove()

    @property
    def embedded(self) -> "EmbeddedDatabase | None":
        """The PostgreSQL of the Prefect server; None where the server uses SQLite."""
        with suppress(ImportError, ConfigurationError):
            from prefect_assay.local.postgres import EmbeddedDatabase

            return EmbeddedDatabase.of(Path(self._env["PREFECT_HOME"]), self._env)
        return None
