"""`AsyncAssayClient`: the asynchronous face. It carries requests and answers and decides nothing.

Each public method is an operation of the core, which defines its parameters, its answer and its errors.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx
from pydantic import SecretStr

from prefect_assay.client import patch as _modifying
from prefect_assay.client.http.download import Download
from prefect_assay.client.http.failures import conclude, successor, too_large
from prefect_assay.client.http.limits import (
    ANSWER_BYTES_MAX,
    DOWNLOAD_ADVICE,
    DOWNLOAD_BYTES_MAX,
    Meter,
    TooLarge,
    operations,
)
from prefect_assay.client.http.pagination import Walk
from prefect_assay.client.http.request import Answer, Operation, Request
from prefect_assay.client.http.retry import RetryPolicy
from prefect_assay.client.http.wire import NO_ANSWER, Wire, lost, unlogged_query
from prefect_assay.client.method import method
from prefect_assay.client.operations import custom_targets as _custom_targets
from prefect_assay.client.operations import documents as _documents
from prefect_assay.client.operations import experiments as _experiments
from prefect_assay.client.operations import invoice_search as _invoice_search
from prefect_assay.client.operations import invoices as _invoices
from prefect_assay.client.operations import payment as _paying
from prefect_assay.client.operations import pdf as _pdf
from prefect_assay.client.operations import quotes as _quotes
from prefect_assay.client.operations import results as _results
from prefect_assay.client.operations import sequences as _sequences
from prefect_assay.client.operations import service as _service
from prefect_assay.client.operations import targets as _targets
from prefect_assay.client.operations import tokens as _tokens
from prefect_assay.client.operations import updates as _updates
from prefect_assay.client.operations import webhooks as _webhooks
from prefect_assay.client.operations.pdf import Pdf
from prefect_assay.errors import AssayError, NotFound
from prefect_assay.models.words import WireWords

T = TypeVar("T")

logger = logging.getLogger(__name__)


async def _run(client: "AsyncAssayClient", operation: Operation[T]) -> T:
    return await client.run(operation)


def _each(client: "AsyncAssayClient", walk: Walk[Any, T]) -> AsyncIterator[T]:
    return client.walk(walk)


async def _all(client: "AsyncAssayClient", walk: Walk[Any, T]) -> tuple[T, ...]:
    return tuple([item async for item in client.walk(walk)])


async def _first(client: "AsyncAssayClient", walk: Walk[Any, T]) -> T | None:
    async for item in client.walk(walk):
        return item
    return None


async def _whole(client: "AsyncAssayClient", pdf: Pdf) -> bytes:
    return pdf.whole(
        [piece async for piece in client.download(pdf.path, absent=pdf.absent, max_bytes=ANSWER_BYTES_MAX)]
    )


class AsyncAssayClient:
    """An asynchronous client of the service, for one event loop; use it as an async context manager.

    Its arguments are those of `AssayClient`, with an asynchronous `transport` and `sleep`.
    """

    def __init__(
        self,
        base_url: str,
        token: SecretStr | str | None,
        *,
        words: WireWords | None = None,
        timeout: float = 30.0,
        retries: int = 4,
        transport: httpx.AsyncBaseTransport | None = None,
        policy: RetryPolicy | None = None,
        max_download: int = DOWNLOAD_BYTES_MAX,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._max_download = max_download
        self._wire = Wire.of(base_url, token, words or WireWords(), timeout)
        self._policy = policy or RetryPolicy(repeats=retries)
        self._sleep = sleep
        self._http = httpx.AsyncClient(transport=transport, **self._wire.options())

    whoami = method(_tokens.whoami, _run)
    tokens = method(_tokens.tokens, _run)
    iter_tokens = method(_tokens.iter_tokens, _each)
    attenuate_token = method(_tokens.attenuate_token, _run)
    revoke_token = method(_tokens.revoke_token, _run)
    mint_token = method(_tokens.mint_token, _run)

    health = method(_service.health, _run)
    health_db = method(_service.health_db, _run)
    openapi = method(_service.openapi, _run)
    feedback = method(_service.feedback, _run)

    webhooks = method(_webhooks.webhooks, _run)
    create_webhook = method(_webhooks.create_webhook, _run)
    update_webhook = method(_webhooks.update_webhook, _run)
    delete_webhook = method(_webhooks.delete_webhook, _run)

    targets = method(_targets.targets, _run)
    iter_targets = method(_targets.iter_targets, _each)
    target = method(_targets.target, _run)
    custom_targets = method(_custom_targets.custom_targets, _run)
    iter_custom_targets = method(_custom_targets.iter_custom_targets, _each)
    custom_target = method(_custom_targets.custom_target, _run)
    request_custom_target = method(_custom_targets.request_custom_target, _run)

    estimate = method(_experiments.estimate, _run)
    create = method(_experiments.create, _run)
    experiments = method(_experiments.experiments, _run)
    iter_experiments = method(_experiments.iter_experiments, _each)
    experiment = method(_experiments.experiment, _run)
    submit = method(_experiments.submit, _run)
    modify = method(_modifying.modify, _run)

    add_sequences = method(_sequences.add_sequences, _run)
    sequences = method(_sequences.sequences, _run)
    iter_sequences = method(_sequences.iter_sequences, _each)
    sequence = method(_sequences.sequence, _run)
    experiment_sequences = method(_sequences.experiment_sequences, _run)
    iter_experiment_sequences = method(_sequences.iter_experiment_sequences, _each)

    quote = method(_quotes.quote, _run)
    quote_pdf = method(_pdf.quote_pdf, _whole)
    confirm_quote = method(_quotes.confirm_quote, _run)
    quotes = method(_quotes.quotes, _run)
    iter_quotes = method(_quotes.iter_quotes, _each)
    quote_by_id = method(_quotes.quote_by_id, _run)
    confirm_quote_by_id = method(_quotes.confirm_quote_by_id, _run)
    reject_quote = method(_quotes.reject_quote, _run)
    invoice = method(_invoices.invoice, _run)
    invoices = method(_invoices.invoices, _run)
    iter_invoices = method(_invoices.iter_invoices, _each)
    invoice_by_id = method(_invoices.invoice_by_id, _run)
    invoice_pdf = method(_pdf.invoice_pdf, _whole)
    find_invoice = method(_invoice_search.find_invoice, _first)
    pay = method(_paying.pay, _run)

    results = method(_results.results, _all)
    result = method(_results.result, _run)
    result_summaries = method(_results.result_summaries, _run)
    iter_result_summaries = method(_results.iter_result_summaries, _each)

    updates = method(_updates.updates, _run)
    iter_updates = method(_updates.iter_updates, _each)
    experiment_updates = method(_updates.experiment_updates, _all)

    documents = method(_documents.documents, _each)

    @property
    def base_url(self) -> str:
        """The service's address, without `/api/v1` and without a trailing slash."""
        return self._wire.base_url

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_url!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def run(self, operation: Operation[T]) -> T:
        """Carry out one operation, repeating it only where its request allows.

        Raises:
            AssayError: as the operation documents.
        """
        tried = 0
        while True:
            request = operation.request
            outcome = await self._exchange(request)
            tried += 1
            pause = self._policy.delay(request, tried, outcome if isinstance(outcome, Answer) else None)
            if pause is not None:
                logger.info("%s failed, trying again in %.1f s", request, pause)
                await self._sleep(pause)
                continue
            following = successor(operation, outcome)
            if following is None:
                return conclude(operation, outcome, self._wire.secrets)
            operation, tried = following, 0

    async def walk(self, walk: Walk[Any, T]) -> AsyncIterator[T]:
        """Carry out a walk, page by page as it is iterated."""
        for operation in operations(walk):
            for item in walk.feed(await self.run(operation)):
                yield item

    async def download(
        self,
        url: str,
        *,
        chunk_size: int = 1 << 16,
        absent: type[NotFound] = NotFound,
        max_bytes: int | None = None,
    ) -> AsyncIterator[bytes]:
        """Stream a file, in pieces of at most `chunk_size` bytes.

        The token is sent to the service's own origin only, and never along a redirect.

        Args:
            url: absolute, or relative to the service's address.
            chunk_size: bytes per piece.
            absent: what a 404 means.
            max_bytes: in place of the client's `max_download`.

        Raises:
            UnexpectedAnswer: the file is larger than that; the pieces so far are not the file.
            ServiceUnavailable: the file broke off; start again.
            NotFound: there is no such file.
            AccessError: the address is not one that is fetched.
        """
        download = Download(self.base_url, url, self._policy, absent)
        outcome = await self._opened(download)
        while not isinstance(outcome, httpx.Response):
            await self._sleep(download.after(outcome, self._wire.secrets))
            outcome = await self._opened(download)
        failure: AssayError | None = None
        try:
            meter = Meter(outcome.headers, self._max_download if max_bytes is None else max_bytes)
            async for piece in outcome.aiter_bytes(chunk_size):
                yield meter.count(piece)
        except TooLarge as cause:
            failure = too_large(download.hop.request, cause, outcome.status_code, DOWNLOAD_ADVICE)
        except httpx.HTTPError as error:
            failure = lost(download.hop.request, error)
        finally:
            await outcome.aclose()
        if failure is not None:
            raise failure

    async def _exchange(self, request: Request) -> Answer | AssayError:
        outgoing = self._wire.outgoing(self._http, request)
        try:
            response = await self._http.send(outgoing, auth=self._wire.auth, stream=True)
            return self._wire.answer(response, await self._body(request, response))
        except NO_ANSWER as error:
            return lost(request, error)

    async def _body(self, request: Request, response: httpx.Response) -> bytes:
        """The whole body; a service that trickles must not hold the caller for ever."""
        try:
            async with asyncio.timeout(self._wire.total_seconds):
                meter = Meter(response.headers, ANSWER_BYTES_MAX)
                return b"".join([meter.count(piece) async for piece in response.aiter_bytes()])
        except TooLarge as cause:
            raise too_large(request, cause, response.status_code) from None
        finally:
            await response.aclose()

    async def _opened(self, download: Download) -> httpx.Response | Answer | AssayError:
        """The open response of a success, else what was answered instead."""
        outgoing = self._wire.hop(self._http, download.hop)
        try:
            with unlogged_query():
                response = await self._http.send(
                    outgoing, auth=self._wire.auth if download.hop.with_token else None, stream=True
                )
            if response.is_success:
                return response
            return self._wire.answer(response, await self._body(download.hop.request, response))
        except NO_ANSWER as error:
            return lost(download.hop.request, error)
