"""The process that is killed, as a test holds it, and the user's token issuer, which outlives it."""

import json
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


@dataclass(frozen=True)
class Execution:
    """One process: how it ended, the points it reached in their order, and the means of payment it has sent."""

    code: int
    points: tuple[str, ...]
    credentials: tuple[str, ...]

    @classmethod
    def traced(cls, code: int, trace: Path) -> Self:
        """From what the process has written down."""
        lines = trace.read_text().splitlines()
        sent = tuple(line for line in lines if line.startswith("credential "))
        return cls(code, tuple(line for line in lines if line not in sent), sent)


class Killable:
    """The forking process, as support/crash/child.py describes it."""

    def __init__(self, folder: Path, env: Mapping[str, str], names: Mapping[str, str]) -> None:
        self._folder = folder
        self._names = dict(names)
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
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        code = json.loads(self._process.stdout.readline())["code"]
        return Execution.traced(code, trace)

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
