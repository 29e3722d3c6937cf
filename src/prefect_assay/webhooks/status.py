"""Health, readiness and metrics of the receiver, for the load balancer and for Prometheus.

Readiness queries Prefect at most once a second: the path is public, and anybody may request it.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from prefect_assay.webhooks.metrics import CONTENT_TYPE, ReceiverMetrics

Ready = Callable[[], Awaitable[None]]

_REMEMBERED_SECONDS: Final = 1.0


def create_status_app(status: "StatusEndpoints", prefix: str = "") -> Starlette:
    """Return an app with health, readiness and metrics only, for a port that the public does not reach."""
    return Starlette(routes=[health_route(prefix), *status.routes(prefix)])


def health_route(prefix: str) -> Route:
    """Return `GET <prefix>/health`: 200 while the process runs, whatever the state of Prefect."""
    return Route(f"{prefix}/health", _health, methods=["GET"])


class StatusEndpoints:
    """The endpoints `/ready` and `/metrics`."""

    def __init__(self, metrics: ReceiverMetrics, ready: Ready, ready_timeout_seconds: float) -> None:
        """`ready` returns when Prefect answers and raises otherwise."""
        self._metrics = metrics
        self._ready = ready
        self._timeout = ready_timeout_seconds
        self._open_query: asyncio.Task[bool] | None = None
        self._known_until = 0.0
        self._known = False

    def routes(self, prefix: str) -> list[Route]:
        """Return `GET <prefix>/ready` and `GET <prefix>/metrics`."""
        return [
            Route(f"{prefix}/ready", self._answer_ready, methods=["GET"]),
            Route(f"{prefix}/metrics", self._answer_metrics, methods=["GET"]),
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
            self._known_until = time.monotonic() + _REMEMBERED_SECONDS
        return self._known

    def _query(self) -> asyncio.Task[bool]:
        """Return the open query, or start one."""
        task = self._open_query
        if task is None or task.done() or task.get_loop() is not asyncio.get_running_loop():
            task = self._open_query = asyncio.create_task(self._ask_prefect())
        return task

    async def _ask_prefect(self) -> bool:
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
        return Response(self._metrics.exposed(), media_type=CONTENT_TYPE)


async def _health(_: Request) -> Response:
    return JSONResponse({"status": "ok"})
