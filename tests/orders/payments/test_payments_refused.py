"""What is not paid: terms outside the policy, invoices that are not open or differ, refusals of the service."""

from datetime import timedelta

import pytest

from prefect_assay.errors import (
    ArchiveUnavailable,
    PaymentFailed,
    PaymentOutcomeUnknown,
    PaymentRefused,
    PaymentsDisabled,
    ServiceUnavailable,
)
from prefect_assay.orders.job import PaymentState
from prefect_assay.orders.ledger.log import Surplus
from prefect_assay.orders.payments import PaymentPolicy
from prefect_assay.orders.payments.settle import utc_now
from prefect_assay.service.client import AssayClient
from support.services.pay_server import (
    NETWORK,
    RECEIVER,
    USDC,
)
from support.services.x402_world import OTHER_RAIL, RAIL, without_signing


@pytest.mark.parametrize("amount", ["50.00", "5000", True, -5, 5000.0])
def test_an_invoice_whose_amount_is_no_whole_cents_is_not_paid(world, amount):
    world.server.invoice_fields["amount"] = amount
    client = AssayClient(world.server.base_url, "a-token-of-the-service")
    with client as world.api, pytest.raises(PaymentRefused, match=r"amount is .*, no whole number of cents"):
        world.settle(expected_cents=1 if amount is True else 5000)
    assert (world.server.probes, world.server.credentials, world.entry()) == (0, [], None)


def test_a_refused_payment_of_an_open_invoice_is_a_failure_with_the_reason(world):
    world.server.faults.add("always_402")

    with pytest.raises(PaymentFailed, match="insufficient_funds"):
        world.settle()
    assert world.entry().state is PaymentState.FAILED
    assert len(world.server.credentials) == 1
    assert world.spent() == 0

    world.server.faults.clear()  # the wallet is filled up, and a person says again
    assert world.settle().state is PaymentState.SETTLED


@pytest.mark.parametrize("status", ["void", "frozen", None])
def test_a_refusal_is_believed_only_while_the_invoice_reads_as_open(world, monkeypatch, status):
    world.server.faults.add("always_402")
    read = world.api.invoices.get

    def read_after_the_refusal(invoice_id):
        if world.server.credentials and status is None:
            raise ServiceUnavailable("not now")
        found = read(invoice_id)
        return found.model_copy(update={"status": status}) if world.server.credentials else found

    monkeypatch.setattr(world.api.invoices, "get", read_after_the_refusal)
    with pytest.raises(PaymentOutcomeUnknown):
        world.settle()
    assert world.entry().state is PaymentState.UNKNOWN
    assert world.spent() == 5000


def test_after_a_refused_payment_another_wallet_waits_until_the_refused_one_has_expired(world):
    world.server.faults.add("always_402")
    with pytest.raises(PaymentFailed):
        world.settle()
    world.server.faults.clear()
    world.rail = OTHER_RAIL

    with pytest.raises(PaymentRefused, match="could be settled besides it"):
        world.settle()
    assert world.server.settlements == []
    world.server.faults.add("always_402")
    with pytest.raises(PaymentFailed, match="insufficient_funds"):
        world.settle(now=lambda: utc_now() + timedelta(hours=1))


def test_a_402_that_gives_a_reason_from_before_a_broadcast_is_a_failure_that_names_it(world):
    world.server.faults.add("silent_402")
    world.server.reason = "insufficient_funds"

    with pytest.raises(PaymentFailed, match="insufficient_funds"):
        world.settle()
    assert world.entry().state is PaymentState.FAILED
    world.server.faults.clear()
    assert world.settle().state is PaymentState.SETTLED


@pytest.mark.parametrize(
    ("offer", "match"),
    [
        ({"amount": "50010000"}, "challenge asks for 50.01 USD, the invoice for 50.00 USD"),
        ({"amount": "50000001"}, "challenge asks for 50000001 units"),
        ({"payTo": USDC}, "payTo '0x036CbD.* is not in pay_to of the X402Wallet block"),
        ({"asset": RECEIVER}, "asset '0x209693.* is not in assets of the X402Wallet block"),
        ({"network": "eip155:1"}, "network 'eip155:1' is not in networks of the X402Wallet block"),
        ({"maxTimeoutSeconds": 0}, "it expired 0 s ago"),
        ({"maxTimeoutSeconds": 315_360_000}, "valid for 315360000 s, the policy allows 600 s"),
        ({"scheme": "upto"}, "scheme 'upto' on 'eip155:84532': not known here"),
        ({"extra": {"name": "USDC"}}, "malformed or missing extra.version"),
        ({"extra": {"name": "USDC", "version": "2", "assetTransferMethod": "permit2"}}, "by 'permit2'"),
    ],
)
def test_terms_outside_the_policy_are_refused_and_nothing_is_signed(world, offer, match):
    world.server.offer = offer

    with pytest.raises(PaymentRefused, match=match):
        world.settle()
    assert world.server.credentials == []
    assert world.entry() is None


def test_a_challenge_for_another_resource_is_refused(world):
    world.server.resource_url = f"{world.server.base_url}/api/v1/invoices/inv_2/pay"

    with pytest.raises(PaymentRefused, match=r"inv_2/pay', this invoice's is .*inv_1/pay"):
        world.settle()
    assert world.server.credentials == []


def test_of_several_offers_the_acceptable_one_is_paid_and_echoed_verbatim(world):
    world.server.extra_offers = [
        {"scheme": "upto", "network": "solana:x"},
        {**world.server.entry(), "network": "eip155:1"},
        "nonsense",
    ]
    world.server.offer = {"unknown": {"kept": [1, None, "ü"]}}

    assert world.settle().state is PaymentState.SETTLED
    assert world.server.credentials[0]["accepted"] == world.server.entry()


@pytest.mark.parametrize("status", ["draft", "void", "uncollectible", None, "frozen"])
def test_an_invoice_that_is_not_open_is_not_paid(world, status):
    world.server.status = status

    with pytest.raises(PaymentFailed, match=f"invoice inv_1 is '?{status}'?, not open"):
        world.settle()
    assert world.server.probes == 0


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"amount": 5100}, "asks for 51.00 USD, but 50.00 USD was approved"),
        ({"amount": None}, "shows no amount"),
        ({"currency": "eur"}, "its currency is 'eur', not USD"),
    ],
)
def test_an_invoice_that_differs_from_what_was_approved_is_not_paid(world, fields, match):
    world.server.invoice_fields = fields

    with pytest.raises(PaymentRefused, match=match):
        world.settle()
    assert world.server.probes == 0


def test_payments_are_off_by_default(world):
    world.policy = PaymentPolicy()

    with pytest.raises(PaymentsDisabled, match="machine_payments of the SpendingPolicy block"):
        world.settle()
    assert world.server.probes == 0


@pytest.mark.parametrize("enabled", [True, False])
def test_a_dry_run_shows_the_terms_and_signs_nothing(world, enabled):
    world.allow(enabled=enabled, dry_run=True)
    world.rail = without_signing(None)

    with pytest.raises(PaymentsDisabled, match=f"dry run.*50.00 USD of {USDC} on {NETWORK} to {RECEIVER}"):
        world.settle()
    assert world.server.credentials == []
    assert world.entry() is None


def test_an_invoice_that_takes_no_machine_payment_is_refused_with_its_page(world):
    world.server.faults.add("async")

    with pytest.raises(PaymentRefused, match=f"pay it by hand at {world.server.base_url}/pages/inv_1"):
        world.settle()


def test_an_invoice_pinned_to_another_method_fails(world):
    world.server.faults.add("pinned")

    with pytest.raises(PaymentFailed, match="pinned to another payment method"):
        world.settle()


def test_a_service_that_is_away_before_anything_is_sent_is_transient(world):
    world.server.faults.add("probe_500")

    with pytest.raises(ServiceUnavailable):
        world.settle()
    assert world.entry() is None


@pytest.mark.parametrize("fault", ["fail_before_writing", "lose_answer"])
def test_an_archive_that_goes_away_before_the_record_stops_the_payment_and_the_next_run_pays_once(
    world, monkeypatch, fault
):
    monkeypatch.setattr("prefect_assay.orders.ledger.log.time.sleep", lambda _: None)
    signed = RAIL.make_credential

    def away(*args, **kwargs):
        getattr(world.store, fault)(4)
        return signed(*args, **kwargs)

    world.rail = without_signing(away)
    with pytest.raises(ArchiveUnavailable):
        world.settle()
    assert world.server.credentials == []
    assert world.entry() is None or world.entry().in_doubt
    world.rail = RAIL
    assert world.settle().state is PaymentState.SETTLED
    assert len(world.server.settlements) == 1


def test_terms_that_cannot_be_signed_free_their_share_of_the_cap(world):
    def refuse(*_, **__):
        raise PaymentRefused("the terms cannot be signed")

    world.rail = without_signing(refuse)
    with pytest.raises(PaymentRefused, match="cannot be signed"):
        world.settle()
    assert world.spent() == 0
    assert world.records() == []


@pytest.mark.parametrize("status", ["open", "paid"])
def test_the_invoice_of_another_experiment_is_neither_paid_nor_taken_for_this_orders(world, status):
    world.server.status = status
    with pytest.raises(
        PaymentRefused, match="belongs to experiment 'exp_1', and the order is experiment exp_2"
    ):
        world.settle(experiment_id="exp_2")
    assert world.server.probes == 0
    assert world.records() == []


def test_an_order_that_becomes_another_experiment_meanwhile_is_not_paid(world):
    """Another run finds an older experiment of the order between this run's reading and its record."""

    def sign_slowly(*args, **kwargs):
        world.book().record(lambda _: Surplus(experiment_id="exp_1", kept="exp_0"))
        return RAIL.make_credential(*args, **kwargs)

    world.rail = without_signing(sign_slowly)
    with pytest.raises(PaymentOutcomeUnknown, match="this one sent nothing"):
        world.settle()
    assert world.server.credentials == []
    assert world.records() == ["surplus"]
    assert world.spent() == 0
