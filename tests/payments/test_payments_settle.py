import logging
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from types import SimpleNamespace

import pytest
from pydantic import SecretStr

from prefect_assay.archive import LocalStore
from prefect_assay.books import OrderLedger
from prefect_assay.books.log import Surplus
from prefect_assay.client import AssayClient
from prefect_assay.errors import (
    ArchiveUnavailable,
    BudgetExceeded,
    PaymentFailed,
    PaymentOutcomeUnknown,
    PaymentRefused,
    PaymentsDisabled,
    ServiceUnavailable,
    UnexpectedAnswer,
)
from prefect_assay.models.job import PaymentState
from prefect_assay.models.vocabulary import PaymentMethod
from prefect_assay.payments import PaymentAttempt, PaymentPolicy, X402Rail, hosted, settle
from prefect_assay.payments.settle import utc_now
from support.archive.memory_store import MemoryStore, a_book, spent_cents
from support.services.pay_server import (
    CANARY_ADDRESS,
    CANARY_KEY,
    NETWORK,
    RECEIVER,
    USDC,
    HttpPayApi,
    PayServer,
    running,
)

RAIL = X402Rail(SecretStr(CANARY_KEY))
OTHER_RAIL = X402Rail(SecretStr("0x" + "11" * 32))


def without_signing(credential):
    """The canary's rail with something else in place of its signature."""
    return SimpleNamespace(
        method=RAIL.method,
        payer=RAIL.payer,
        repeatable=RAIL.repeatable,
        nonce=RAIL.nonce,
        offers=RAIL.offers,
        settlement=RAIL.settlement,
        credential=credential,
    )


def interrupt(*_, **__):
    raise KeyboardInterrupt


class World:
    """A running service, a wallet and an order that is not paid. Each payment is another run's, with a log of its own."""

    def __init__(self, server, api):
        self.server = server
        self.api = api
        self.rail = RAIL
        self.store = MemoryStore()
        self.ledger = None
        self.slept = []
        self.policy = PaymentPolicy(
            enabled=True,
            max_cents_per_payment=10_000,
            max_cents_rolling=20_000,
            allowed_origins=(server.base_url,),
            allowed_networks=(NETWORK,),
            allowed_assets=(USDC,),
            allowed_pay_to=(RECEIVER,),
        )

    def settle(self, invoice_id="inv_1", **changes):
        arguments = {
            "expected_cents": 5000,
            "experiment_id": "exp_1",
            "sleep": self.slept.append,
            **changes,
        }
        ledger = self.ledger or self.another_run()
        return settle(self.api, invoice_id, self.rail, self.policy, ledger, **arguments)

    def book(self):
        return a_book(self.store)

    def another_run(self):
        return OrderLedger(self.book())

    def entry(self):
        return self.another_run().get()

    def spent(self):
        return spent_cents(self.book(), utc_now() - timedelta(days=1))

    def records(self):
        return [record.kind for record in self.book().records()][2:]

    def allow(self, **changes):
        self.policy = PaymentPolicy(**{**self.policy.model_dump(), **changes})


@pytest.fixture
def world():
    with running(PayServer()) as server:
        api = HttpPayApi(server.base_url)
        yield World(server, api)
        api.close()


def test_an_open_invoice_is_paid_once_and_the_receipt_is_kept(world):
    payment = world.settle()

    assert payment.state is PaymentState.SETTLED
    assert payment.amount_cents == 5000
    assert not payment.already_paid
    assert payment.receipt == {
        "success": "true",
        "transaction": "0x" + "ab" * 32,
        "network": NETWORK,
        "payer": CANARY_ADDRESS,
    }
    assert len(world.server.settlements) == 1
    assert world.entry().state is PaymentState.SETTLED
    assert world.entry().experiment_id == "exp_1"


@pytest.mark.parametrize("amount", ["50.00", "5000", True, -5, 5000.0])
def test_an_invoice_whose_amount_is_no_whole_cents_is_not_paid(world, amount):
    world.server.invoice_fields["amount"] = amount
    client = AssayClient(world.server.base_url, "a-token-of-the-service")
    with client as world.api, pytest.raises(UnexpectedAnswer, match="amount: "):
        world.settle(expected_cents=1 if amount is True else 5000)
    assert (world.server.probes, world.server.credentials, world.entry()) == (0, [], None)


def test_an_ordinary_settlement_needs_no_remark(world):
    assert world.settle().remark is None


def test_a_doubt_outlives_terms_that_cannot_be_signed(world, monkeypatch):
    world.server.faults.add("drop_before")
    with pytest.raises(PaymentOutcomeUnknown):
        world.settle()

    def refuse(*_, **__):
        raise PaymentRefused("the terms cannot be signed")

    monkeypatch.setattr(type(world.rail), "credential", refuse)
    with pytest.raises(PaymentOutcomeUnknown, match="cannot be signed"):
        world.settle()
    assert world.entry().state is PaymentState.UNKNOWN
    assert "answered with nothing" in world.entry().remark


def test_a_later_run_has_the_receipt_of_the_run_that_paid(world):
    first = world.settle()
    again = world.settle()

    assert again.already_paid
    assert again.receipt == first.receipt
    assert first.receipt is not None


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
    assert world.slept == [0.0, 1.0, 2.0, 4.0]
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

    assert world.settle().state is PaymentState.SETTLED
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
    world.allow(
        allowed_networks=(NETWORK, "eip155:8453"),
        allowed_assets=tuple(f"{network}/erc20:{asset}" for network, asset in pairs),
    )

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


def test_a_crash_right_after_sending_does_not_pay_twice(world):
    sent = world.api.pay

    def send_then_crash(invoice_id, headers=None):
        answer = sent(invoice_id, headers)
        if headers:
            interrupt()
        return answer

    world.api.pay = send_then_crash
    with pytest.raises(KeyboardInterrupt):
        world.settle()
    assert world.entry().state is PaymentState.SENT

    world.api.pay = sent
    assert world.settle().already_paid
    assert len(world.server.settlements) == 1


def test_the_intent_is_recorded_as_sent_before_anything_is_sent(world):
    seen = []
    world.server.before_settling = lambda: seen.append(world.entry().state)

    world.settle()
    assert seen == [PaymentState.SENT]


def test_a_refused_payment_of_an_open_invoice_is_a_failure_with_the_reason(world):
    world.server.faults.add("always_402")

    with pytest.raises(PaymentFailed, match="insufficient_funds"):
        world.settle()
    assert world.entry().state is PaymentState.FAILED
    assert len(world.server.credentials) == 1
    assert world.spent() == 0

    world.server.faults.clear()  # the wallet is filled up, and a person says again
    assert world.settle().state is PaymentState.SETTLED


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


def test_a_second_402_without_a_statement_is_not_followed_and_is_unknown(world):
    world.server.faults.add("silent_402")

    with pytest.raises(PaymentOutcomeUnknown, match="status 402"):
        world.settle()
    assert len(world.server.credentials) == 1
    assert world.server.probes == 1


def test_a_402_that_gives_a_reason_from_before_a_broadcast_is_a_failure_that_names_it(world):
    world.server.faults.add("silent_402")
    world.server.reason = "insufficient_funds"

    with pytest.raises(PaymentFailed, match="insufficient_funds"):
        world.settle()
    assert world.entry().state is PaymentState.FAILED
    world.server.faults.clear()
    assert world.settle().state is PaymentState.SETTLED


def test_after_a_lost_answer_such_a_reason_ends_no_doubt(world):
    world.server.faults.add("drop_before")
    with pytest.raises(PaymentOutcomeUnknown):
        world.settle()
    world.server.faults.add("silent_402")
    world.server.reason = "insufficient_funds"
    with pytest.raises(PaymentOutcomeUnknown, match="status 402, insufficient_funds"):
        world.settle()
    assert world.entry().state is PaymentState.UNKNOWN


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
        ({"currency": "eur"}, "'eur', not in usd"),
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


def test_a_paid_invoice_is_done_without_asking_the_pay_path(world):
    world.server.status = "paid"
    world.policy = PaymentPolicy()

    payment = world.settle()
    assert (payment.state, payment.already_paid) == (PaymentState.SETTLED, True)
    assert world.server.probes == 0


def test_an_invoice_paid_between_reading_and_asking_is_done(world):
    world.server.faults.add("already_paid")

    assert world.settle().already_paid
    assert world.server.credentials == []


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
        api = HttpPayApi(world.server.base_url)
        barrier.wait(5)
        try:
            return settle(
                api,
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


@pytest.mark.parametrize("fault", ["fail_before_writing", "lose_answer"])
def test_an_archive_that_goes_away_before_the_record_stops_the_payment_and_the_next_run_pays_once(
    world, monkeypatch, fault
):
    monkeypatch.setattr("prefect_assay.books.log.time.sleep", lambda _: None)
    signed = RAIL.credential

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


def test_an_archive_that_goes_away_after_the_settlement_does_not_hide_it(world, monkeypatch):
    monkeypatch.setattr("prefect_assay.books.log.time.sleep", lambda _: None)
    world.server.before_settling = lambda: world.store.fail_before_writing(4)
    assert world.settle().state is PaymentState.SETTLED
    assert world.entry().state is PaymentState.SENT
    world.server.before_settling = lambda: None
    assert world.settle().already_paid
    assert world.entry().state is PaymentState.SETTLED
    assert len(world.server.settlements) == 1


def test_an_unreadable_invoice_after_sending_is_unknown(world):
    world.server.before_settling = lambda: world.server.faults.add("read_500")

    with pytest.raises(PaymentOutcomeUnknown, match="the invoice is not readable"):
        world.settle()
    assert world.entry().state is PaymentState.UNKNOWN


def test_the_key_and_the_signature_appear_nowhere(world, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    world.store = LocalStore(tmp_path)
    world.server.faults.add("settled_but_open")
    seen = [repr(world.rail), str(vars(world.rail))]
    for _ in range(2):
        with pytest.raises(PaymentOutcomeUnknown) as caught:
            world.settle()
        seen += traceback.format_exception(caught.value)
    world.server.status = "paid"
    seen += [repr(world.settle()), caplog.text]
    seen += [path.read_text() for path in tmp_path.rglob("*.json")]

    assert len(world.server.credentials) == 2
    haystack = "\n".join(seen).lower()
    for secret in (CANARY_KEY[2:], *(c["payload"]["signature"][2:] for c in world.server.credentials)):
        assert secret.lower() not in haystack
    assert "inv_1" in haystack


@pytest.mark.parametrize(
    ("status", "state"),
    [("open", PaymentState.INTENDED), ("paid", PaymentState.SETTLED), ("draft", PaymentState.INTENDED)],
)
def test_a_hosted_invoice_names_its_page_and_whether_it_is_paid(world, status, state):
    world.server.status = status
    world.server.faults.add("async")

    payment = hosted(world.api, world.api.invoice_by_id("inv_1"))
    assert payment.state is state
    assert payment.method is PaymentMethod.ASYNC_INVOICE
    assert payment.hosted_invoice_url == f"{world.server.base_url}/pages/inv_1"
    assert payment.already_paid is (status == "paid")


def test_a_void_hosted_invoice_is_a_failure(world):
    world.server.status = "void"

    with pytest.raises(PaymentFailed, match="void"):
        hosted(world.api, world.api.invoice_by_id("inv_1"))
    assert world.server.probes == 0


def test_an_invoice_that_the_pay_path_wants_paid_by_machine_is_no_hosted_one(world):
    with pytest.raises(PaymentsDisabled, match="pinned the experiment to a machine rail"):
        hosted(world.api, world.api.invoice_by_id("inv_1"))
    assert world.server.credentials == []


@pytest.mark.parametrize("fault", ["probe_500", "pinned", "dropped"])
def test_a_pay_path_that_says_nothing_leaves_the_hosted_page(world, fault):
    invoice = world.api.invoice_by_id("inv_1")
    if fault == "dropped":
        world.api.close()
        world.api = HttpPayApi("http://127.0.0.1:1")
    world.server.faults.add(fault)
    assert hosted(world.api, invoice).state is PaymentState.INTENDED


def test_the_identical_credential_is_sent_again_while_its_window_is_open(world):
    world.server.faults.add("drop_before")
    with pytest.raises(PaymentOutcomeUnknown):
        world.settle()

    world.settle(now=lambda: utc_now() + timedelta(minutes=2))
    first, second = world.server.credentials
    assert first == second


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


def test_terms_that_cannot_be_signed_free_their_share_of_the_cap(world):
    def refuse(*_, **__):
        raise PaymentRefused("the terms cannot be signed")

    world.rail = without_signing(refuse)
    with pytest.raises(PaymentRefused, match="cannot be signed"):
        world.settle()
    assert world.spent() == 0
    assert world.records() == []


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
        return RAIL.credential(*args, **kwargs)

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


def at_another_address(world):
    """The service by an alias of its address, as another run's credentials block spells it."""
    alias = world.server.base_url.replace("127.0.0.1", "localhost")
    world.api.close()
    world.api = HttpPayApi(alias)
    world.allow(allowed_origins=(alias,))
    world.server.resource_url = f"{alias}/api/v1/invoices/inv_1/pay"


def test_by_an_alias_of_the_address_the_recorded_nonce_is_sent_again(world):
    world.server.faults.add("settled_but_open")
    with pytest.raises(PaymentOutcomeUnknown):
        world.settle()
    at_another_address(world)
    assert world.rail.nonce(world.api.base_url, "inv_1") != world.entry().nonce
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
        return RAIL.credential(*args, **kwargs)

    world.rail = without_signing(sign_slowly)
    with pytest.raises(PaymentOutcomeUnknown, match="this one sent nothing"):
        world.settle()
    assert world.server.credentials == []
    assert world.records() == ["surplus"]
    assert world.spent() == 0
