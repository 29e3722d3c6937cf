"""A person cancels an order while a run places it: nothing is sent any more, and what was reserved is released."""

import pytest

from prefect_assay.errors import OrderOutcomeUnknown, OrderStopped
from prefect_assay.orders.create import find_or_create
from support.archive.memory_store import MemoryStore, ledgers_in
from support.services.order_service import KEY, REQUEST, OrderService


class Run:
    """One run that places the order, with its reservation."""

    def __init__(self, store, service):
        self.ledger = ledgers_in(store).open_order("camp", KEY)
        self.service = service
        self.budget = self.ledger.ledgers.budget

    def order(self, before_sending=lambda: None):
        def reserve():
            self.budget.reserve(KEY, "camp", 3000)
            before_sending()

        return find_or_create(
            self.service,
            REQUEST,
            self.ledger,
            reserve=reserve,
            release=lambda: self.budget.release(KEY),
            sleep=lambda _: None,
        )

    def stop(self):
        ledgers_in(self.ledger.ledgers.store).open_order("camp", KEY).stop("ada", "prefect-assay cancel")

    def reserved(self):
        return ledgers_in(self.ledger.ledgers.store).budget.read().campaign_cents("camp")


@pytest.fixture
def run():
    return Run(MemoryStore(), OrderService())


def test_a_stopped_order_is_neither_reserved_nor_sent(run):
    run.stop()
    with pytest.raises(OrderStopped):
        run.order(lambda: pytest.fail("a person would be asked about its price"))
    assert (run.service.creates, run.reserved(), run.ledger.read().attempts) == (0, 0, 0)


def test_a_stop_between_the_reservation_and_the_create_releases_it(run):
    with pytest.raises(OrderStopped):
        run.order(run.stop)
    assert (run.service.creates, run.reserved(), run.ledger.read().attempts) == (0, 0, 0)


def test_an_order_that_may_have_been_placed_keeps_its_reservation(run):
    lost = OrderService(trouble=OrderOutcomeUnknown("read timed out"), lag=100)
    with pytest.raises(OrderOutcomeUnknown):
        Run(run.ledger.ledgers.store, lost).order()
    with pytest.raises(OrderStopped):
        Run(run.ledger.ledgers.store, lost).order(run.stop)
    assert (lost.creates, run.reserved()) == (1, 3000)


def test_what_was_sent_before_the_stop_is_found_and_recorded(run):
    lost = OrderService(trouble=OrderOutcomeUnknown("read timed out"), lag=100)
    with pytest.raises(OrderOutcomeUnknown):
        Run(run.ledger.ledgers.store, lost).order()
    run.stop()
    lost.hidden.clear()
    order = Run(run.ledger.ledgers.store, lost).order()
    assert (order.experiment_id, lost.creates) == ("id-1", 1)
    assert run.ledger.read().ordered.experiment_id == "id-1"
