"""A Prefect API that fails when a test says so: every connection is passed on, and chosen requests are answered here."""

import socket
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import urlsplit

_CHUNK = 65_536


@dataclass
class Fault:
    """Requests that begin so get this status in place of an answer, so many times.

    Attributes:
        request: how the request line begins, such as `POST /api/artifacts`.
        status: what is answered.
        times: how often.
        after: how many such requests are passed on before.
        passed_on: whether the server sees the request all the same: its answer is lost.
    """

    request: str
    status: int
    times: int = 1
    after: int = 0
    passed_on: bool = False
    seen: int = 0

    @property
    def struck(self) -> bool:
        """Whether a request has failed by it."""
        return self.seen > self.after

    def strikes(self, chunk: bytes) -> bool:
        """Whether this is a request that fails."""
        if not chunk.startswith(self.request.encode()):
            return False
        self.seen += 1
        return self.after < self.seen <= self.after + self.times

    @property
    def answer(self) -> bytes:
        """What the client gets."""
        return f"HTTP/1.1 {self.status} Fault\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()


@dataclass
class PrefectProxy:
    """In front of one server; a context manager. `api_url` is what clients are given."""

    server_url: str
    faults: list[Fault] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    @property
    def api_url(self) -> str:
        """The address of this API."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}/api"

    def fault(self, request: str, status: int, **how: Any) -> Fault:
        """Fail requests from now on; `how` as in `Fault`."""
        self.faults.append(Fault(request, status, **how))
        return self.faults[-1]

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        address = urlsplit(self.server_url)
        lost: list[Fault] = []
        with client, socket.create_connection((str(address.hostname), int(address.port or 80))) as server:
            threading.Thread(target=_answers, args=(server, client, lost), daemon=True).start()
            with suppress(OSError):
                while chunk := client.recv(_CHUNK):
                    # A client of Prefect sends each request's head at the beginning of a packet.
                    fault = next((fault for fault in self.faults if fault.strikes(chunk)), None)
                    if fault is not None and not fault.passed_on:
                        client.sendall(fault.answer)
                        return
                    lost += [fault] if fault else []
                    server.sendall(chunk)


def _answers(server: socket.socket, client: socket.socket, lost: list[Fault]) -> None:
    with suppress(OSError):
        while chunk := server.recv(_CHUNK):
            client.sendall(lost[0].answer if lost else chunk)
            if lost:
                break
    with suppress(OSError):
        client.shutdown(socket.SHUT_RDWR)
