"""A scripted service on loopback that can fail in every way a connection can. It is not the lab.

Each connection carries one request and takes the next step of the script; the requests that were read whole are
kept. A step is a function of the connection and the request.
"""

import json
import socket
import struct
import threading
import time
import zlib
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Seen:
    """One request as it arrived."""

    method: str
    target: str
    headers: dict
    body: bytes

    @property
    def path(self):
        return self.target.partition("?")[0]

    def json(self):
        return json.loads(self.body)


def reply(status=200, body=None, **headers):
    """An answer; a body that is not bytes is sent as JSON. Underscores in header names stand for hyphens."""
    content = body if isinstance(body, bytes) else json.dumps({} if body is None else body).encode()
    sent = {"content-type": "application/json", "x-request-id": "req_1", "content-length": str(len(content))}
    sent |= {name.replace("_", "-"): str(value) for name, value in headers.items()}

    def step(connection, request):
        lines = [f"HTTP/1.1 {status} X", *(f"{name}: {value}" for name, value in sent.items())]
        connection.sendall("\r\n".join([*lines, "connection: close", "", ""]).encode() + content)

    return step


def gzip_bomb(mebibytes):
    """Zeros, packed a thousand times smaller."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    piece = bytes(1 << 20)
    first, *rest = [packer.compress(piece) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2)]
    return first + rest[0] * (mebibytes - 1)


def truncated(status=200, body=b'{"id": "half'):
    """Promises more than it sends, and hangs up."""
    return reply(status, body, content_length=len(body) + 50)


def reset():
    """Reads the whole request, then breaks the connection: it may have been handled."""

    def step(connection, request):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    return step


def hang(seconds):
    """Reads the request and says nothing."""

    def step(connection, request):
        time.sleep(seconds)

    return step


def raw(*pieces, pause=0.0, then=None):
    """Sends these bytes as they are, then the last ones again and again, until the client hangs up."""

    def step(connection, request):
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(pause)
        while then is not None:
            connection.sendall(then)
            time.sleep(pause)

    return step


@dataclass
class FaultServer:
    """What it will do and what it has seen."""

    base_url: str
    script: list = field(default_factory=list)
    seen: list = field(default_factory=list)

    def will(self, *steps):
        self.script[:] = steps
        self.seen.clear()
        return self

    @property
    def methods(self):
        return [request.method for request in self.seen]


def _serve(listener, server):
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=_one, args=(connection, server), daemon=True).start()


def _one(connection, server):
    with connection:
        connection.settimeout(5)
        try:
            request = _read(connection)
            if request is None:
                return
            server.seen.append(request)
            step = server.script.pop(0) if server.script else reply(500, {"error": "the script has ended"})
            step(connection, request)
        except OSError:
            return


def _read(connection):
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            return None
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ")
    headers = {
        name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
    }
    while len(body) < int(headers.get("content-length", 0)):
        body += connection.recv(65536)
    return Seen(method, target, headers, body)


@contextmanager
def fault_server():
    """A running server on a free port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = FaultServer(f"http://127.0.0.1:{listener.getsockname()[1]}")
        threading.Thread(target=_serve, args=(listener, server), daemon=True).start()
        yield server
        listener.shutdown(socket.SHUT_RDWR)
