"""Handles one delivery: reads it, proves it genuine, wakes the runs that wait for it, answers.

It keeps no store and trusts no header. The secret follows from the path's order key and the signing key, and the
experiment's id is taken from the signed body. The answer follows the wake-up. The service repeats a delivery after a
5xx and never after a 4xx (contract 6, rule 3). So only what will also be wrong the next time is a 4xx.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Final, NoReturn

from cachetools import Cache, LRUCache, TTLCache
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from prefect_assay.campaigns.receiver.monitoring import ReceiverMetrics, ThrottledLog
from prefect_assay.campaigns.receiver.settings import ReceiverSettings
from prefect_assay.campaigns.receiver.wake_queue import RetryLater, WakeQueue
from prefect_assay.errors import MalformedDelivery, SignatureError
from prefect_assay.service.client.http.secrets import cut, spellings
from prefect_assay.service.models.update import Delivery
from prefect_assay.service.webhook_signature import (
    LAB_KEY_PREFIX,
    ORDER_KEY,
    ORGANISATION_KEY,
    Proof,
    check_time,
    derive_secret,
    in_utc,
    prove,
)
from prefect_assay.service.words import many

Wake = Callable[[str, str | None, datetime | None], Awaitable[int]]
UpdateKey = tuple[str, str, str]  # order key, experiment id, update id

_logger = logging.getLogger("prefect_assay.campaigns.receiver.receiver")
_REPEATED: Final = None
_HINTS: Final = {"signature": "; forged, or its signing key is missing from SIGNING_KEYS"}
_REMEMBERED_MAX: Final = 10_000
_REMEMBERED_SECONDS: Final = 300.0


class RefusedDelivery(HTTPException):
    """A 4xx: not a genuine delivery. `reason` is one word for counters; `close` where the body is not worth reading."""

    def __init__(self, status: int, reason: str, detail: str, *, close: bool = False) -> None:
        super().__init__(status, detail, headers={"Connection": "close"} if close else None)
        self.reason = reason


async def as_json(_: Request, error: Exception) -> Response:
    """Answer with the error's detail; the exception handler of the app."""
    assert isinstance(error, HTTPException)  # noqa: S101 - Starlette's signature is wider than what it passes
    return JSONResponse({"error": error.detail}, error.status_code, headers=error.headers)


class DeliveryEndpoint:
    """The endpoint, `receive`. It remembers handled updates to save work; forgetting one only costs a look."""

    def __init__(
        self,
        settings: ReceiverSettings,
        wake: Wake,
        metrics: ReceiverMetrics,
    ) -> None:
        self._settings = settings
        self._tolerance = (
            timedelta(seconds=settings.tolerance_seconds) if settings.tolerance_seconds else None
        )
        self._wake = wake
        self._metrics = metrics
        self._recent: Cache[UpdateKey, None] = TTLCache(
            _REMEMBERED_MAX, _REMEMBERED_SECONDS, timer=time.monotonic
        )
        # Updates without a time of their own: each replay would look new, so they do not expire.
        self._timeless: Cache[UpdateKey, None] = LRUCache(_REMEMBERED_MAX)
        self._queue = WakeQueue(settings.max_waiting, settings.max_waiting_per_order)
        self._log = ThrottledLog(_logger)
        metrics.knows_keys(len(settings.signing_keys))
        metrics.watch_waiting(lambda: self._queue.waiting)

    async def receive(self, request: Request) -> Response:
        """Answer 200 once the runs are woken, 4xx for permanent and 5xx for temporary failures."""
        try:
            return await self._answer(request)
        except RefusedDelivery as refused:
            self._metrics.answered("refused", refused.reason)
            raise
        except RetryLater as later:
            self._metrics.answered("not_now", later.reason)
            raise
        except Exception:
            self._metrics.answered("not_now", "failure")
            raise  # a defect of this package: the app answers 500, and the service sends again

    async def _answer(self, request: Request) -> Response:
        order_key = request.path_params["order_key"]
        if not ORDER_KEY.fullmatch(order_key):
            raise RefusedDelivery(HTTPStatus.NOT_FOUND, "path", "no such path")
        body = await self._body(request)
        proof = self._proved(body, request, order_key)
        resumed = await self._handled(proof, order_key)
        self._metrics.answered(
            "repeated" if resumed is _REPEATED else "woken" if resumed else "nothing_waiting"
        )
        return JSONResponse({"resumed": resumed or 0})

    async def _body(self, request: Request) -> bytes:
        """Read the raw body, no further than the limit; a declared length is a hint, not a promise."""
        limit = self._settings.max_body_bytes
        too_large = RefusedDelivery(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            "too_large",
            f"the body is larger than {limit} bytes",
            close=True,
        )
        declared = request.headers.get("content-length", "")
        if declared.isdecimal() and len(declared) < 20 and int(declared) > limit:  # noqa: PLR2004 - digits of any size
            raise too_large
        body = bytearray()
        try:
            async with asyncio.timeout(self._settings.body_timeout_seconds):
                async for chunk in request.stream():
                    body += chunk
                    if len(body) > limit:
                        raise too_large
        except TimeoutError:
            # Not 408: the network may be slow today, and the service never repeats a delivery after a 4xx.
            raise RetryLater("slow_body", "the body did not arrive in time; send again", close=True) from None
        except ClientDisconnect:
            raise RetryLater("incomplete_body", "the body is incomplete; send again", close=True) from None
        return bytes(body)

    def _proved(self, body: bytes, request: Request, order_key: str) -> Proof:
        settings, now = self._settings, datetime.now(UTC)
        secrets = [derive_secret(key, order_key) for key in settings.signing_keys]
        try:
            proof = prove(body, request.headers, secrets, now=now, tolerance=None, words=settings.words)
            if not settings.signing_keys[proof.secret].get_secret_value().startswith(LAB_KEY_PREFIX):
                check_time(proof.delivery.timestamp, now, self._tolerance)
        except SignatureError as error:
            self._refuse(error, order_key)
        for remark in proof.remarks:  # accepted all the same: the service would not send it again
            self._log.log_warning(
                "remark", "delivery for order %s: %s; accepted, as it is signed", order_key, remark
            )
        age = now - in_utc(proof.delivery.timestamp)
        self._metrics.genuine(proof.secret, age.total_seconds())
        keys = [key.get_secret_value() for key in settings.signing_keys]
        return replace(proof, delivery=_scrub_secrets(proof.delivery, (*keys, *secrets)))

    def _refuse(self, error: SignatureError, order_key: str) -> NoReturn:
        reason = error.reason
        self._log.log_warning(
            reason, "delivery for order %s is refused: %s%s", order_key, error, _HINTS.get(reason, "")
        )
        if isinstance(error, MalformedDelivery):
            raise RefusedDelivery(HTTPStatus.BAD_REQUEST, reason, str(error)) from None
        if reason == "ahead":
            # Signed, and no replay: those are old. One of two clocks is wrong, and it may be this one.
            raise RetryLater(reason, str(error)) from None
        raise RefusedDelivery(HTTPStatus.UNAUTHORIZED, reason, str(error)) from None

    async def _handled(self, proof: Proof, order_key: str) -> int | None:
        """Return the number of resumed runs, or None for an update that was handled before."""
        delivery, known = proof.delivery, self._recent if proof.timed else self._timeless
        update = (order_key, delivery.data.experiment_id, delivery.data.update_id)
        if update in known:
            return _REPEATED
        try:
            return await self._queue.run(
                lambda: self._wake_once(delivery, update, known),
                seconds=self._settings.wake_timeout_seconds,
                order_key=_order_of(order_key),
            )
        except RetryLater as later:
            self._not_woken(later.reason, delivery)
            raise
        except Exception as error:
            self._not_woken(type(error).__name__, delivery)
            _logger.debug("the wake-up failed", exc_info=True)
            raise RetryLater("prefect_unreachable", "Prefect is unreachable; send again") from None

    def _not_woken(self, why: str, delivery: Delivery) -> None:
        self._log.log_warning(
            f"no wake-up, {why}",
            "update %s of experiment %s: no wake-up (%s); the service is asked to retry",
            delivery.data.update_id,
            delivery.data.experiment_id,
            why,
        )

    async def _wake_once(
        self, delivery: Delivery, update: UpdateKey, known: Cache[UpdateKey, None]
    ) -> int | None:
        if update in known:  # handled while it waited
            return _REPEATED
        start = time.monotonic()
        order_key, experiment_id, update_id = update
        expected = in_utc(delivery.data.eta) if delivery.data.eta else None
        resumed = await self._wake(experiment_id, _order_of(order_key), expected)
        known[update] = None
        self._metrics.woke(time.monotonic() - start)
        _logger.info(
            "order %s, update %s of experiment %s: %s resumed",
            order_key,
            update_id,
            experiment_id,
            many(resumed, "run"),
        )
        return resumed


def _scrub_secrets(delivery: Delivery, secrets: Iterable[str]) -> Delivery:
    """Cut out secrets that the service may have echoed: ids go to the log."""
    return Delivery.model_validate_json(cut(delivery.model_dump_json(), spellings(secrets)))


def _order_of(order_key: str) -> str | None:
    """Return the order of an address; None for an organization's, which gets the updates of every order."""
    return None if ORGANISATION_KEY.fullmatch(order_key) else order_key
