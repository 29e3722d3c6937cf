"""A proxy in front of the lab that mixes answers up, as a gateway with a broken cache or a shared connection does.

The requests reach the lab unchanged; only what comes back is another answer, or the same in another spelling.
"""

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx

from support.services.serving import serving

_OF_ONE_CONNECTION = {
    "connection",
    "keep-alive",
    "transfer-encoding",
    "content-length",
    "content-encoding",
    "host",
}
_UUID = re.compile(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

Change = Callable[[int, bytes], tuple[int, bytes]]


class MixingProxy:
    """Which answers are changed: each rule has a method, a pattern of the path below `/api/v1`, and the change."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.base_url = ""
        self.provider = "provider"
        self.seen: list[tuple[str, str, int, bytes]] = []
        self._rules: list[tuple[str, re.Pattern[str], Change]] = []
        self._lock = threading.Lock()

    def change(self, method: str, path: str, change: Change) -> None:
        """From now on, change the answers to these requests."""
        with self._lock:
            self._rules.append((method, re.compile(path), change))

    def pass_everything(self) -> None:
        """From now on, change nothing."""
        with self._lock:
            self._rules.clear()

    def answer_with(self, method: str, path: str, status: int, body: Any) -> None:
        """The requests are carried out, and this comes back."""
        self.change(method, path, lambda *_: (status, json.dumps(body).encode()))

    def answer_with_that_of(self, path: str, other: str, token: str) -> None:
        """What comes back to a GET is what the lab answers to a GET of the other path."""

        def fetch(*_: object) -> tuple[int, bytes]:
            got = httpx.get(
                f"{self.origin}/api/v1{other}", headers={"Authorization": f"Bearer {token}"}, timeout=30
            )
            return got.status_code, got.content

        self.change("GET", path, fetch)

    def shout_ids(self, method: str, path: str) -> None:
        """UUIDs come back in upper case."""
        self.change(method, path, lambda status, body: (status, _UUID.sub(lambda one: one[0].upper(), body)))

    def changed(self, method: str, path: str, status: int, body: bytes) -> tuple[int, bytes]:
        """What comes back."""
        with self._lock:
            rules = list(self._rules)
            self.seen.append((method, path, status, body))
        for wanted, pattern, change in rules:
            if wanted == method and pattern.fullmatch(path):
                status, body = change(status, body)
        return status, body

    def created(self) -> list[Any]:
        """What the lab has answered to creates."""
        return [
            json.loads(body)
            for method, path, _, body in self.seen
            if (method, path) == ("POST", "/experiments")
        ]


@contextmanager
def mixing_proxy(origin: str) -> Iterator[MixingProxy]:
    """Serve on loopback in front of a lab."""
    proxy = MixingProxy(origin)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            given = {k: v for k, v in self.headers.items() if k.lower() not in _OF_ONE_CONNECTION}
            got = client.request(
                self.command,
                f"{origin}{self.path}",
                content=body,
                headers={**given, "Accept-Encoding": "identity"},
            )
            path = self.path.partition("?")[0].partition("/api/v1")[2]
            status, content = proxy.changed(self.command, path, got.status_code, got.content)
            self.send_response(status)
            for name, value in got.headers.items():
                if name.lower() not in {*_OF_ONE_CONNECTION, "date", "server"}:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            with suppress(ConnectionError):
                self.wfile.write(content)

        do_GET = do_POST = do_PATCH = answer  # noqa: N815 - the library's names

        def log_message(self, *_: object) -> None:
            pass

    with (
        httpx.Client(timeout=30) as client,
        serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as address,
    ):
        proxy.base_url = address
        yield proxy
