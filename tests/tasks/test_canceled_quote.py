"""A person cancels an order while a run confirms its quote: nothing is confirmed, and the reservation is as it was."""

import pytest

from prefect_assay.errors import OrderStopped
from prefect_assay.orders.billing import BillingStage
from prefect_assay.orders.ledger.log import Confirming
from prefect_assay.tasks.quote import confirm_quote
from support.archive.memory_store import MemoryStore, make_ledger
from support.services.billed_service import BilledService


@pytest.fixture
def service():
    return BilledService(quote={"status": "open", "amount_total": 500, "currency": "usd"})


def confirm(service, ledger):
    return confirm_quote.fn(service, "exp_1", ledger=ledger, approved_cents=500, campaign_cap_cents=1000)


def reserved(store):
    return make_ledger(store).ledgers.budget.read().campaign_cents("c")


@pytest.mark.parametrize("before", [0, 300])
def test_a_stop_right_before_the_record_leaves_the_reservation_as_it_was(service, before):
    store = MemoryStore()
    ledger = make_ledger(store)
    if before:
        ledger.ledgers.budget.reserve("k", "c", before)

    def stop_first(key):
        if key.endswith("/k/000003.json"):
            store.before_put = lambda _: None
            assert reserved(store) == 500
            make_ledger(store).stop("ada", "prefect-assay cancel")

    store.before_put = stop_first
    with pytest.raises(OrderStopped):
        confirm(service, ledger)
    assert (service.confirmed, reserved(store), make_ledger(store).read().confirmed) == ([], before, False)


def test_a_stopped_order_is_not_confirmed_although_an_earlier_execution_has_recorded_it(service):
    store = MemoryStore()
    ledger = make_ledger(store)
    ledger.ledgers.budget.reserve("k", "c", 500)
    ledger.record(lambda _: Confirming(amount_cents=500))
    make_ledger(store).stop("ada", "prefect-assay cancel")
    for run in (ledger, make_ledger(store)):
        with pytest.raises(OrderStopped):
            confirm(service, run)
    assert (service.confirmed, reserved(store)) == ([], 500), "it may have been confirmed"
    make_ledger(store).reopen("ada")
    assert confirm(service, ledger).stage is BillingStage.INVOICED


def test_a_stop_between_an_earlier_record_and_the_confirmation_is_met(service):
    """The record was there before, so that no new one meets the stop."""
    store = MemoryStore()
    ledger = make_ledger(store)
    ledger.record(lambda _: Confirming(amount_cents=500))

    def stop_at_the_reservation(key):
        if "/BUDGET/" in key:
            store.before_put = lambda _: None
            make_ledger(store).stop("ada", "prefect-assay cancel")

    store.before_put = stop_at_the_reservation
    with pytest.raises(OrderStopped):
        confirm(service, ledger)
    assert service.confirmed == []
    assert make_ledger(store).read().stopped is not None
