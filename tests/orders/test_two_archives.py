"""Two places without a shared archive order the same at one service: both come to the older experiment."""

import itertools
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from prefect_assay.orders.create import find_or_create
from prefect_assay.orders.find import recheck_order
from support.services.order_service import KEY, REQUEST, SPEC, OrderService, ScheduledService, ledgers

CALLS = 5  # of each run, to its create and the search that follows


class Schedule:
    """Lets two runs call the service in a given order; what is not on the schedule comes as it likes."""

    def __init__(self, order):
        self._left = list(order)
        self._turn = threading.Condition()

    def service(self, service, me):
        schedule = self

        def scheduled(call):
            def run(*arguments, **options):
                with schedule._turn:
                    schedule._turn.wait_for(lambda: not schedule._left or schedule._left[0] == me, 20)
                    value = call(*arguments, **options)
                    if schedule._left:
                        schedule._left.pop(0)
                    schedule._turn.notify_all()
                    return list(value) if isinstance(value, Iterator) else value

            return run

        return ScheduledService(service, scheduled)

    def ended(self, me):
        with self._turn:
            self._left = [other for other in self._left if other != me]
            self._turn.notify_all()


@pytest.fixture(autouse=True)
def no_sync(monkeypatch):
    monkeypatch.setattr("os.fsync", lambda descriptor: None)


@pytest.mark.parametrize(("lag", "standing"), [(0, False), (2, False), (0, True)])
def test_in_every_interleaving_both_end_at_the_older_and_the_younger_is_surplus(tmp_path, lag, standing):
    twice = 0
    for number, mine in enumerate(itertools.combinations(range(2 * CALLS), CALLS)):
        order = [0 if position in mine else 1 for position in range(2 * CALLS)]
        service, schedule = OrderService(lag=lag, standing=standing), Schedule(order)
        logs = [ledgers(tmp_path / f"{number}-{me}").open_order("camp", KEY) for me in (0, 1)]

        def run(me, service=service, schedule=schedule, logs=logs):
            try:
                find_or_create(schedule.service(service, me), REQUEST, logs[me], sleep=lambda s: None)
            finally:
                schedule.ended(me)

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(run, (0, 1)))
        service.hidden.clear()
        kept = [recheck_order(service, SPEC, log) for log in logs]
        first = service.orders[0].id
        assert kept == [first, first], order
        younger = {e.id for e in service.orders} - {first}
        assert all(set(log.state.surplus) == younger for log in logs), order
        twice += bool(younger)
    assert twice  # else nothing was tried
