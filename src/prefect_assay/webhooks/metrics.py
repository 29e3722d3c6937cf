"""The receiver's counters, in their own Prometheus registry.

No label holds an order, an experiment, an update, a secret or anything else that a sender chooses: every label has a
few values that are defined in this package.
"""

from collections.abc import Callable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

CONTENT_TYPE: Final = CONTENT_TYPE_PLAIN_0_0_4

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
        "prefect_away",
        "slow_wake",
        "no_turn",
        "overload",
        "order_overload",
        "failure",
    ),
}


class ReceiverMetrics:
    """The receiver's counters; one object for one receiver."""

    def __init__(self) -> None:
        """Everything at zero."""
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
        self._announced = Counter(
            "assay_receiver_announcements",
            "Prefect events by outcome: emitted, failed, skipped",
            ["outcome"],
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

    def announced(self, outcome: str) -> None:
        """Count a Prefect event that was `emitted`, `failed` or `skipped`."""
        self._announced.labels(outcome).inc()

    def exposed(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)
