"""The webhook receiver: an ASGI app that proves a delivery genuine and wakes the runs that wait for it.

The apps also work mounted in another app.
"""

import contextlib
from collections.abc import AsyncIterator

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from prefect_assay.campaigns.problems.metrics import ProblemCollector
from prefect_assay.campaigns.receiver.endpoint import DeliveryEndpoint, Wake, as_json
from prefect_assay.campaigns.receiver.monitoring import (
    Ready,
    ReceiverMetrics,
    StatusEndpoints,
    health_route,
)
from prefect_assay.campaigns.receiver.problem_watch import ProblemWatch
from prefect_assay.campaigns.receiver.settings import ReceiverSettings
from prefect_assay.campaigns.runs.wake import Waker
from prefect_assay.service.web_origin import own_names


class Receiver:
    """A receiver and its two apps. Run one in one process: SQLite loses some wake-ups of a parallel burst.

    Attributes:
        app: `POST {path_prefix}/{order_key}` and `GET {path_prefix}/health`; with the setting `status` also
            `/ready` and `/metrics` there.
        status_app: `GET /health`, `/ready` and `/metrics`, for a port that the public does not reach.
        metrics: its counters.
    """

    def __init__(
        self,
        settings: ReceiverSettings,
        *,
        wake: Wake | None = None,
        ready: Ready | None = None,
    ) -> None:
        """Wire the parts; nothing is connected.

        Args:
            settings: signing keys, paths and limits.
            wake: takes an experiment id and an order key (None for any order); resumes the runs that wait for it and
                returns their number; raises when it cannot. By default the runs of the configured Prefect API.
            ready: returns when a wake-up would work and raises otherwise. By default it queries the Prefect API; with
                a custom `wake` it does nothing.
        """
        self.metrics = ReceiverMetrics()
        self._waker: Waker | None = None
        self._watch: ProblemWatch | None = None
        # Not its truth: a callable may be falsy, and then real runs would be woken in its place.
        if wake is None:
            watch = self._watch = ProblemWatch()
            self.metrics.registry.register(ProblemCollector(lambda: watch.state))
            waker = self._waker = Waker()
            wake, ready = waker, waker.ready if ready is None else ready
        status = StatusEndpoints(
            self.metrics,
            _always_ready if ready is None else ready,
            settings.ready_timeout_seconds,
            own_names("", settings.allowed_hosts),
        )
        endpoint = DeliveryEndpoint(settings, wake, self.metrics)
        prefix = settings.path_prefix
        self.app = Starlette(
            routes=[
                health_route(prefix),
                *(status.routes(prefix) if settings.status else []),
                Route(f"{prefix}/{{order_key}}", endpoint.receive, methods=["POST"]),
            ],
            exception_handlers={HTTPException: as_json},
            middleware=[Middleware(PrefixInRootPath, prefix)],
            lifespan=self._lifespan,
        )
        self.status_app = Starlette(routes=[health_route(""), *status.routes("")])

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        if self._waker is not None:
            self._waker.connect()
        if self._watch is not None:
            self._watch.start()
        try:
            yield
        finally:
            self.close()

    def close(self) -> None:
        """Release connections and threads; the app calls it at its end, and an app that mounts it may."""
        if self._watch is not None:
            self._watch.close()
        if self._waker is not None:
            self._waker.close()


class PrefixInRootPath:
    """Serve also where the server's root path, or the path of a mount, is the prefix itself: Starlette strips it."""

    def __init__(self, app: ASGIApp, prefix: str) -> None:
        self.app = app
        self.prefix = prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        root = scope.get("root_path", "")
        if self.prefix and root.endswith(self.prefix):
            rest = scope["path"].removeprefix(root)
            if not f"{rest}/".startswith(f"{self.prefix}/"):
                scope = {**scope, "root_path": root.removesuffix(self.prefix)}
        await self.app(scope, receive, send)


def create_app(
    settings: ReceiverSettings,
    *,
    wake: Wake | None = None,
    ready: Ready | None = None,
) -> Starlette:
    """Return the app of a `Receiver` with the same arguments."""
    return Receiver(settings, wake=wake, ready=ready).app


def from_environment() -> Starlette:
    """Return the app with settings from the environment: `uvicorn --factory prefect_assay.campaigns.receiver.receiver:from_environment`."""
    return create_app(ReceiverSettings.from_environment())


async def _always_ready() -> None:
    pass
