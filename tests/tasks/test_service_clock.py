"""Deadlines count by the service's clock, as its answers state it (`Date`), and not by this machine's."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from prefect_assay.orders.job import OutcomeKind
from prefect_assay.orders.wait_decision import NotYet
from prefect_assay.service.models.experiment import Experiment
from prefect_assay.tasks import read

NOW = datetime.now(UTC)


def service(*, age, ahead):
    """The service's clock is `ahead` of this machine's; the order is `age` old by the service's."""
    clock = None if ahead is None else NOW + ahead
    made = Experiment(id="e", code="c", status="in_production", created_at=(clock or NOW) - age)
    return SimpleNamespace(service_time=clock, experiments=SimpleNamespace(get=lambda _experiment_id: made))


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
    assert read.read_and_decide(service(age=age, ahead=ahead), "e", timedelta(days=45))[1] is decision
