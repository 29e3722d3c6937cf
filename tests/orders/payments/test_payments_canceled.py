"""A person cancels an order that a run is about to pay: nothing leaves, and what was sent before is settled by its invoice."""

import pytest

from prefect_assay.errors import OrderStopped, PaymentOutcomeUnknown
from prefect_assay.orders.job import PaymentState
from support.archive.memory_store import a_book
from support.services.x402_world import RAIL, without_signing


def stop(world):
    a_book(world.store).stop("ada", "prefect-assay cancel")


def test_of_a_stopped_order_nothing_is_signed_or_sent(world):
    stop(world)
    world.rail = without_signing(lambda *_, **__: pytest.fail("signed"))
    with pytest.raises(OrderStopped):
        world.settle()
    assert (world.server.credentials, world.spent(), world.records()) == ([], 0, ["stopped"])


def test_a_stop_while_the_credential_is_made_keeps_it_from_leaving(world):
    def sign(*given, **options):
        assert world.spent() == 5000
        stop(world)
        return RAIL.make_credential(*given, **options)

    world.rail = without_signing(sign)
    with pytest.raises(OrderStopped):
        world.settle()
    assert (world.server.credentials, world.spent(), world.records()) == ([], 0, ["stopped"])


def test_a_payment_that_was_recorded_before_the_stop_ends_as_its_invoice_says(world):
    world.server.before_settling = lambda: stop(world)
    assert world.settle().state is PaymentState.SETTLED
    assert world.records() == ["paying", "stopped", "settled"]
    assert world.spent() == 5000


def test_a_payment_in_doubt_is_not_sent_again_after_the_stop_and_is_found_paid(world):
    world.server.faults.add("settled_but_open")
    with pytest.raises(PaymentOutcomeUnknown):
        world.settle()
    stop(world)
    sent = len(world.server.credentials)
    with pytest.raises(OrderStopped):
        world.settle()
    assert (len(world.server.credentials), world.spent()) == (sent, 5000)
    world.server.status = "paid"
    assert world.settle().state is PaymentState.SETTLED
    assert len(world.server.credentials) == sent
    assert len(world.server.settlements) == 1


def test_a_reopened_order_is_paid_once(world):
    stop(world)
    with pytest.raises(OrderStopped):
        world.settle()
    a_book(world.store).reopen("ada")
    assert world.settle().state is PaymentState.SETTLED
    assert len(world.server.settlements) == 1
