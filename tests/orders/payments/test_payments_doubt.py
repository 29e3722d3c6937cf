"""What happens to a payment whose outcome is unknown: it is found, or sent again unchanged, and never made twice."""

import time
from datetime import timedelta

import pytest
from pydantic import SecretStr

from prefect_assay.errors import (
    PaymentFailed,
    PaymentOutcomeUnknown,
    PaymentRefused,
)
from prefect_assay.orders.job import PaymentState
from prefect_assay.orders.payments import PaymentPolicy
from prefect_assay.orders.payments.rails.x402 import X402Limits, X402Rail
from prefect_assay.orders.payments.settle import utc_now
from support.services.pay_server import (
    CANARY_KEY,
    NETWORK,
    RECEIVER,
    USDC,
    pay_client,
)
from support.services.x402_world import OTHER_RAIL, interrupt, without_signing


def at_another_address(world):
    """The service by an alias of its address, as another run's credentials block spells it."""
    alias = world.server.base_url.replace("127.0.0.1", "localhost")
    world.api.close()
    world.api = pay_client(alias)
    world.allow(allowed_origins=(alias,))
    world.server.resource_url = f"{alias}/api/v1/invoices/inv_1/pay"


def test_a_doubt_outlives_terms_that_cannot_be_signed(world, monkeypatch):
    world.server.faults.add("drop_before")
    with pytest.raises(PaymentOutcomeUnknown):
        world.settle()

    def refuse(*_, **__):
        raise PaymentRefused("the terms cannot be signed")

    monkeypatch.setattr(type(world.rail), "make_credential", refuse)
    with pytest.raises(PaymentOutcomeUnknown, match="cannot be signed"):
        world.settle()
    assert world.entry().state is PaymentState.UNKNOWN
    assert "answered with nothing" in world.entry().remark


@pytest.mark.parametrize(
    ("fault", "remark"),
    [
        ("drop", "the payment was answered with nothing (PaymentOutcomeUnknown)"),
        ("500", "the payment was answered with status 500"),
        ("replay_403", "the payment was answered with status 403"),
        ("no_receipt", "the payment was answered without a receipt"),
    ],
)
def test_a_settlement_whose_answer_is_lost_or_odd_is_found_by_reading_the_invoice(world, fault, remark):
    world.server.faults.add(fault)

    payment = world.settle()
    assert payment.state is PaymentState.SETTLED
    assert payment.remark.startswith(remark)
    again = world.settle()
    assert again.already_paid
    assert again.remark == world.entry().remark == payment.remark
    assert len(world.server.settlements) == 1
    assert len(world.server.credentials) == 1
    assert world.entry().state is PaymentState.SETTLED


@pytest.mark.parametrize("fault", ["drop", "500", "replay_403", "no_receipt"])
def test_an_invoice_that_shows_the_payment_late_is_read_with_back_off(world, fault):
    world.server.faults.add(fault)
    world.server.paid_visible_after = 3

    assert world.settle().state is PaymentState.SETTLED
    assert world.slept == [0.0, 1.0, 2.0, 4.0, 1.0], "and once more, before it is final"
    assert len(world.server.credentials) == 1


@pytest.mark.parametrize("fault", ["drop", "500", "replay_403", "no_receipt", "none"])
def test_a_settlement_that_the_invoice_never_shows_is_unknown_and_never_settles_twice(world, fault):
    world.server.faults |= {fault, "settled_but_open"}

    for _ in range(2):
        with pytest.raises(PaymentOutcomeUnknown, match="Read the invoice before anything else"):
            world.settle()
        assert world.entry().state is PaymentState.UNKNOWN

    assert len(world.server.settlements) == 1
    world.server.status = "paid"
    assert world.settle().state is PaymentState.SETTLED
    assert world.entry().state is PaymentState.SETTLED


def test_a_credential_lost_on_the_way_is_sent_again_by_the_next_call_unchanged(world):
    world.server.faults.add("drop_before")
    with pytest.raises(PaymentOutcomeUnknown, match="PaymentOutcomeUnknown"):
        world.settle()
    assert world.server.settlements == []

    later = utc_now() + timedelta(minutes=2)  # its window is open
    assert world.settle(now=lambda: later).state is PaymentState.SETTLED
    first, second = world.server.credentials
    assert first == second
    assert len(world.server.settlements) == 1
    assert world.records() == ["paying", "in_doubt", "paying", "settled"]
    assert len(set(world.server.idempotency_keys)) == 1
    assert world.server.idempotency_keys[0]


def test_after_the_old_window_has_passed_the_same_nonce_is_signed_anew(world):
    world.server.faults.add("drop_before")
    with pytest.raises(PaymentOutcomeUnknown):
        world.settle(now=lambda: utc_now() - timedelta(hours=1))

    world.settle()
    first, second = (credential["payload"]["authorization"] for credential in world.server.credentials)
    assert first["nonce"] == second["nonce"]
    assert int(first["validBefore"]) < time.time() < int(second["validBefore"])


@pytest.mark.parametrize("change", [{"network": "eip155:8453"}, {"asset": RECEIVER}])
@pytest.mark.parametrize("elapsed", [timedelta(0), timedelta(hours=1)])
def test_a_payment_in_doubt_is_never_sent_again_on_another_token_contract(world, change, elapsed):
    world.server.faults.add("drop_before")
    with pytest.raises(PaymentOutcomeUnknown):
        world.settle(now=lambda: utc_now() - elapsed)
    world.server.offer = change
    pairs = [(NETWORK, USDC), (NETWORK, RECEIVER), ("eip155:8453", USDC)]
    limits = X402Limits(
        networks=(NETWORK, "eip155:8453"),
        assets=tuple(f"{network}/erc20:{asset}" for network, asset in pairs),
        pay_to=(RECEIVER,),
    )
    world.rail = X402Rail(SecretStr(CANARY_KEY), limits)

    with pytest.raises(PaymentOutcomeUnknown, match="could be settled besides it"):
        world.settle()
    assert len(world.server.credentials) == 1
    assert world.entry().state is PaymentState.UNKNOWN


def test_a_payment_in_doubt_is_never_sent_again_from_another_wallet(world):
    world.server.faults.add("drop_before")
    with pytest.raises(PaymentOutcomeUnknown):
        world.settle()
    world.rail = OTHER_RAIL

    with pytest.raises(PaymentOutcomeUnknown, match="could be settled besides it"):
        world.settle()
    assert len(world.server.credentials) == 1


def test_a_payment_in_doubt_stays_in_doubt_when_the_guard_refuses_to_go_on(world):
    world.server.faults.add("drop_before")
    with pytest.raises(PaymentOutcomeUnknown):
        world.settle()
    world.policy = PaymentPolicy()

    with pytest.raises(PaymentOutcomeUnknown, match="machine payments are off"):
        world.settle()


def test_a_payment_in_doubt_of_an_invoice_that_became_void_stays_in_doubt(world):
    world.server.faults.add("drop_before")
    with pytest.raises(PaymentOutcomeUnknown):
        world.settle()
    world.server.status = "void"

    with pytest.raises(PaymentOutcomeUnknown, match="'void', not open"):
        world.settle()


def test_a_second_402_without_a_statement_is_not_followed_and_is_unknown(world):
    world.server.faults.add("silent_402")

    with pytest.raises(PaymentOutcomeUnknown, match="status 402"):
        world.settle()
    assert len(world.server.credentials) == 1
    assert world.server.probes == 1


def test_after_a_lost_answer_such_a_reason_ends_no_doubt(world):
    world.server.faults.add("drop_before")
    with pytest.raises(PaymentOutcomeUnknown):
        world.settle()
    world.server.faults.add("silent_402")
    world.server.reason = "insufficient_funds"
    with pytest.raises(PaymentOutcomeUnknown, match="status 402, insufficient_funds"):
        world.settle()
    assert world.entry().state is PaymentState.UNKNOWN


def test_a_payment_in_doubt_is_looked_for_with_patience_before_it_is_sent_again(world):
    world.server.faults.add("drop")
    world.server.paid_visible_after = 7  # five readings after sending, and two of the next call
    with pytest.raises(PaymentOutcomeUnknown):
        world.settle()

    assert world.settle().already_paid
    assert len(world.server.credentials) == 1
    assert world.server.probes == 1


def test_a_crash_before_a_failed_payment_is_tried_again_does_not_forget_that_it_was_sent(world):
    world.server.faults.add("always_402")
    with pytest.raises(PaymentFailed):
        world.settle()
    world.rail = without_signing(interrupt)
    with pytest.raises(KeyboardInterrupt):
        world.settle()
    assert world.entry().state is PaymentState.FAILED

    world.rail = OTHER_RAIL
    with pytest.raises(PaymentRefused, match="could be settled besides it"):
        world.settle()


def test_a_crash_before_anything_was_sent_binds_nothing(world):
    world.rail = without_signing(interrupt)
    with pytest.raises(KeyboardInterrupt):
        world.settle()

    world.rail = OTHER_RAIL
    assert world.settle().state is PaymentState.SETTLED
    assert len(world.server.settlements) == 1


def test_by_an_alias_of_the_address_the_recorded_nonce_is_sent_again(world):
    world.server.faults.add("settled_but_open")
    with pytest.raises(PaymentOutcomeUnknown):
        world.settle()
    at_another_address(world)
    assert world.rail.make_nonce(world.api.base_url, "inv_1") != world.entry().nonce
    with pytest.raises(PaymentOutcomeUnknown):
        world.settle()
    first, second = (c["payload"]["authorization"]["nonce"] for c in world.server.credentials)
    assert first == second == world.entry().nonce
    assert len(world.server.settlements) == 1


def test_by_an_alias_of_the_address_another_wallet_pays_nothing(world):
    world.server.faults.add("drop_before")
    with pytest.raises(PaymentOutcomeUnknown):
        world.settle()
    at_another_address(world)
    world.rail = OTHER_RAIL
    with pytest.raises(PaymentOutcomeUnknown, match="could be settled besides it"):
        world.settle()
    assert len(world.server.credentials) == 1
