"""`AsyncAssayClient`: the asynchronous face. It sends requests, receives answers and decides nothing."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Self, TypeVar

import httpx

from prefect_assay.errors import AssayError
from prefect_assay.service.client.http.deadline import Pace
from prefect_assay.service.client.http.exchange import (
    ANSWER_BYTES_MAX,
    Attempt,
    Download,
    Flow,
    Meter,
    TooLarge,
    carry_out,
    open_file,
)
from prefect_assay.service.client.http.failures import too_large
from prefect_assay.service.client.http.pagination import Walk, steps
from prefect_assay.service.client.http.request import Answer, Operation, Request
from prefect_assay.service.client.http.wire import (
    NO_ANSWER,
    broken_off,
    lost,
    unlogged_query,
)
from prefect_assay.service.client.methods import Methods
from prefect_assay.service.client.operations.results import Pdf

T = TypeVar("T")


class AsyncAssayClient(Methods[httpx.AsyncBaseTransport, Callable[[float], Awaitable[None]]]):
    """An asynchronous client for one event loop; use it as an async context manager.

    Its arguments are those of `AssayClient`, with an asynchronous `transport` and `sleep`.
    """

    _http: httpx.AsyncClient
    _http_client = httpx.AsyncClient
    _pause = staticmethod(asyncio.sleep)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def run(self, operation: Operation[T]) -> T:
        """Carry out one operation, repeated only where its request allows; AssayError as it documents."""
        return await self._drive(carry_out(operation, self._policy, self._wire.secrets))

    async def walk(self, walk: Walk[Any, T]) -> AsyncIterator[T]:
        """Carry out a walk as it is iterated."""
        for operation in steps(walk):
            for item in walk.feed(await self.run(operation)):
                yield item

    async def _all(self, walk: Walk[Any, T]) -> tuple[T, ...]:
        return tuple([item async for item in self.walk(walk)])

    async def _mapping(self, walk: Walk[Any, tuple[str, T]]) -> dict[str, T]:
        return {key: item async for key, item in self.walk(walk)}

    async def _first(self, walk: Walk[Any, T]) -> T | None:
        async for item in self.walk(walk):
            return item
        return None

    async def _pdf(self, file: Pdf) -> bytes:
        return file.whole([piece async for piece in self._stream(file)])

    async def _stream(self, file: Download) -> AsyncIterator[bytes]:
        flow = open_file(file, self.base_url, self._policy, self._wire.secrets)
        request, response = await self._drive(flow)
        failure: AssayError | None = None
        try:
            meter = Meter(response.headers, self._max_bytes(file))
            pieces, pace = response.aiter_bytes(file.chunk_size), Pace(self._wire.total_seconds)
            while True:
                async with asyncio.timeout(pace.left(meter.received)):
                    piece = await anext(pieces, None)
                if piece is None:
                    break
                yield meter.count(piece)
        except (TooLarge, httpx.HTTPError, TimeoutError) as error:
            failure = broken_off(request, error, response.status_code)
        finally:
            await response.aclose()
        if failure is not None:
            raise failure

    async def _drive(self, flow: Flow[T]) -> T:
        attempt = next(flow)
        while True:
            if attempt.wait is not None:
                await self._sleep(attempt.wait)
            outcome = await self._send(attempt)
            try:
                attempt = flow.send(outcome)
            except StopIteration as end:
                value: T = end.value
                return value

    async def _send(self, attempt: Attempt) -> Answer | AssayError | httpx.Response:
        """The answer, the error of a request without one, or the open response of a file."""
        if pace := self._pace_of(attempt):
            await asyncio.to_thread(pace)
        outgoing = self._wire.outgoing(self._http, attempt)
        auth = self._wire.auth if attempt.with_token else None
        try:
            async with asyncio.timeout(self._wire.total_seconds):
                with unlogged_query(active=attempt.url is not None, path=attempt.hides_path):
                    response = await self._http.send(outgoing, auth=auth, stream=True)
                if attempt.url is not None and response.is_success:
                    return response
                return self._note_answer(
                    attempt, self._wire.answer(response, await self._body(attempt.request, response))
                )
        except NO_ANSWER as error:
            return lost(attempt.request, error)

    async def _body(self, request: Request, response: httpx.Response) -> bytes:
        try:
            meter = Meter(response.headers, ANSWER_BYTES_MAX)
            return b"".join([meter.count(piece) async for piece in response.aiter_bytes()])
        except TooLarge as cause:
            raise too_large(request, cause, response.status_code) from None
        finally:
            await response.aclose()
