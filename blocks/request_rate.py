"""The rate of requests to the service that an operator sets: one global concurrency limit with slot decay.

All flow runs of a Prefect server share it. Whether it exists is read once a minute per process, so nothing is added to a
request where it does not. It must never fail a run: what cannot be read does not slow anything down.
"""

import logging
import time
from collections.abc import Callable
from http import HTTPStatus
from threading import Lock
from typing import Final

import httpx
from cachetools import TTLCache, cached
from prefect.client.orchestration import get_client
from prefect.context import TaskRunContext
from prefect.exceptions import ObjectNotFound
from prefect.runtime import flow_run
from prefect.settings import get_current_settings

RATE_LIMIT: Final = "assay-requests"
_REMEMBERED_SECONDS: Final = 60
_log = logging.getLogger("prefect_assay.flows")


def get_request_limiter() -> Callable[[], None] | None:
    """Return what waits for the turn of a request to the service; None outside of runs and without a limit."""
    # A process that was made for a run may look at the service before its flow starts.
    if flow_run.id is None and TaskRunContext.get() is None:
        return None
    return _wait_for_slot if _has_rate_limit(get_current_settings().api.url) else None


@cached(TTLCache(maxsize=4, ttl=_REMEMBERED_SECONDS), lock=Lock())
def _has_rate_limit(_api_url: str | None) -> bool:
    """Whether the operator has set a rate limit at Prefect; read at most once per `_REMEMBERED_SECONDS` and API."""
    try:
        with get_client(sync_client=True) as client:
            limit = client.read_global_concurrency_limit_by_name(RATE_LIMIT)
    except (ObjectNotFound, httpx.HTTPError):
        return False
    if limit.active and not limit.slot_decay_per_second:
        _log.warning(
            "The limit %s has no slot decay, so it sets no rate and is left out; set it with: prefect gcl update %s "
            "--slot-decay-per-second 5",
            RATE_LIMIT,
            RATE_LIMIT,
        )
        return False
    return limit.active


def _wait_for_slot() -> None:
    with get_client(sync_client=True) as client:
        while True:
            try:
                client.increment_concurrency_slots([RATE_LIMIT], 1, "rate_limit")
            except httpx.HTTPStatusError as error:
                if error.response.status_code == HTTPStatus.LOCKED:
                    time.sleep(float(error.response.headers["Retry-After"]))
                    continue
            except httpx.HTTPError as error:
                _log.debug("No turn for a request was had of Prefect: %s", error)
            return
