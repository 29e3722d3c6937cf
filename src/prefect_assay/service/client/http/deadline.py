"""One limit of time for a whole answer: connecting, sending, the head, the body, a file.

httpx limits only a step without progress, and a service that sends a byte a second makes progress for ever. So each
read of the network ends at the deadline of the request that it belongs to.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

import httpcore
import httpx

# A file may take long; what takes longer than this has stopped.
BYTES_PER_SECOND_MIN: Final = 64 * 1024

_end: ContextVar[float | None] = ContextVar("assay_deadline", default=None)


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """End what httpx waits for in this context after this many seconds, with its own time-outs."""
    token = _end.set(time.monotonic() + max(seconds, 0.0))
    try:
        yield
    finally:
        _end.reset(token)


class Pace:
    """How long a file may still take, by what has come of it."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock, self._began = seconds, clock, clock()

    def left(self, received: int) -> float:
        """Seconds until the next piece is too late; negative when it already is."""
        return self._began + self._seconds + received / BYTES_PER_SECOND_MIN - self._clock()


def limit_connections(client: httpx.Client) -> None:
    """Let the connections of a client end at the deadline."""
    # httpx has no public way to a transport's network: a test fails where these names are others.
    for transport in (client._transport, *client._mounts.values()):  # noqa: SLF001
        if isinstance(transport, httpx.HTTPTransport):
            transport._pool._network_backend = _Network()  # noqa: SLF001


def _left(timeout: float | None, late: type[Exception]) -> float | None:
    end = _end.get()
    if end is None:
        return timeout
    left = end - time.monotonic()
    if left <= 0:
        raise late("the answer took too long")
    return left if timeout is None else min(timeout, left)


class _Network(httpcore.SyncBackend):
    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        limit = _left(timeout, httpcore.ConnectTimeout)
        return _Stream(super().connect_tcp(host, port, limit, local_address, socket_options))


class _Stream(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _left(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _left(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        limit = _left(timeout, httpcore.ConnectTimeout)
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, limit))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
