"""`AssayClient`: the synchronous face. It sends requests, receives answers and decides nothing."""

import time
from collections.abc import Callable, Iterator
from typing import Any, Self, TypeVar

import httpx

from prefect_assay.errors import AssayError
from prefect_assay.service.client.http.deadline import Pace, deadline
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


class AssayClient(Methods[httpx.BaseTransport, Callable[[float], None]]):
    """A synchronous client of the service; use it as a context manager.

    Args:
        base_url: the service's address without `/api/v1`; https, or http on loopback.
        token: the user's own API token (contract 5.6); None for calls that need no token.
        words: how this deployment spells the provider's and the service's name.
        timeout: seconds without progress after which a request counts as lost.
        retries: repeats of requests that change nothing; others are never repeated.
        transport: an httpx transport instead of the network.
        policy: the back-off; replaces `retries`.
        max_download: the most bytes of one file, such as a data package.
        sleep: how to wait between repeats.
        pace: called before each request that changes nothing, in a thread of the asynchronous client; may wait.

    Raises:
        ConfigurationError: the address or the token is not usable.
    """

    _http: httpx.Client
    _http_client = httpx.Client
    _pause = staticmethod(time.sleep)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def run(self, operation: Operation[T]) -> T:
        """Carry out one operation, repeated only where its request allows; AssayError as it documents."""
        return self._drive(carry_out(operation, self._policy, self._wire.secrets))

    def walk(self, walk: Walk[Any, T]) -> Iterator[T]:
        """Carry out a walk as it is iterated."""
        for operation in steps(walk):
            yield from walk.feed(self.run(operation))

    def _all(self, walk: Walk[Any, T]) -> tuple[T, ...]:
        return tuple(self.walk(walk))

    def _mapping(self, walk: Walk[Any, tuple[str, T]]) -> dict[str, T]:
        return dict(self.walk(walk))

    def _first(self, walk: Walk[Any, T]) -> T | None:
        return next(self.walk(walk), None)

    def _pdf(self, file: Pdf) -> bytes:
        return file.whole(self._stream(file))

    def _stream(self, file: Download) -> Iterator[bytes]:
        flow = open_file(file, self.base_url, self._policy, self._wire.secrets)
        request, response = self._drive(flow)
        failure: AssayError | None = None
        try:
            meter = Meter(response.headers, self._max_bytes(file))
            pieces, pace = response.iter_bytes(file.chunk_size), Pace(self._wire.total_seconds)
            while True:
                with deadline(pace.left(meter.received)):
                    piece = next(pieces, None)
                if piece is None:
                    break
                yield meter.count(piece)
        except (TooLarge, httpx.HTTPError) as error:
            failure = broken_off(request, error, response.status_code)
        finally:
            response.close()
        if failure is not None:
            raise failure

    def _drive(self, flow: Flow[T]) -> T:
        attempt = next(flow)
        while True:
            if attempt.wait is not None:
                self._sleep(attempt.wait)
            outcome = self._send(attempt)
            try:
                attempt = flow.send(outcome)
            except StopIteration as end:
                value: T = end.value
                return value

    def _send(self, attempt: Attempt) -> Answer | AssayError | httpx.Response:
        """The answer, the error of a request without one, or the open response of a file."""
        if pace := self._pace_of(attempt):
            pace()
        outgoing = self._wire.outgoing(self._http, attempt)
        auth = self._wire.auth if attempt.with_token else None
        try:
            with deadline(self._wire.total_seconds):
                with unlogged_query(active=attempt.url is not None, path=attempt.hides_path):
                    response = self._http.send(outgoing, auth=auth, stream=True)
                if attempt.url is not None and response.is_success:
                    return response
                return self._note_answer(
                    attempt, self._wire.answer(response, self._body(attempt.request, response))
                )
        except NO_ANSWER as error:
            return lost(attempt.request, error)

    def _body(self, request: Request, response: httpx.Response) -> bytes:
        try:
            meter = Meter(response.headers, ANSWER_BYTES_MAX)
            return b"".join(map(meter.count, response.iter_bytes()))
        except TooLarge as cause:
            raise too_large(request, cause, response.status_code) from None
        finally:
            response.close()
