"""Counts the HTTP requests of this process, whoever makes them: Prefect's client or the service's."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx


@contextmanager
def counted_requests() -> Iterator[list[str]]:
    """The requests made meanwhile, as `METHOD /path`, in order."""
    made: list[str] = []
    sync, asynchronous = httpx.HTTPTransport.handle_request, httpx.AsyncHTTPTransport.handle_async_request

    def handle(self: Any, request: httpx.Request) -> httpx.Response:
        made.append(f"{request.method} {request.url.path}")
        return sync(self, request)

    async def handle_async(self: Any, request: httpx.Request) -> httpx.Response:
        made.append(f"{request.method} {request.url.path}")
        return await asynchronous(self, request)

    httpx.HTTPTransport.handle_request = handle  # type: ignore[method-assign]
    httpx.AsyncHTTPTransport.handle_async_request = handle_async  # type: ignore[method-assign]
    try:
        yield made
    finally:
        httpx.HTTPTransport.handle_request = sync  # type: ignore[method-assign]
        httpx.AsyncHTTPTransport.handle_async_request = asynchronous  # type: ignore[method-assign]
