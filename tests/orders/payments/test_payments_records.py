"""What the log of an order has to say about its payment, and what happens when it cannot be written."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from prefect_assay.errors import (
    BudgetExceeded,
    PaymentOutcomeUnknown,
)
from prefect_assay.orders.job import PaymentState
from prefect_assay.orders.payments import PaymentAttempt, settle
from prefect_assay.orders.payments.settle import utc_now
from prefect_assay.service.models.vocabulary import PaymentMethod
from support.services.pay_server import (
    NETWORK,
    RECEIVER,
    USDC,
    pay_client,
)
from support.services.x402_world import RAIL, interrupt, without_signing


def test_the_intent_is_recorded_as_sent_before_anything_is_sent(world):
    seen = []
    world.server.before_settling = lambda: seen.append(world.entry().state)

    world.settle()
    assert seen == [PaymentState.SENT]


def test_over_the_rolling_cap_nothing_is_sent(world):
    world.allow(max_cents_rolling=4999)

    with pytest.raises(BudgetExceeded, match=r"0.00 USD of 49.99 USD is committed"):
        world.settle()
    assert world.server.credentials == []
    assert world.entry() is None
    assert world.spent() == 0
    world.allow(max_cents_rolling=5000)
    assert world.settle().state is PaymentState.SETTLED


def test_an_alias_of_the_invoice_has_the_same_entry_and_nonce(world):
    world.server.faults.add("settled_but_open")
    for alias in ("inv_1", "in_abc"):
        with pytest.raises(PaymentOutcomeUnknown):
            world.settle(alias)

    assert len({c["payload"]["authorization"]["nonce"] for c in world.server.credentials}) == 1
    assert len(world.server.settlements) == 1


def test_racing_runs_on_one_invoice_settle_it_once(world):
    barrier = threading.Barrier(6)

    def pay(_):
        api = pay_client(world.server.base_url)
        barrier.wait(5)
        try:
            return settle(
                api.invoices,
                "inv_1",
                world.rail,
                world.policy,
                world.another_run(),
                expected_cents=5000,
                read_delays=[0.02] * 20,
            ).state
        except PaymentOutcomeUnknown:
            return PaymentState.UNKNOWN
        finally:
            api.close()

    with ThreadPoolExecutor(6) as pool:
        states = list(pool.map(pay, range(6)))
    assert states.count(PaymentState.SETTLED) >= 1
    assert len(world.server.settlements) == 1
    assert world.entry().state is PaymentState.SETTLED


def test_a_ledger_that_fails_after_the_settlement_does_not_hide_it(world, caplog):
    world.ledger = world.another_run()
    world.server.before_settling = lambda: setattr(world.ledger, "paid", broken)
    calls = []

    def broken(*_, **__):
        calls.append(1)
        raise OSError("disk full")

    assert world.settle().state is PaymentState.SETTLED
    assert calls
    assert "is paid; that cannot be recorded now" in caplog.text
    world.ledger = None
    assert world.entry().in_doubt
    assert world.settle().already_paid
    assert world.entry().state is PaymentState.SETTLED


@pytest.mark.parametrize("step", ["get", "reserve", "begin"])
def test_a_ledger_that_cannot_be_written_stops_the_payment_before_it_is_sent(world, step):
    def broken(*_, **__):
        raise OSError("disk full")

    world.ledger = world.another_run()
    setattr(world.ledger, step, broken)
    with pytest.raises(OSError, match="disk full"):
        world.settle()
    assert world.server.credentials == []


def test_an_archive_that_goes_away_after_the_settlement_does_not_hide_it(world, monkeypatch):
    monkeypatch.setattr("prefect_assay.orders.ledger.log.time.sleep", lambda _: None)
    world.server.before_settling = lambda: world.store.fail_before_writing(4)
    assert world.settle().state is PaymentState.SETTLED
    assert world.entry().state is PaymentState.SENT
    world.server.before_settling = lambda: None
    assert world.settle().already_paid
    assert world.entry().state is PaymentState.SETTLED
    assert len(world.server.settlements) == 1


def test_a_run_that_another_one_overtakes_sends_nothing(world):
    others = []

    def sign_slowly(*args, **kwargs):
        attempt = PaymentAttempt(
            invoice_id="inv_1",
            rail=PaymentMethod.X402_EXACT,
            amount_cents=5000,
            nonce=kwargs["nonce"],
            network=NETWORK,
            asset=USDC,
            pay_to=RECEIVER,
            expires_at=utc_now(),
        )
        others.append(world.another_run().begin(attempt, previous=None))
        return RAIL.make_credential(*args, **kwargs)

    world.rail = without_signing(sign_slowly)
    with pytest.raises(PaymentOutcomeUnknown, match="another run is paying"):
        world.settle()
    assert world.server.credentials == []
    assert [world.entry()] == others


def test_a_reservation_whose_invoice_someone_else_has_paid_frees_its_share_of_the_cap(world):
    world.rail = without_signing(interrupt)
    with pytest.raises(KeyboardInterrupt):
        world.settle()
    assert world.spent() == 5000
    world.server.status = "paid"

    assert world.settle().already_paid
    assert world.records() == ["settled"]
    assert world.spent() == 0


def test_a_settled_order_takes_no_further_payment_whatever_its_invoice_says(world):
    world.settle()
    world.server.status = "open"
    with pytest.raises(PaymentOutcomeUnknown, match="or the order is settled; this one sent nothing"):
        world.settle()
    assert len(world.server.credentials) == 1
    assert world.spent() == 5000
