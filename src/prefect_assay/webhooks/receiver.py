"""The webhook receiver: an ASGI app that proves a delivery genuine and wakes the runs that wait for it.

Here its parts are put together: deliveries, health, readiness, metrics, and Prefect behind them. The apps also work
mounted in another app, so nothing depends on their own start or end.

This module must not import Prefect at its top: the app answers at once, and tests replace the wake-up.
"""

import contextlib
from collections.abc import AsyncIterator

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Route

from prefect_assay.webhooks.answers import as_json
from prefect_assay.webhooks.endpoint import Deliveries, Wake
from prefect_assay.webhooks.event_publisher import Announce, Announcer
from prefect_assay.webhooks.lazy_waker import PrefectSide
from prefect_assay.webhooks.metrics import ReceiverMetrics
from prefect_assay.webhooks.prefect_event import announce as announce_to_prefect
from prefect_assay.webhooks.settings import ReceiverSettings
from prefect_assay.webhooks.status import Ready, Status, create_status_app, health_route

__all__ = ["Announce", "Ready", "Receiver", "Wake", "create_app", "from_environment"]


class Receiver:
    """A receiver and its two apps.

    Attributes:
        app: `POST {path_prefix}/{order_key}` and `GET {path_prefix}/health`; with the setting `status` also
            `/ready` and `/metrics` there.
        status_app: `GET /health`, `/ready` and `/metrics`, for a port that the public does not reach.
        metrics: what it counts.
    """

    def __init__(
        self,
        settings: ReceiverSettings,
        *,
        wake: Wake | None = None,
        announce: Announce | None = None,
        ready: Ready | None = None,
    ) -> None:
        """Put it together; nothing is connected.

        Args:
            settings: signing keys, paths and limits.
            wake: takes an experiment id and the key of the order that it must belong to, None for any; resumes the
                runs that wait for it and returns their number; raises when it cannot tell. By default the runs of
                the configured Prefect API.
            announce: tells others about a genuine delivery, best effort. By default a Prefect event.
            ready: returns when a wake-up would work and raises when not. By default it asks the Prefect API; with a
                `wake` of one's own nothing is asked.

        Run one receiver in one process: wake-ups are serialised inside it, because SQLite loses some of a parallel
        burst.
        """
        self.metrics = ReceiverMetrics()
        self._prefect: PrefectSide | None = None
        # Not `or`: a callable may count as false, and then real runs would be woken in its place.
        self._announcer = Announcer(
            announce_to_prefect if announce is None else announce, self.metrics, enabled=settings.announce
        )
        if wake is None:
            side = self._prefect = PrefectSide()
            wake, ready = side.wake, side.ready if ready is None else ready
        status = Status(
            self.metrics, _nothing_to_ask if ready is None else ready, settings.ready_timeout_seconds
        )
        deliveries = Deliveries(settings, wake, self._announcer, self.metrics)
        prefix = settings.path_prefix
        self.app = Starlette(
            routes=[
                health_route(prefix),
                *(status.routes(prefix) if settings.status else []),
                Route(f"{prefix}/{{order_key}}", deliveries.receive, methods=["POST"]),
            ],
            exception_handlers={HTTPException: as_json},
            lifespan=self._lifespan,
        )
        self.status_app = create_status_app(status)

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Prepares for the first delivery, where the app is not mounted in another one."""
        if self._prefect is not None:
            self._prefect.warm()
        try:
            yield
        finally:
            self.close()

    def close(self) -> None:
        """Let go of connections and threads; the app calls it at its end, and whoever mounts it may."""
        self._announcer.close()
        if self._prefect is not None:
            self._prefect.close()


def create_app(
    settings: ReceiverSettings,
    *,
    wake: Wake | None = None,
    announce: Announce | None = None,
    ready: Ready | None = None,
) -> Starlette:
    """The app of a `Receiver`, with the same arguments."""
    return Receiver(settings, wake=wake, announce=announce, ready=ready).app


def from_environment() -> Starlette:
    """The app with the settings of the environment: `uvicorn --factory prefect_assay.webhooks.receiver:from_environment`."""
    return create_app(ReceiverSettings.from_environment())


async def _nothing_to_ask() -> None:
    pass
