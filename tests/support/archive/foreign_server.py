"""HTTP servers on loopback that are not S3, or no longer at this address: they answer each request in the same way."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from support.services.serving import serving


@contextmanager
def foreign_server(
    status: int, headers: Mapping[str, str], body: bytes = b"", *, head_length: bool = True
) -> Iterator[str]:
    """Serve this answer; `{path}` in a header is the path of the request. Yields the address."""

    class Foreign(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response_only(status)
            for name, value in headers.items():
                self.send_header(name, value.replace("{path}", self.path.partition("?")[0]))
            if head_length or self.command != "HEAD":
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _answer  # noqa: N815 - the names of http.server

        def log_message(self, *_: object) -> None:
            pass

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Foreign)) as address:
        yield address
