"""Closes connections whose request head does not come: uvicorn waits for it without a limit."""

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


class HeadTimeoutProtocol(H11Protocol):
    """uvicorn's protocol with a time limit for each request head, from the connection or its first byte on.

    Otherwise half a head on each connection keeps all deliveries out. uvicorn's own time-out covers idle connections.
    """

    def __init__(self, *arguments: Any, seconds: float = 10.0, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._seconds = seconds
        self._limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the limit for the first head."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Start the limit with a head's first byte, and stop it when the head is complete."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the limit."""
        self._stop()
        super().connection_lost(exc)

    def _watch(self) -> None:
        if self.conn.their_state is not h11.IDLE:  # the head is complete
            self._stop()
        elif self._limit is None:  # more bytes of the same head do not prolong it
            self._limit = self.loop.call_later(self._seconds, self.transport.close)

    def _stop(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None
