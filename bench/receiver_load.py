"""Sends prepared HTTP requests at fixed times over keep-alive connections, cheaply, and notes every answer.

The times do not wait for answers: a request that comes due while its connection is busy is sent late, and its delay
counts from the time it was due. Nothing is parsed but the status line, the length and the body.
"""

import asyncio
import time
from collections import deque
from dataclasses import dataclass, field


@dataclass(slots=True)
class Shot:
    """One request and what became of it; times are seconds of the monotonic clock, 0 when it never happened."""

    kind: str
    request: bytes
    name: str = ""
    due: float = 0.0
    sent: float = 0.0
    answered: float = 0.0
    status: int = 0
    body: bytes = b""

    @property
    def delay(self) -> float:
        """From the time it was due to the end of its answer, in seconds: what is judged."""
        return self.answered - self.due

    @property
    def lag(self) -> float:
        """How late it was sent: the generator's own part, and the wait for a connection that was busy."""
        return self.sent - self.due

    @property
    def wait(self) -> float:
        """From the moment it was sent to the end of its answer, in seconds."""
        return self.answered - self.sent


class Connection(asyncio.Protocol):
    """One keep-alive connection, one request under way at a time."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self._transport: asyncio.Transport | None = None
        self._queue: deque[Shot] = deque()
        self._under_way: Shot | None = None
        self._buffer = b""

    async def open(self) -> None:
        await asyncio.get_running_loop().create_connection(lambda: self, *self._address)

    def connection_made(self, transport) -> None:
        self._transport = transport
        self._next()

    def connection_lost(self, _error) -> None:
        self._transport, self._under_way, self._buffer = None, None, b""  # the shot stays without an answer
        if self._queue:
            self._again = asyncio.ensure_future(self.open())

    def fire(self, shot: Shot) -> None:
        self._queue.append(shot)
        if self._transport is None:
            self._again = asyncio.ensure_future(self.open())
        elif self._under_way is None:
            self._next()

    def _next(self) -> None:
        if self._queue and self._under_way is None and self._transport is not None:
            shot = self._under_way = self._queue.popleft()
            shot.sent = time.monotonic()
            self._transport.write(shot.request)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, separator, body = self._buffer.partition(b"\r\n\r\n")
        if not separator or self._under_way is None:
            return
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
        if len(body) < length:
            return
        shot, self._under_way, self._buffer = self._under_way, None, b""
        shot.answered = time.monotonic()
        shot.status, shot.body = int(head[9:12]), body
        self._next()

    def close(self) -> None:
        self._queue.clear()
        if self._transport is not None:
            self._transport.close()


@dataclass
class Stream:
    """Shots at a fixed rate, dealt to so many connections in turn."""

    host: str
    port: int
    rate: float
    connections: int
    shots: list[Shot]
    _open: list[Connection] = field(default_factory=list)

    async def run(self, start: float) -> None:
        """Fire all of them from `start` on, a time of the monotonic clock."""
        self._open = [Connection(self.host, self.port) for _ in range(self.connections)]
        for connection in self._open:
            await connection.open()
        for number, shot in enumerate(self.shots):
            shot.due = start + number / self.rate
            wait = shot.due - time.monotonic()
            if wait > 0:
                await asyncio.sleep(wait)
            self._open[number % self.connections].fire(shot)

    async def settle(self, seconds: float) -> None:
        """Wait for the answers that are still to come."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and any(not s.answered for s in self.shots):  # noqa: ASYNC110 - callbacks fill it
            await asyncio.sleep(0.05)
        for connection in self._open:
            connection.close()


def request(path: str, body: bytes, headers: dict[str, str]) -> bytes:
    """A POST as it goes over the wire."""
    lines = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def percentile(values: list[float], share: float) -> float:
    """The smallest value that so large a share of them does not pass."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else float("nan")
