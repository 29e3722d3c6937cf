"""Health, readiness and metrics of the receiver, for the load balancer and for Prometheus. No delivery comes here.

Readiness asks Prefect, so it is asked at most once a second, whoever asks for it: anybody may.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from prefect_assay.webhooks.metrics import CONTENT_TYPE, ReceiverMetrics

Ready = Callable[[], Awaitable[None]]

_REMEMBERED_SECONDS: Final = 1.0


def create_status_app(status: "Status", prefix: str = "") -> Starlette:
    """Health, readiness and metrics alone: for a port that the public does not reach."""
    return Starlette(routes=[health_route(prefix), *status.routes(prefix)])


def health_route(prefix: str) -> Route:
    """`GET <prefix>/health`: 200 while the process runs. It asks nobody."""
    return Route(f"{prefix}/health", _health, methods=["GET"])


class Status:
    """What `/ready` and `/metrics` answer."""

    def __init__(self, metrics: ReceiverMetrics, ready: Ready, ready_timeout_seconds: float) -> None:
        """`ready` returns when Prefect answers and raises when it does not."""
        self._metrics = metrics
        self._ready = ready
        self._timeout = ready_timeout_seconds
        self._asked: asyncio.Task[bool] | None = None
        self._known_until = 0.0
        self._known = False

    def routes(self, prefix: str) -> list[Route]:
        """`GET <prefix>/ready` and `GET <prefix>/metrics`."""
        return [
            Route(f"{prefix}/ready", self._answer_ready, methods=["GET"]),
            Route(f"{prefix}/metrics", self._answer_metrics, methods=["GET"]),
        ]

    async def prefect_answers(self) -> bool:
        """Whether Prefect answers, as of now or of the last second."""
        if time.monotonic() >= self._known_until:
            task = self._question()
            try:
                async with asyncio.timeout(self._timeout):
                    self._known = await asyncio.shield(task)
            except TimeoutError:
                self._known = False  # the question stays open, and nobody asks another one
            self._known_until = time.monotonic() + _REMEMBERED_SECONDS
        return self._known

    def _question(self) -> asyncio.Task[bool]:
        """The open question, or a new one."""
        asked = self._asked
        if asked is None or asked.done() or asked.get_loop() is not asyncio.get_running_loop():
            asked = self._asked = asyncio.create_task(self._ask())
        return asked

    async def _ask(self) -> bool:
        try:
            await self._ready()
        except Exception:  # noqa: BLE001 - whatever it is, Prefect could not be asked
            return False
        return True

    async def _answer_ready(self, _: Request) -> Response:
        if await self.prefect_answers():
            return JSONResponse({"status": "ok"})
        return JSONResponse({"error": "Prefect's API does not answer"}, 503)

    async def _answer_metrics(self, _: Request) -> Response:
        return Response(self._metrics.exposed(), media_type=CONTENT_TYPE)


async def _health(_: Request) -> Response:
    return JSONResponse({"status": "ok"})
