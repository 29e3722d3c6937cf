"""The webhook receiver: an ASGI app that proves a delivery genuine and wakes the runs that wait for it.

It keeps no store and trusts no header: the secret follows from the path's order key and the signing key, and the
experiment's id is taken from the signed body. An answer is given after the wake-up, never before, so that the
service's own retries (contract 6, rule 3) cover the time in which Prefect is away.

This module must not import Prefect at its top: the app answers at once, and tests replace the wake-up.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from prefect_assay.errors import MalformedDelivery, SignatureError
from prefect_assay.models.update import Delivery
from prefect_assay.webhooks.announce import announce as announce_to_prefect
from prefect_assay.webhooks.recent import Recent
from prefect_assay.webhooks.settings import ReceiverSettings
from prefect_assay.webhooks.signature import ORDER_KEY, derive_secret, verify

Wake = Callable[[str], Awaitable[int]]
Announce = Callable[[Delivery], None]

_RETRY_AFTER_SECONDS: Final = "5"
_logger = logging.getLogger(__name__)


def create_app(
    settings: ReceiverSettings, *, wake: Wake | None = None, announce: Announce | None = None
) -> Starlette:
    """The receiver: `POST {path_prefix}/{order_key}` and `GET {path_prefix}/health`.

    Args:
        settings: signing keys, paths and limits.
        wake: takes an experiment id, resumes the runs that wait for it and returns their number; raises when it
            cannot tell. By default the runs of the configured Prefect API.
        announce: tells others about a genuine delivery, best effort. By default a Prefect event.

    Run it as one process: wake-ups are serialised inside it, because SQLite loses some of a parallel burst.
    """
    receiver = _Receiver(
        settings,
        # Not `or`: a callable may count as false, and then real runs would be woken in its place.
        _wake_prefect_runs if wake is None else wake,
        announce_to_prefect if announce is None else announce,
    )
    prefix = settings.path_prefix
    return Starlette(
        routes=[
            Route(f"{prefix}/health", _health, methods=["GET"]),
            Route(f"{prefix}/{{order_key}}", receiver.deliver, methods=["POST"]),
        ],
        exception_handlers={HTTPException: _refused},
    )


def from_environment() -> Starlette:
    """The app with the settings of the environment: `uvicorn --factory prefect_assay.webhooks.receiver:from_environment`."""
    return create_app(ReceiverSettings.from_environment())


async def _wake_prefect_runs(experiment_id: str) -> int:
    wake = await asyncio.to_thread(_load_wake)
    return await wake(experiment_id)


def _load_wake() -> Wake:
    from prefect_assay.waiting.wake import wake_experiment  # noqa: PLC0415 - imports Prefect

    return wake_experiment


class _Receiver:
    def __init__(self, settings: ReceiverSettings, wake: Wake, announce: Announce) -> None:
        self._settings = settings
        self._wake = wake
        self._announce = announce
        self._one_at_a_time = asyncio.Lock()
        self._recent = Recent()
        self._tasks: set[asyncio.Task[int]] = set()

    async def deliver(self, request: Request) -> Response:
        order_key = request.path_params["order_key"]
        if not ORDER_KEY.fullmatch(order_key):
            raise HTTPException(404, "no such path")
        body = await self._body(request)
        delivery = self._verified(body, request, order_key)
        return JSONResponse({"resumed": await self._handled(delivery, order_key)})

    async def _body(self, request: Request) -> bytes:
        """The raw body, read no further than the limit; a declared length is a hint, not a promise."""
        limit = self._settings.max_body_bytes
        body = bytearray()
        try:
            async with asyncio.timeout(self._settings.body_timeout_seconds):
                async for chunk in request.stream():
                    body += chunk
                    if len(body) > limit:
                        raise HTTPException(413, f"the body is larger than {limit} bytes")
        except TimeoutError:
            raise HTTPException(408, "the body did not arrive in time") from None
        except ClientDisconnect:
            raise HTTPException(400, "the body is incomplete") from None
        return bytes(body)

    def _verified(self, body: bytes, request: Request, order_key: str) -> Delivery:
        settings = self._settings
        try:
            return verify(
                body,
                request.headers,
                [derive_secret(key, order_key) for key in settings.signing_keys],
                now=datetime.now(UTC),
                tolerance=timedelta(seconds=settings.tolerance_seconds)
                if settings.tolerance_seconds
                else None,
                words=settings.words,
            )
        except MalformedDelivery as error:
            _logger.warning("delivery for order %s is malformed: %s", order_key, error)
            raise HTTPException(400, str(error)) from None
        except SignatureError as error:
            _logger.warning("delivery for order %s is refused: %s", order_key, error)
            raise HTTPException(401, str(error)) from None

    async def _handled(self, delivery: Delivery, order_key: str) -> int:
        """Runs resumed. The work goes on when its request gives up, so that no wake-up overlaps the next."""
        task = asyncio.create_task(self._handle(delivery, order_key))
        self._tasks.add(task)  # the loop itself holds tasks only weakly
        task.add_done_callback(self._forget)
        try:
            async with asyncio.timeout(self._settings.wake_timeout_seconds):
                return await asyncio.shield(task)
        except Exception as error:
            _logger.warning(
                "update %s of experiment %s: no wake-up (%s); the service is asked to retry",
                delivery.data.update_id,
                delivery.data.experiment_id,
                type(error).__name__,
            )
            _logger.debug("the wake-up failed", exc_info=True)
            raise HTTPException(
                503, "Prefect is away; send again", headers={"Retry-After": _RETRY_AFTER_SECONDS}
            ) from None

    async def _handle(self, delivery: Delivery, order_key: str) -> int:
        update = (order_key, delivery.data.experiment_id, delivery.data.update_id)
        async with self._one_at_a_time:
            if self._recent.has(update, time.monotonic()):
                return 0
            resumed = await self._wake(delivery.data.experiment_id)
            self._recent.add(update, time.monotonic())
        _logger.info("update %s of experiment %s: %d runs resumed", update[2], update[1], resumed)
        await self._announced(delivery)
        return resumed

    def _forget(self, task: asyncio.Task[int]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # seen: a request that gave up no longer asks for it

    async def _announced(self, delivery: Delivery) -> None:
        if not self._settings.announce:
            return
        try:
            await asyncio.to_thread(self._announce, delivery)
        except Exception:
            _logger.warning("update %s is not announced", delivery.data.update_id, exc_info=True)


async def _health(_: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - Starlette's signature is wider than what it passes
    return JSONResponse({"error": error.detail}, error.status_code, headers=error.headers)
