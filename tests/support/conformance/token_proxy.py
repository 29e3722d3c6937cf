"""A proxy in front of the lab for suites that cannot send a token: it adds one, and passes the rest on unchanged."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx

from support.services.serving import serving

_OF_ONE_CONNECTION = {"connection", "keep-alive", "transfer-encoding", "content-length", "content-encoding"}


@contextmanager
def token_proxy(origin: str, token: str, *, method: str | None = None) -> Iterator[str]:
    """Serve on loopback; yields the address. `method` replaces the method of each request.

    The Host header is passed on as it came: the lab itself refuses foreign ones.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {k: v for k, v in self.headers.items() if k.lower() not in _OF_ONE_CONNECTION}
            got = client.request(
                method or self.command,
                f"{origin}{self.path}",
                content=body,
                headers={**headers, "Authorization": f"Bearer {token}", "Accept-Encoding": "identity"},
            )
            self.send_response(got.status_code)
            for name, value in got.headers.items():
                if name.lower() not in {*_OF_ONE_CONNECTION, "date", "server"}:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(got.content)))
            self.end_headers()
            with suppress(ConnectionError):  # the suite does not wait for every answer
                self.wfile.write(got.content)

        do_GET = do_POST = do_DELETE = answer  # noqa: N815 - the library's names

        def log_message(self, *_: object) -> None:
            pass

    with (
        httpx.Client(timeout=30) as client,
        serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as address,
    ):
        yield address
