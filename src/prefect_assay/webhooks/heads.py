"""Closes connections whose request head does not come: uvicorn waits for it without a limit.

A sender that opens as many connections as the receiver takes, with half a head on each, would keep all deliveries out.
"""

import asyncio
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

SECONDS: Final = 10.0


class HeadTimeoutProtocol(H11Protocol):
    """uvicorn's protocol with a time limit for each request head, from the connection or its first byte on.

    A connection that is kept open between two requests follows uvicorn's own time-out.
    """

    def __init__(self, *arguments: Any, seconds: float = SECONDS, **more: Any) -> None:
        """`seconds` limits the arrival of a head; all other arguments are uvicorn's."""
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
