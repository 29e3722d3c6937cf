"""Passes genuine deliveries to whoever announces them, off the event loop and best effort.

No answer waits for it: an announcement is no part of a wake-up. When announcements hang, later ones are skipped.
"""

import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from prefect_assay.models.update import Delivery
from prefect_assay.webhooks.metrics import ReceiverMetrics
from prefect_assay.webhooks.throttled_log import SparingLog

Announce = Callable[[Delivery], None]

_MOST_WAITING: Final = 1000


class Announcer:
    """One thread that announces, one delivery after the other."""

    def __init__(self, announce: Announce, metrics: ReceiverMetrics, *, enabled: bool = True) -> None:
        """With `enabled` false it announces nothing."""
        self._announce = announce
        self._metrics = metrics
        self._enabled = enabled
        self._waiting = 0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="assay-announce")
        self._sparing = SparingLog(logging.getLogger("prefect_assay.webhooks.receiver"))

    def tell(self, delivery: Delivery) -> None:
        """Announce it soon; never raises and never waits."""
        if not self._enabled:
            return
        if self._waiting >= _MOST_WAITING:
            self._metrics.announced("skipped")
            self._sparing.say("skipped", "update %s is not announced: too many wait", delivery.data.update_id)
            return
        self._waiting += 1
        try:
            told = self._thread.submit(self._tell, delivery)
        except RuntimeError:  # it is closed
            self._waiting -= 1
        else:
            told.add_done_callback(self._told)

    def close(self) -> None:
        """End the thread after what waits has been announced; nothing is waited for."""
        self._thread.shutdown(wait=False)

    def _tell(self, delivery: Delivery) -> None:
        try:
            self._announce(delivery)
        except Exception as error:  # noqa: BLE001 - best effort, whatever it is
            self._metrics.announced("failed")
            self._sparing.say(
                "failed", "update %s is not announced: %s", delivery.data.update_id, type(error).__name__
            )
        else:
            self._metrics.announced("emitted")

    def _told(self, _: "Future[None]") -> None:
        self._waiting -= 1
