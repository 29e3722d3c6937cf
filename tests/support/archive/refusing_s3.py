"""An S3 server on loopback that refuses every request, as S3 does: the answer to a HEAD has a status only."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from support.services.serving import serving


@contextmanager
def refusing_server(status: int, code: str) -> Iterator[str]:
    """Serve this refusal; yields the address."""
    body = f"<Error><Code>{code}</Code><Message>m</Message></Error>".encode()

    class Refusal(BaseHTTPRequestHandler):
        def do_GET(self):  # the names are those of http.server
            self.send_response(status)
            self.send_header("Content-Type", "application/xml")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815  likewise

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Refusal)
    with serving(server) as address:
        yield address
