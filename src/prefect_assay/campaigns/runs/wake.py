"""Waking suspended runs. This module does not know why a run is woken."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from itertools import count
from typing import Final, TypeVar
from uuid import UUID

import httpx
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import FlowRun
from prefect.context import SettingsContext, get_settings_context
from prefect.settings import PREFECT_API_URL, PREFECT_CLIENT_MAX_RETRIES

from prefect_assay.campaigns.runs.queries import read_runs, suspended_filter
from prefect_assay.campaigns.runs.states import resume_run, waits_for_input
from prefect_assay.campaigns.runs.tags import EXPERIMENT_TAG, ORDER_TAG, expected_label
from prefect_assay.errors import ConfigurationError
from prefect_assay.service.transient_failures import BUSY, is_busy, is_unreachable

T = TypeVar("T")

_logger = logging.getLogger(__name__)

_FIRST_PAUSE_SECONDS: Final = 0.1
_LONGEST_PAUSE_SECONDS: Final = 1.0
# Prefect's client sleeps for seconds after these, even with its retries switched off.
_SLEPT_AFTER: Final = BUSY | {502, 503}


def wake_runs(
    client: SyncPrefectClient,
    tag: str,
    *,
    order_key: str | None = None,
    labels: Mapping[str, str] | None = None,
) -> list[UUID]:
    """Resume every suspended run with a tag, except those that wait for a form; returns the resumed runs.

    With an order key, runs without the order's tag stay suspended. A run gets the labels before it is resumed.
    """
    waiting = [
        run
        for run in read_runs(client, suspended_filter(tags=[tag]))
        if not waits_for_input(run) and not _belongs_to_other_order(run, order_key)
    ]
    for run in waiting:
        if labels and not labels.items() <= run.labels.items():
            with suppress(httpx.HTTPStatusError):  # what is only shown keeps no run asleep
                client.update_flow_run_labels(run.id, dict(labels))
    return [run.id for run in waiting if resume_run(client, run.id)]


def _belongs_to_other_order(run: FlowRun, order_key: str | None) -> bool:
    if order_key is None or ORDER_TAG + order_key in run.tags:
        return False
    _logger.warning(
        "A delivery for order %s names an experiment of run %s, which has no such order: it is not woken. "
        "The secret of order %s has leaked, unless the service has mixed them up",
        order_key,
        run.id,
        order_key,
    )
    return True


class Waker:
    """Wakes runs for a long-lived process such as the webhook receiver.

    One thread with one Prefect client does all wake-ups in turn: a Prefect server on SQLite loses some of a burst.
    Readiness has its own thread and client, so that it is answered during a burst.
    """

    def __init__(self, *, patience_seconds: float = 10.0, request_seconds: float = 10.0) -> None:
        """Set how long a wake-up is retried while Prefect is unreachable or busy, and how long one request may take."""
        self._patience = patience_seconds
        # Taken from this thread: new threads would fall back to the settings of the process.
        context = get_settings_context()
        # The client's own retries sleep for up to a minute, which would block all other wake-ups.
        settings = context.settings.copy_with_update(updates={PREFECT_CLIENT_MAX_RETRIES: 0})

        def thread(name: str) -> _ClientThread:
            return _ClientThread(
                name, request_seconds, SettingsContext(profile=context.profile, settings=settings)
            )

        self._waking, self._asking = thread("assay-wake"), thread("assay-ready")

    async def __call__(
        self, experiment_id: str, order_key: str | None = None, expected: datetime | None = None
    ) -> int:
        """Resume the runs that carry an experiment's tag, and the order's if one is given; returns their number.

        They learn when the results are `expected`.

        Raises:
            ConfigurationError: no Prefect API is configured.
            Exception: whatever the Prefect client raises when its API is unreachable for longer than that.
        """
        labels = {expected_label(experiment_id): expected.isoformat()} if expected else None
        return await self._waking.do(
            lambda client: len(
                wake_runs(client, EXPERIMENT_TAG + experiment_id, order_key=order_key, labels=labels)
            ),
            self._patience,
        )

    async def ready(self) -> None:
        """Return if Prefect's API answers the query that a wake-up begins with; raise otherwise."""
        no_run = suspended_filter(tags=[f"{EXPERIMENT_TAG}is-anybody-there"])
        await self._asking.do(lambda client: client.read_flow_runs(flow_run_filter=no_run, limit=1), 1.0)

    def connect(self) -> None:
        """Begin to connect before the first wake-up, which also reports any failure."""
        self._waking.connect()
        self._asking.connect()

    def close(self) -> None:
        """End the threads after their present work, without waiting for them."""
        self._waking.close()
        self._asking.close()


class _ClientThread:
    def __init__(self, name: str, request_seconds: float, settings: SettingsContext) -> None:
        self._timeout = httpx.Timeout(request_seconds)
        self._client: SyncPrefectClient | None = None
        # The settings context is entered once and never left.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name, initializer=settings.__enter__)

    async def do(self, work: Callable[[SyncPrefectClient], T], patience_seconds: float) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._do, work, patience_seconds)

    def connect(self) -> None:
        self._thread.submit(self._connected)

    def close(self) -> None:
        # In the thread: the client must not be closed under a request.
        self._thread.submit(self._drop)
        self._thread.shutdown(wait=False)

    def _do(self, work: Callable[[SyncPrefectClient], T], patience_seconds: float) -> T:
        """Retry until it works; resuming twice changes nothing, so any failed work may be repeated."""
        end = time.monotonic() + patience_seconds
        pause = _FIRST_PAUSE_SECONDS
        for attempt in count():
            try:
                return work(self._connected())
            except Exception as error:
                # A busy Prefect leaves the client intact, and a new one costs more than a wake-up.
                if not is_busy(error):
                    self._drop()
                if not _may_pass(error, attempt) or time.monotonic() + pause > end:
                    raise
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
        raise AssertionError  # pragma: no cover - a count has no end

    def _connected(self) -> SyncPrefectClient:
        if self._client is None:
            if not PREFECT_API_URL.value():
                # Prefect would start an ephemeral server without any runs, and every wake-up would be lost.
                raise ConfigurationError("no Prefect API is configured; set PREFECT_API_URL")
            hooks = {"response": [_raise_at_once]}
            client = get_client(
                httpx_settings={"timeout": self._timeout, "event_hooks": hooks}, sync_client=True
            )
            self._client = client.__enter__()
        return self._client

    def _drop(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.__exit__(None, None, None)


def _raise_at_once(response: httpx.Response) -> None:
    if response.status_code in _SLEPT_AFTER:
        response.raise_for_status()


def _may_pass(error: Exception, attempt: int) -> bool:
    # The first refusal may be of a run just deleted, or of the kept client's stale CSRF token; the second is final.
    refused_once = isinstance(error, httpx.HTTPStatusError) and attempt == 0
    return refused_once or is_unreachable(error)
