"""The open problems as Prometheus metrics: one gauge with a label for the kind, and the age of the sweep."""

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from prefect_assay.campaigns.problems.kinds import ALERTS
from prefect_assay.campaigns.problems.problem import SavedState


class ProblemCollector(Collector):
    """Shows what `state` returns; None if it could not be read lately."""

    def __init__(self, state: Callable[[], SavedState | None]) -> None:
        self._state = state

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the metrics; without a state only that it is missing, because an old number would look current."""
        state = self._state()
        yield GaugeMetricFamily(
            "assay_problems_known",
            "1 if the open problems could be read from Prefect",
            value=state is not None,
        )
        if state is None:
            return
        counted = Counter(problem.kind for problem in state.problems)
        problems = GaugeMetricFamily(
            "assay_problems", "Open problems by kind, as `prefect-assay status --problems`", labels=["kind"]
        )
        for kind in ALERTS:
            problems.add_metric([kind], counted[kind])
        yield problems
        if state.open_money is not None:
            cents = GaugeMetricFamily(
                "assay_open_money_cents",
                "Open money in US cents by kind, as `prefect-assay status`",
                labels=["kind"],
            )
            orders = GaugeMetricFamily(
                "assay_open_money_orders", "Orders with open money by kind", labels=["kind"]
            )
            for kind, money in state.open_money.items():
                cents.add_metric([kind], money.cents)
                orders.add_metric([kind], money.orders)
            yield cents
            yield orders
        if state.swept is not None:
            age = (datetime.now(UTC) - state.swept).total_seconds()
            yield GaugeMetricFamily(
                "assay_sweep_age_seconds", "Seconds since the last complete sweep began", value=age
            )
