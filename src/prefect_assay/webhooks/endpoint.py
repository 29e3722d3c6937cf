"""What happens to one delivery: read it, prove it genuine, wake whoever waits for it, answer.

It keeps no store and trusts no header: the secret follows from the path's order key and the signing key, and the
experiment's id is taken from the signed body. An answer is given after the wake-up, never before, so that the
service's own retries (contract 6, rule 3) cover the time in which Prefect is away. It must not know how runs wake.
"""

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Final, NoReturn

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from prefect_assay.errors import MalformedDelivery, SignatureError
from prefect_assay.models.update import Delivery
from prefect_assay.webhooks.answers import NotNow, Refused
from prefect_assay.webhooks.event_publisher import Announcer
from prefect_assay.webhooks.metrics import ReceiverMetrics
from prefect_assay.webhooks.recent import Recent
from prefect_assay.webhooks.settings import ReceiverSettings
from prefect_assay.webhooks.signature import ORDER_KEY, ORGANISATION_KEY, Proof, derive_secret, in_utc, prove
from prefect_assay.webhooks.throttled_log import SparingLog
from prefect_assay.webhooks.wake_queue import Turns

Wake = Callable[[str, str | None], Awaitable[int]]

_logger = logging.getLogger("prefect_assay.webhooks.receiver")
_REPEATED: Final = None
_HINTS: Final = {"signature": "; forged, or its signing key is missing from SIGNING_KEYS"}


class Deliveries:
    """The endpoint, `receive`. What it remembers saves work; nothing is wrong when it forgets."""

    def __init__(
        self, settings: ReceiverSettings, wake: Wake, announcer: Announcer, metrics: ReceiverMetrics
    ) -> None:
        """Of `wake` see `Receiver`."""
        self._settings = settings
        self._tolerance = (
            timedelta(seconds=settings.tolerance_seconds) if settings.tolerance_seconds else None
        )
        self._wake = wake
        self._announcer = announcer
        self._metrics = metrics
        self._recent = Recent()
        self._timeless = Recent(seconds=math.inf)  # what gives no time would look new for ever
        self._turns = Turns(settings.max_waiting, settings.max_waiting_per_order)
        self._sparing = SparingLog(_logger)
        metrics.knows_keys(len(settings.signing_keys))
        metrics.watch_waiting(lambda: self._turns.waiting)

    async def receive(self, request: Request) -> Response:
        """200 once the runs are woken; 4xx for what is wrong for good; 5xx for whatever may pass."""
        try:
            return await self._answer(request)
        except Refused as refused:
            self._metrics.answered("refused", refused.reason)
            raise
        except NotNow as later:
            self._metrics.answered("not_now", later.reason)
            raise
        except Exception:
            self._metrics.answered("not_now", "failure")
            raise  # ours: the app answers 500, and the service sends again

    async def _answer(self, request: Request) -> Response:
        order_key = request.path_params["order_key"]
        if not ORDER_KEY.fullmatch(order_key):
            raise Refused(404, "path", "no such path")
        body = await self._body(request)
        proof = self._proved(body, request, order_key)
        resumed = await self._handled(proof, order_key)
        self._metrics.answered(
            "repeated" if resumed is _REPEATED else "woken" if resumed else "nothing_waiting"
        )
        return JSONResponse({"resumed": resumed or 0})

    async def _body(self, request: Request) -> bytes:
        """The raw body, read no further than the limit; a declared length is a hint, not a promise."""
        limit = self._settings.max_body_bytes
        too_large = Refused(413, "too_large", f"the body is larger than {limit} bytes", close=True)
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
            raise NotNow("slow_body", "the body did not arrive in time; send again", close=True) from None
        except ClientDisconnect:
            raise NotNow("incomplete_body", "the body is incomplete; send again", close=True) from None
        return bytes(body)

    def _proved(self, body: bytes, request: Request, order_key: str) -> Proof:
        settings, now = self._settings, datetime.now(UTC)
        secrets = [derive_secret(key, order_key) for key in settings.signing_keys]
        try:
            proof = prove(
                body, request.headers, secrets, now=now, tolerance=self._tolerance, words=settings.words
            )
        except SignatureError as error:
            self._refuse(error, order_key)
        for remark in proof.remarks:  # accepted all the same: the service would not send it again
            self._sparing.say(
                "remark", "delivery for order %s: %s; accepted, as it is signed", order_key, remark
            )
        age = now - in_utc(proof.delivery.timestamp)
        self._metrics.genuine(proof.secret, age.total_seconds())
        return proof

    def _refuse(self, error: SignatureError, order_key: str) -> NoReturn:
        reason = error.reason
        self._sparing.say(
            reason, "delivery for order %s is refused: %s%s", order_key, error, _HINTS.get(reason, "")
        )
        if isinstance(error, MalformedDelivery):
            raise Refused(400, reason, str(error)) from None
        if reason == "ahead":
            # Signed, and no replay: those are old. One of two clocks is wrong, and it may be this one.
            raise NotNow(reason, str(error)) from None
        raise Refused(401, reason, str(error)) from None

    async def _handled(self, proof: Proof, order_key: str) -> int | None:
        """Runs resumed, or None for an update that was handled lately, or ever where it gives no time."""
        delivery, known = proof.delivery, self._recent if proof.timed else self._timeless
        update = (order_key, delivery.data.experiment_id, delivery.data.update_id)
        if known.has(update, time.monotonic()):
            return _REPEATED
        try:
            return await self._turns.take(
                lambda: self._wake_once(delivery, update, known),
                seconds=self._settings.wake_timeout_seconds,
                order_key=_owner(order_key),
            )
        except NotNow as later:
            self._not_woken(later.reason, delivery)
            raise
        except Exception as error:
            self._not_woken(type(error).__name__, delivery)
            _logger.debug("the wake-up failed", exc_info=True)
            raise NotNow("prefect_away", "Prefect is away; send again") from None

    def _not_woken(self, why: str, delivery: Delivery) -> None:
        self._sparing.say(
            f"no wake-up, {why}",
            "update %s of experiment %s: no wake-up (%s); the service is asked to retry",
            delivery.data.update_id,
            delivery.data.experiment_id,
            why,
        )

    async def _wake_once(self, delivery: Delivery, update: tuple[str, str, str], known: Recent) -> int | None:
        """In its turn. It goes on when its request gives up."""
        if known.has(update, time.monotonic()):  # handled while it waited
            return _REPEATED
        start = time.monotonic()
        order_key, experiment_id, update_id = update
        resumed = await self._wake(experiment_id, _owner(order_key))
        now = time.monotonic()
        known.add(update, now)
        self._metrics.woke(now - start)
        _logger.info(
            "order %s, update %s of experiment %s: %d runs resumed",
            order_key,
            update_id,
            experiment_id,
            resumed,
        )
        self._announcer.tell(delivery)
        return resumed


def _owner(order_key: str) -> str | None:
    """The order that an address belongs to; None for an organisation's, which gets the updates of every order."""
    return None if ORGANISATION_KEY.fullmatch(order_key) else order_key
