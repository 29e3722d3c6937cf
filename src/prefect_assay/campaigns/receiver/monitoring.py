"""Watches a receiver: counters, throttled log lines, and the endpoints for health, readiness and metrics.

No label of a counter holds what a sender chooses: every label has a few values that are defined in this package.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from prefect_assay.service.web_origin import OwnPagesOnly

Ready = Callable[[], Awaitable[None]]

_READY_REMEMBERED_SECONDS: Final = 1.0
_WAKE_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_AGE_SECONDS: Final = (1, 2.5, 5, 10, 30, 60, 120, 300, 600, 900, 3600)

# Created at zero, so that a rate sees the first of its kind.
_OUTCOMES: Final = {
    **dict.fromkeys(("woken", "nothing_waiting", "repeated"), ("",)),
    "refused": ("path", "too_large", "unsigned", "signature", "malformed", "too_old", "label"),
    "not_now": (
        "slow_body",
        "incomplete_body",
        "ahead",
        "prefect_unreachable",
        "slow_wake",
        "no_turn",
        "overload",
        "order_overload",
        "failure",
    ),
}


class ReceiverMetrics:
    """The counters of one receiver, in a Prometheus registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._deliveries = Counter(
            "assay_receiver_deliveries",
            "Deliveries by outcome: woken, nothing_waiting, repeated, refused (4xx), not_now (5xx)",
            ["outcome", "reason"],
            registry=self.registry,
        )
        self._by_key = Counter(
            "assay_receiver_key_deliveries",
            "Genuine deliveries by the place of their key in SIGNING_KEYS, from 1",
            ["key"],
            registry=self.registry,
        )
        self._wake_seconds = Histogram(
            "assay_receiver_wake_seconds",
            "How long wake-ups took, without their wait for a turn",
            buckets=_WAKE_SECONDS,
            registry=self.registry,
        )
        self._age_seconds = Histogram(
            "assay_receiver_delivery_age_seconds",
            "Age of genuine deliveries by their signed timestamp; what is ahead of this clock counts as 0",
            buckets=_AGE_SECONDS,
            registry=self.registry,
        )
        self._waiting = Gauge(
            "assay_receiver_waiting", "Deliveries that wait for their turn to wake", registry=self.registry
        )
        for outcome, reasons in _OUTCOMES.items():
            for reason in reasons:
                self._deliveries.labels(outcome, reason)

    def knows_keys(self, count: int) -> None:
        """Create a counter for each signing key."""
        for place in range(count):
            self._by_key.labels(str(place + 1))

    def watch_waiting(self, waiting: Callable[[], int]) -> None:
        """Read the length of the queue from this function at each scrape."""
        self._waiting.set_function(waiting)

    def answered(self, outcome: str, reason: str = "") -> None:
        """Count a 200 (`woken`, `nothing_waiting`, `repeated`), a 4xx (`refused`) or a 5xx (`not_now`)."""
        self._deliveries.labels(outcome, reason).inc()

    def genuine(self, key: int, age_seconds: float) -> None:
        """Count a genuine delivery, signed with the key at this place, from 0."""
        self._by_key.labels(str(key + 1)).inc()
        self._age_seconds.observe(max(age_seconds, 0.0))

    def woke(self, seconds: float) -> None:
        """Record the duration of a wake-up."""
        self._wake_seconds.observe(seconds)

    def exposed(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)


class ThrottledLog:
    """Logs the first line of a kind at once, and counts the later ones of an interval into one line.

    Kinds are a few words of this package, never a sender's. `clock` returns monotonic seconds.
    """

    def __init__(
        self,
        logger: logging.Logger,
        seconds: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._logger = logger
        self._seconds = seconds
        self._clock = clock
        self._logged: dict[str, float] = {}
        self._suppressed: dict[str, int] = {}

    def log_warning(self, kind: str, message: str, *arguments: object) -> None:
        """Log the warning, or count it for the next line of its kind."""
        now = self._clock()
        last = self._logged.get(kind)
        if last is not None and now - last < self._seconds:
            self._suppressed[kind] = self._suppressed.get(kind, 0) + 1
            return
        self._logged[kind] = now
        suppressed = self._suppressed.pop(kind, 0)
        if suppressed:
            message += " (and %d more like it before)"
            arguments = (*arguments, suppressed)
        self._logger.warning(message, *arguments)


def health_route(prefix: str) -> Route:
    """Return `GET <prefix>/health`: 200 while the process runs, whatever the state of Prefect."""
    return Route(f"{prefix}/health", _answer_health, methods=["GET"])


class StatusEndpoints:
    """The endpoints `/ready` and `/metrics`; `ready` returns when Prefect answers and raises otherwise.

    Prefect is queried at most once a second: the path is public, and anybody may request it.
    """

    def __init__(
        self, metrics: ReceiverMetrics, ready: Ready, ready_timeout_seconds: float, names: frozenset[str]
    ) -> None:
        """Wire the parts; `names` are the host names under which programs and browsers may ask."""
        self._metrics = metrics
        # Probes and scrapers name the address that they ask.
        self._guard = Middleware(OwnPagesOnly, names, any_address=True)
        self._ready = ready
        self._timeout = ready_timeout_seconds
        self._open_query: asyncio.Task[bool] | None = None
        self._known_until = 0.0
        self._known = False

    def routes(self, prefix: str) -> list[Route]:
        """Return `GET <prefix>/ready` and `GET <prefix>/metrics`."""
        return [
            Route(f"{prefix}/ready", self._answer_ready, methods=["GET"], middleware=[self._guard]),
            Route(f"{prefix}/metrics", self._answer_metrics, methods=["GET"], middleware=[self._guard]),
        ]

    async def prefect_answers(self) -> bool:
        """Return True if Prefect answers, as of now or of the last second."""
        if time.monotonic() >= self._known_until:
            task = self._query()
            try:
                async with asyncio.timeout(self._timeout):
                    self._known = await asyncio.shield(task)
            except TimeoutError:
                self._known = False  # the query stays open, and no second one starts
            self._known_until = time.monotonic() + _READY_REMEMBERED_SECONDS
        return self._known

    def _query(self) -> asyncio.Task[bool]:
        task = self._open_query
        if task is None or task.done() or task.get_loop() is not asyncio.get_running_loop():
            task = self._open_query = asyncio.create_task(self._is_prefect_ready())
        return task

    async def _is_prefect_ready(self) -> bool:
        """Whether the readiness check passes; any failure is False."""
        try:
            await self._ready()
        except Exception:  # noqa: BLE001 - any failure means not ready
            return False
        return True

    async def _answer_ready(self, _: Request) -> Response:
        if await self.prefect_answers():
            return JSONResponse({"status": "ok"})
        return JSONResponse({"error": "Prefect's API does not answer"}, HTTPStatus.SERVICE_UNAVAILABLE)

    async def _answer_metrics(self, _: Request) -> Response:
        return Response(self._metrics.exposed(), media_type=CONTENT_TYPE_PLAIN_0_0_4)


async def _answer_health(_: Request) -> Response:
    return JSONResponse({"status": "ok"})
