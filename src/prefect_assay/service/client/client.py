"""`AssayClient`: one connection to the service, with its calls grouped by resource."""

import time
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Self, TypeVar

import httpx
from pydantic import SecretStr

from prefect_assay.errors import AssayError
from prefect_assay.service.client.http.dates import sent_at
from prefect_assay.service.client.http.deadline import Pace, deadline, limit_connections
from prefect_assay.service.client.http.exchange import (
    ANSWER_BYTES_MAX,
    DOWNLOAD_BYTES_MAX,
    Attempt,
    Download,
    Meter,
    RetryPolicy,
    TooLarge,
    carry_out,
    open_file,
)
from prefect_assay.service.client.http.failures import too_large
from prefect_assay.service.client.http.request import Answer, Operation, Request
from prefect_assay.service.client.http.wire import NO_ANSWER, Wire, broken_off, lost, unlogged_query
from prefect_assay.service.client.resources.custom_targets import CustomTargets
from prefect_assay.service.client.resources.documents import Documents
from prefect_assay.service.client.resources.experiments import Experiments
from prefect_assay.service.client.resources.invoices import Invoices
from prefect_assay.service.client.resources.quotes import Quotes
from prefect_assay.service.client.resources.results import Results
from prefect_assay.service.client.resources.sequences import Sequences
from prefect_assay.service.client.resources.service import Service
from prefect_assay.service.client.resources.targets import Targets
from prefect_assay.service.client.resources.tokens import Tokens
from prefect_assay.service.client.resources.updates import Updates
from prefect_assay.service.client.resources.webhooks import Webhooks
from prefect_assay.service.models.service import SIMULATED_HEADER, SIMULATED_VALUE, WireWords

T = TypeVar("T")


class AssayClient:
    """A client of the service; use it as a context manager. Several threads may share it.

    In asynchronous code, call its methods with `asyncio.to_thread`.

    Args:
        base_url: the service's address without `/api/v1`; https, or http on loopback.
        token: your own API token (contract 5.6); None for calls that need no token.
        words: how this deployment spells the provider's and the service's name.
        timeout: seconds without progress after which a request counts as lost; a whole answer may take ten times that.
        retries: repeats of requests that change nothing; others are never repeated.
        transport: an httpx transport instead of the network.
        policy: the back-off; replaces `retries`.
        max_download: the most bytes of one file, such as a data package.
        sleep: how to wait between repeats.
        pace: called before each request that changes nothing; may wait.

    Attributes:
        experiments: pricing, ordering, following and changing experiments (contract 4.2).
        sequences: the proteins of experiments (contract 4.3).
        targets: the catalog of antigens (contract 4.4).
        custom_targets: requests for antigens that the catalog lacks.
        results: what was measured (contract 4.5).
        updates: the feed of news (contract 4.5).
        quotes: prices to accept or reject (contract 4.5).
        invoices: what is to be paid, and paying it by machine (contract 4.5).
        documents: files, and every answer about one experiment byte for byte.
        tokens: who calls, restricting and revoking tokens (contract 4.6).
        webhooks: where the organization receives updates (contract 4.6).
        service: the service's own description (contract 1).

    Raises:
        ConfigurationError: the address or the token is not usable.

    Example:
        ```python
        with AssayClient("https://lab.example.org", token) as client:
            for experiment in client.experiments.iterate(status="in_production"):
                print(experiment.code, experiment.created_at)
        ```
    """

    def __init__(
        self,
        base_url: str,
        token: SecretStr | str | None,
        *,
        words: WireWords | None = None,
        timeout: float = 30.0,
        retries: int = 4,
        transport: httpx.BaseTransport | None = None,
        policy: RetryPolicy | None = None,
        max_download: int = DOWNLOAD_BYTES_MAX,
        sleep: Callable[[float], object] = time.sleep,
        pace: Callable[[], None] | None = None,
    ) -> None:
        self._wire = Wire.of(base_url, token, words or WireWords(), timeout)
        self._policy = policy or RetryPolicy(repeats=retries)
        self._max_download = max_download
        self._sleep = sleep
        self._pace = pace
        self._service_time: datetime | None = None
        self._is_simulated = False
        self._http = httpx.Client(transport=transport, **self._wire.options())
        limit_connections(self._http)
        self.experiments = Experiments(self)
        self.sequences = Sequences(self)
        self.targets = Targets(self)
        self.custom_targets = CustomTargets(self)
        self.results = Results(self)
        self.updates = Updates(self)
        self.quotes = Quotes(self)
        self.invoices = Invoices(self)
        self.documents = Documents(self)
        self.tokens = Tokens(self)
        self.webhooks = Webhooks(self)
        self.service = Service(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_url!r})"

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    @property
    def base_url(self) -> str:
        """The service's address, without `/api/v1` and without a trailing slash."""
        return self._wire.base_url

    @property
    def service_time(self) -> datetime | None:
        """The clock of the service at its last answer, by its `Date`; None before one says."""
        return self._service_time

    @property
    def is_simulated(self) -> bool:
        """Return True if the service's last answer says that it is a local lab, where orders cost nothing.

        False before the first answer, and for every service that does not say so: the contract has no such header. Read
        it after a successful call, because a gateway that answers in place of a lab does not know.
        """
        return self._is_simulated

    def run(self, operation: Operation[T]) -> T:
        """Carry out one operation, repeated only where its request allows; AssayError as it documents.

        The methods of the resources do this for you. An operation that you make by hand is not checked before it is sent.

        Example:
            ```python
            from prefect_assay.service.client.http.request import Operation, Request

            request = Request(method="GET", path="/experiments", params=(("limit", "100"),))
            print(client.run(Operation(request=request, read=lambda answer: answer.json()))["total"])
            ```
        """
        return carry_out(operation, self._policy, self._wire.secrets, self._send, self._sleep)

    def stream(self, file: Download) -> Iterator[bytes]:
        """Yield a file piece by piece; `documents.download` and the methods for PDFs do this for you."""
        request, response = open_file(
            file, self.base_url, self._policy, self._wire.secrets, self._send, self._sleep
        )
        failure: AssayError | None = None
        try:
            meter = Meter(response.headers, self._max_download if file.max_bytes is None else file.max_bytes)
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

    def _send(self, attempt: Attempt) -> Answer | AssayError | httpx.Response:
        """The answer, the error of a request without one, or the open response of a file."""
        # Not for a file of another host, and not for an order or a payment.
        if self._pace is not None and attempt.with_token and attempt.request.repeatable:
            self._pace()
        outgoing = self._wire.outgoing(self._http, attempt)
        auth = self._wire.auth if attempt.with_token else None
        try:
            with deadline(self._wire.total_seconds):
                with unlogged_query(active=attempt.url is not None, path=attempt.hides_path):
                    response = self._http.send(outgoing, auth=auth, stream=True)
                if attempt.url is not None and response.is_success:
                    return response
                return self._note_answer(
                    attempt, self._wire.answer(response, _read_body(attempt.request, response))
                )
        except NO_ANSWER as error:
            return lost(attempt.request, error)

    def _note_answer(self, attempt: Attempt, answer: Answer) -> Answer:
        if attempt.url is None:  # a file may come from another host, which says nothing about the service
            self._service_time = sent_at(answer.headers) or self._service_time
            self._is_simulated = answer.headers.get(SIMULATED_HEADER.lower()) == SIMULATED_VALUE
        return answer


def _read_body(request: Request, response: httpx.Response) -> bytes:
    try:
        meter = Meter(response.headers, ANSWER_BYTES_MAX)
        return b"".join(map(meter.count, response.iter_bytes()))
    except TooLarge as cause:
        raise too_large(request, cause, response.status_code) from None
    finally:
        response.close()
