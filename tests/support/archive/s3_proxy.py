"""A proxy in front of an S3 server: refuses requests, loses answers, and keeps what was sent."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from urllib.parse import urlsplit

from support.services.serving import serving

_HOP = frozenset({"connection", "transfer-encoding", "content-length", "keep-alive"})


@dataclass(frozen=True)
class Request:
    """One request as the proxy received it; the names of headers are in lower case."""

    method: str
    target: str
    headers: dict[str, str]

    @property
    def uploads(self) -> bool:
        """It has the content of an object."""
        return self.method == "PUT" and self.target.count("/") > 1


@dataclass(frozen=True)
class Refused:
    """The answer in place of the server's."""

    status: int
    code: str
    message: str = "m"

    def body(self) -> bytes:
        return f"<Error><Code>{self.code}</Code><Message>{self.message}</Message></Error>".encode()


LOST = "lost"  # the server answers, and the connection ends before its answer arrives
Decision = Refused | str | None


@dataclass
class S3Proxy:
    """`decide` is called with each request, in turn."""

    decide: Callable[[Request], Decision] = lambda _request: None
    address: str = ""
    seen: list[Request] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)

    def decision(self, request: Request) -> Decision:
        with self._lock:
            self.seen.append(request)
            return self.decide(request)

    def times(self, count: int, decision: Decision, fits: Callable[[Request], bool] = lambda _: True) -> None:
        """Decide so for the next requests that fit; all others pass."""
        left = [count]

        def decide(request: Request) -> Decision:
            if left[0] and fits(request):
                left[0] -= 1
                return decision
            return None

        self.decide = decide


@contextmanager
def s3_proxy(upstream: str, *, one_upload_at_a_time: bool = False) -> Iterator[S3Proxy]:
    """Serve on loopback. `Host` is passed on as it came, because it is part of the signature."""
    proxy, server_address = S3Proxy(), urlsplit(upstream)
    uploads = Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            headers.pop("expect", None)
            request = Request(self.command, self.path, headers)
            decision = proxy.decision(request)
            if isinstance(decision, Refused):
                self._answer(decision.status, {"Content-Type": "application/xml"}, decision.body())
                return
            connection = HTTPConnection(server_address.hostname or "", server_address.port, timeout=30)
            turn = uploads if one_upload_at_a_time and request.uploads else nullcontext()
            try:
                with turn:
                    connection.request(self.command, self.path, body, headers)
                    answer = connection.getresponse()
                    content = answer.read()
            finally:
                connection.close()
            if decision == LOST:
                self.close_connection = True
                return
            kept = {name: value for name, value in answer.getheaders() if name.lower() not in _HOP}
            length = answer.getheader("Content-Length") if self.command == "HEAD" else None
            self._answer(answer.status, kept, content, length)

        def _answer(
            self, status: int, headers: dict[str, str], body: bytes, length: str | None = None
        ) -> None:
            self.send_response_only(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", length or str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _pass  # noqa: N815 - the names of http.server

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    with serving(server) as address:
        proxy.address = address
        yield proxy
