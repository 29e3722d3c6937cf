"""Deadlines count by the service's clock, as its answers state it (`Date`), and not by this machine's."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from prefect_assay.orders.job import OutcomeKind
from prefect_assay.orders.wait_decision import NotYet, deadline_of, decide_wait
from prefect_assay.service.client.http.dates import time_at

NOW = datetime.now(UTC)


@pytest.mark.parametrize(
    ("ahead", "age", "decision"),
    [
        (timedelta(days=-60), timedelta(0), NotYet.NOTHING),
        (timedelta(days=-60), timedelta(days=46), OutcomeKind.OVERDUE),
        (timedelta(days=60), timedelta(days=44), NotYet.NOTHING),
        (timedelta(days=60), timedelta(days=46), OutcomeKind.OVERDUE),
        (None, timedelta(days=46), OutcomeKind.OVERDUE),
        (None, timedelta(days=44), NotYet.NOTHING),
    ],
)
def test_a_wait_ends_by_the_services_clock(ahead, age, decision):
    """The service's clock is `ahead` of this machine's; the order is `age` old by the service's."""
    clock = None if ahead is None else NOW + ahead
    deadline = deadline_of((clock or NOW) - age, timedelta(days=45))
    now = time_at(SimpleNamespace(service_time=clock))
    assert decide_wait("in_production", "none", now, deadline) is decision
