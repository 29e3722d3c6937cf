"""The process that is killed, as a test holds it, and the user's token issuer, which outlives it."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final, Self
from uuid import uuid4

from support.services.serving import serving

KILLED: Final = -9
_TASK_ERROR: Final = re.compile(r"Task run encountered an exception (\w+)")


@dataclass(frozen=True)
class Execution:
    """One process: how it ended, the points it reached in their order, and the means of payment it has sent.

    `errors` are the classes of the errors that its tasks have ended with, as Prefect logs them.
    """

    code: int
    points: tuple[str, ...]
    credentials: tuple[str, ...]
    errors: tuple[str, ...] = ()


class Killable:
    """The forking process, as support/crash/child.py describes it."""

    def __init__(self, folder: Path, env: Mapping[str, str], names: Mapping[str, str]) -> None:
        self._folder = folder
        self._names = dict(names)
        self._env = dict(env)
        self.log = folder / "executions.log"
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("child.py"))],
            env=dict(env),
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout.readline() == "ready\n"

    def execute(self, **job: Any) -> Execution:
        trace = self._folder / "trace"
        job |= {"trace": str(trace), "log": str(self.log), "names": self._names}
        begins = self.log.stat().st_size if self.log.exists() else 0
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        code = json.loads(self._process.stdout.readline())["code"]
        lines = trace.read_text().splitlines()
        return Execution(
            code,
            tuple(line for line in lines if not line.startswith("credential ")),
            tuple(line for line in lines if line.startswith("credential ")),
            tuple(_TASK_ERROR.findall(self._read_log(begins))),
        )

    def twin(self, folder: Path) -> "Killable":
        """Another process on the same installation."""
        folder.mkdir()
        return Killable(folder, self._env, self._names)

    def _read_log(self, begins: int) -> str:
        if not self.log.exists():
            return ""
        with self.log.open("rb") as file:
            file.seek(begins)
            return file.read().decode(errors="replace")

    def log_tail(self, lines: int = 40) -> str:
        """The end of what the executions have said."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(30)


@contextmanager
def token_issuer() -> Iterator[str]:
    """The user's service behind a `SharedPaymentTokens` block; every token is another one."""

    class Issuer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            body = json.dumps({"spt": f"spt_{uuid4().hex}"}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            pass

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Issuer)) as address:
        yield address
