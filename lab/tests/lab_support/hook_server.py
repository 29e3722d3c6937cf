"""A webhook receiver on loopback that keeps what it gets and answers as told."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


@dataclass
class Hook:
    """What was received, and what is answered: statuses in order, then 204."""

    url: str = ""
    received: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    on_receive: Callable[[bytes], Any] | None = None


@contextmanager
def hook_server() -> Iterator[Hook]:
    """Serve in a thread for the time of the block."""
    hook = Hook()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            hook.received.append((dict(self.headers.items()), body))
            if hook.on_receive:
                hook.on_receive(body)
            self.send_response(hook.statuses.pop(0) if hook.statuses else 204)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    hook.url = f"http://127.0.0.1:{server.server_port}/hook"
    try:
        yield hook
    finally:
        server.shutdown()
        thread.join(timeout=5)
        server.server_close()
