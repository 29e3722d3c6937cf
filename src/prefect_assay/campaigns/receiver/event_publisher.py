"""Publishes one Prefect event `assay.experiment.update` per update, off the event loop and best effort.

No answer to the service waits for an event. When publishing hangs, later events are skipped.
"""

import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final
from uuid import UUID, uuid5

from prefect.events import emit_event

from prefect_assay.campaigns.receiver.monitoring import ReceiverMetrics, ThrottledLog
from prefect_assay.service.models.update import Delivery

Announce = Callable[[Delivery], None]

EVENT: Final = "assay.experiment.update"
_NAMESPACE: Final = UUID("1c0f9d52-6a0b-5d5e-9a53-8f6f3a0c7f11")
_QUEUE_MAX: Final = 1000


def event_id(delivery: Delivery) -> UUID:
    """Return the same id for the same update; Prefect keeps an event id once."""
    return uuid5(_NAMESPACE, f"{delivery.data.experiment_id}/{delivery.data.update_id}")


def emit_update_event(delivery: Delivery) -> None:
    """Emit the event at the wall time: Prefect hides events in the future, and a lab's clock may run ahead."""
    data = delivery.data
    emit_event(
        event=EVENT,
        resource={
            "prefect.resource.id": f"assay.experiment.{data.experiment_id}",
            "prefect.resource.name": data.experiment_code or data.experiment_id,
        },
        payload={
            **data.model_dump(mode="json", exclude_none=True),
            "service_time": delivery.timestamp.isoformat(),
        },
        id=event_id(delivery),
    )


class EventPublisher:
    """One thread that publishes one delivery after the other."""

    def __init__(self, announce: Announce, metrics: ReceiverMetrics, *, enabled: bool = True) -> None:
        self._announce = announce
        self._metrics = metrics
        self._enabled = enabled
        self._waiting = 0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="assay-announce")
        self._log = ThrottledLog(logging.getLogger("prefect_assay.campaigns.receiver.receiver"))

    def publish(self, delivery: Delivery) -> None:
        """Queue the delivery; never raises and never waits."""
        if not self._enabled:
            return
        if self._waiting >= _QUEUE_MAX:
            self._metrics.announced("skipped")
            self._log.log_warning(
                "skipped", "update %s is not announced: too many wait", delivery.data.update_id
            )
            return
        self._waiting += 1
        try:
            queued = self._thread.submit(self._publish, delivery)
        except RuntimeError:  # it is closed
            self._waiting -= 1
        else:
            queued.add_done_callback(self._published)

    def close(self) -> None:
        """End the thread after the queued events, without waiting for it."""
        self._thread.shutdown(wait=False)

    def _publish(self, delivery: Delivery) -> None:
        try:
            self._announce(delivery)
        except Exception as error:  # noqa: BLE001 - best effort
            self._metrics.announced("failed")
            self._log.log_warning(
                "failed", "update %s is not announced: %s", delivery.data.update_id, type(error).__name__
            )
        else:
            self._metrics.announced("emitted")

    def _published(self, _: "Future[None]") -> None:
        self._waiting -= 1
