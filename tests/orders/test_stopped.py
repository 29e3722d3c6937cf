"""A process that is stopped after its record of a create, and goes on much later, sends nothing."""

import pytest

from prefect_assay.errors import ServiceUnavailable
from prefect_assay.orders import create
from prefect_assay.orders.create import find_or_create
from support.services.order_service import HOSTED, MACHINE, REQUEST, OrderService

from .test_find_or_create import new_order_ledger


@pytest.mark.parametrize("request_", [REQUEST, HOSTED, MACHINE], ids=["quoted", "hosted", "machine"])
def test_a_create_is_not_sent_when_its_record_is_old(tmp_path, monkeypatch, request_):
    clock = [0.0]
    monkeypatch.setattr(create, "elapsed_seconds", lambda: clock[0])
    service, ledger, released = OrderService(), new_order_ledger(tmp_path), []
    written = ledger.record

    def stopped(decide):
        record = written(decide)
        clock[0] += create.SEND_WITHIN_SECONDS + 1
        return record

    ledger.record = stopped
    with pytest.raises(ServiceUnavailable, match=r"stopped for 31 s .* the order was not sent"):
        find_or_create(service, request_, ledger, release=lambda: released.append(1), sleep=lambda _: None)
    assert (service.creates, released) == (0, [1])
    later = new_order_ledger(tmp_path)
    assert not later.read().open_attempts, "it is certain that nothing was sent"
    find_or_create(service, request_, later, sleep=lambda _: None)
    assert service.creates == 1


def test_after_another_run_has_ordered_meanwhile_the_late_one_changes_nothing(tmp_path, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(create, "elapsed_seconds", lambda: clock[0])
    service, ledger = OrderService(), new_order_ledger(tmp_path)
    written = ledger.record

    def stopped(decide):
        record = written(decide)
        ledger.record = written
        find_or_create(service, REQUEST, new_order_ledger(tmp_path), sleep=lambda _: None)
        clock[0] += 3600
        return record

    ledger.record = stopped
    with pytest.raises(ServiceUnavailable):
        find_or_create(service, REQUEST, ledger, sleep=lambda _: None)
    assert service.creates == 1
    assert new_order_ledger(tmp_path).read().ordered.experiment_id == service.orders[0].id
