"""One payment by mpp-spt on the lab: one token, one credential, and what happens when the answer is lost."""

import json
import logging
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest
from pydantic import SecretStr

from lab_support.core import lab_core
from prefect_assay.errors import (
    BudgetExceeded,
    OrderStopped,
    PaymentFailed,
    PaymentOutcomeUnknown,
    PaymentRefused,
    PaymentsDisabled,
)
from prefect_assay.orders.job import PaymentState
from prefect_assay.orders.ledger import OrderLedger
from prefect_assay.orders.payments import PaymentPolicy, settle
from prefect_assay.orders.payments.rails.mpp import MppRail
from prefect_assay.orders.payments.settle import utc_now
from prefect_assay.service.models.vocabulary import PaymentMethod
from support.archive.memory_store import MemoryStore, a_book, spent_cents
from support.lab.pay import Answer, LabPayApi, ordered_invoice

CANARY = "spt_canary"
NETWORK_ID = "profile_lab_1ab402"


class World:
    """A lab with one open invoice on this rail, and an issuer that counts. Each payment is another run's."""

    def __init__(self, core):
        self.invoice_id = ordered_invoice(core, "mpp-spt")
        self.api = LabPayApi(core, core.lab.settings.base_url)
        self.cents = self.api.get(self.invoice_id).amount
        self.issued = []
        self.token = CANARY
        self.rail = MppRail(self.issue, [NETWORK_ID])
        self.experiment_id = self.api.get(self.invoice_id).experiment_id
        self.store = MemoryStore()
        self.policy = PaymentPolicy(
            enabled=True,
            max_cents_per_payment=10_000_000,
            max_cents_rolling=20_000_000,
            allowed_origins=(self.api.base_url,),
        )

    def issue(self, limits):
        self.issued.append(limits)
        return f"{self.token}_{len(self.issued)}"

    def settle(self, **changes):
        arguments = {
            "expected_cents": self.cents,
            "experiment_id": self.experiment_id,
            "sleep": lambda _: None,
            **changes,
        }
        rail = arguments.pop("rail", self.rail)
        return settle(self.api, self.invoice_id, rail, self.policy, self.another_run(), **arguments)

    def book(self):
        return a_book(self.store, experiment=self.experiment_id)

    def another_run(self):
        return OrderLedger(self.book())

    def entry(self):
        return self.another_run().get()

    def spent(self):
        return spent_cents(self.book(), utc_now() - timedelta(days=1))

    def let_the_credential_expire(self):
        """As if the last attempt had been made earlier."""
        key = max(key for key, body in self.store.objects.items() if b'"kind":"paying"' in body)
        late = (utc_now() - timedelta(seconds=1)).isoformat()
        record = {**json.loads(self.store.objects[key]), "expires_at": late}
        self.store.objects[key] = json.dumps(record).encode()


@pytest.fixture
def world():
    core = lab_core()
    yield World(core)
    core.close()


def test_no_token_is_issued_for_an_order_that_a_person_has_canceled(world):
    world.book().stop("ada", "prefect-assay cancel")
    with pytest.raises(OrderStopped):
        world.settle()
    assert (world.issued, world.spent(), world.api.settlements()) == ([], 0, [])
    world.book().reopen("ada")
    assert world.settle().state is PaymentState.SETTLED
    assert len(world.issued) == 1


def test_an_open_invoice_is_paid_once_and_the_receipt_is_kept(world):
    payment = world.settle()
    (booked,) = world.api.settlements()
    assert (payment.state, payment.amount_cents, payment.already_paid) == (
        PaymentState.SETTLED,
        world.cents,
        False,
    )
    assert payment.method is PaymentMethod.MPP_SPT
    assert payment.receipt["reference"] == booked["reference"]
    assert payment.receipt["externalId"] == world.invoice_id
    (limits,) = world.issued
    assert (limits.currency, limits.max_amount, limits.network_id) == ("usd", world.cents, NETWORK_ID)
    assert 0 < limits.expires_at - utc_now().timestamp() <= 300
    entry = world.entry()
    assert (entry.state, entry.network, entry.asset, entry.pay_to) == (
        PaymentState.SETTLED,
        "stripe",
        "usd",
        NETWORK_ID,
    )
    assert int(entry.expires_at.timestamp()) == limits.expires_at

    again = world.settle()
    assert again.already_paid
    assert again.receipt == payment.receipt
    assert len(world.issued) == len(world.api.sent) == 1


@pytest.mark.parametrize(
    ("fault", "match"),
    [
        ("wrong_amount", "the challenge asks for"),
        ("wrong_payee", "networkId 'profile_other' is not in network_ids of the SharedPaymentTokens block"),
        ("wrong_asset", "the currency is 'eur'"),
        ("wrong_resource", "externalId is"),
        ("wrong_network", "method 'other', intent 'charge': not known here"),
        ("missing_header", "names no header for the credential"),
        ("expired_challenge", "it expired"),
        ("ten_year_window", "the policy allows 600 s"),
    ],
)
def test_terms_outside_the_policy_are_refused_before_a_token_is_issued(world, fault, match):
    world.api.fault(fault)
    with pytest.raises(PaymentRefused, match=match):
        world.settle()
    assert (world.issued, world.api.sent, world.entry()) == ([], [], None)

    world.api.core.lab.payment_faults.clear()
    assert world.settle().state is PaymentState.SETTLED


def test_a_second_402_is_never_followed_and_no_second_token_is_issued(world):
    world.api.fault("always_402")
    with pytest.raises(PaymentOutcomeUnknown, match="status 402, the payment was refused"):
        world.settle()
    with pytest.raises(
        PaymentOutcomeUnknown, match="mpp-spt was sent and is unknown; no other one is issued"
    ):
        world.settle()
    assert len(world.issued) == len(world.api.sent) == world.api.probes == 1
    assert world.api.settlements() == []


def test_a_declined_token_leaves_the_question_to_a_person(world):
    world.token = "spt_declined"
    with pytest.raises(PaymentOutcomeUnknown, match="the payment was declined"):
        world.settle()
    assert world.entry().state is PaymentState.UNKNOWN


def test_a_credential_in_doubt_is_not_sent_again_not_even_by_the_process_that_has_it(world):
    world.api.loses = True
    with pytest.raises(PaymentOutcomeUnknown):
        world.settle()
    world.api.loses = False

    for elapsed in (timedelta(0), timedelta(hours=1), timedelta(days=400)):
        with pytest.raises(PaymentOutcomeUnknown, match="no other one is issued"):
            world.settle(now=lambda late=elapsed: utc_now() + late)
    assert len(world.issued) == len(world.api.sent) == 1
    assert world.api.settlements() == []
    assert world.spent() == world.cents


def test_a_crash_before_the_record_binds_nothing(world):
    def crash(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        world.settle(rail=MppRail(crash, [NETWORK_ID]))
    assert world.entry() is None
    assert world.settle().state is PaymentState.SETTLED
    assert len(world.api.settlements()) == 1


def repeat_the_challenge(world):
    """The service's challenge is stateless: the same id, bytes and end for every asking."""
    asked, kept = world.api.pay, []

    def pay(invoice_id, headers=None):
        if headers:
            return asked(invoice_id, headers)
        kept[:] = kept or [asked(invoice_id)]
        return kept[0]

    world.api.pay = pay


def test_a_challenge_that_is_repeated_gets_one_token_and_one_credential(world):
    repeat_the_challenge(world)
    world.api.loses = True
    for _ in range(3):
        with pytest.raises(PaymentOutcomeUnknown):
            world.settle(rail=MppRail(world.issue, [NETWORK_ID]))
    assert len(world.issued) == len(world.api.sent) == 1
    assert world.entry().state is PaymentState.UNKNOWN


def test_a_repeated_challenge_does_not_end_the_wait_for_a_refused_token_to_expire(world):
    repeat_the_challenge(world)
    world.api.fault("always_402")
    told = refuse_as(world, "payment-expired")
    with pytest.raises(PaymentFailed):
        world.settle()
    world.api.pay = told
    world.api.core.lab.payment_faults.clear()
    with pytest.raises(PaymentRefused, match="could be settled besides it"):
        world.settle(rail=MppRail(world.issue, [NETWORK_ID]))
    assert len(world.issued) == 1
    world.let_the_credential_expire()
    assert world.settle(rail=MppRail(world.issue, [NETWORK_ID])).state is PaymentState.SETTLED


def test_of_runs_that_take_up_a_failed_payment_at_once_one_sends_a_credential(world):
    repeat_the_challenge(world)
    world.api.fault("always_402")
    told = refuse_as(world, "payment-expired")
    with pytest.raises(PaymentFailed):
        world.settle()
    world.api.pay = told
    world.api.core.lab.payment_faults.clear()
    world.let_the_credential_expire()
    world.api.loses = True
    barrier = threading.Barrier(3)

    def issue(limits):
        barrier.wait(20)  # all three have read the failed entry, and none has recorded an attempt
        return world.issue(limits)

    def pay(_):
        with pytest.raises(PaymentOutcomeUnknown):
            world.settle(rail=MppRail(issue, [NETWORK_ID]))

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(pay, range(3)))
    assert len(world.api.sent) == 2  # the refused one, and one of three
    assert [r.kind for r in world.book().records()].count("paying") == 2
    assert world.spent() == world.cents


def test_a_provider_that_repeats_the_token_does_not_get_it_into_a_message_or_the_ledger(world, monkeypatch):
    settle_at_the_lab = world.api._perform

    def echo(invoice_id, headers):
        if not headers:
            return settle_at_the_lab(invoice_id, headers)
        return Answer(402, {}, {"detail": "x" * 178 + f" No such token: {CANARY}_{len(world.issued)}"})

    monkeypatch.setattr(world.api, "_perform", echo)
    with pytest.raises(PaymentOutcomeUnknown) as caught:
        world.settle()
    assert "spt_" not in str(caught.value)  # nor the beginning of it, where the reason is cut
    assert "spt_" not in world.entry().model_dump_json()
    assert world.entry().remark.startswith("the payment was answered with status 402, xxx")


def refuse_as(world, kind):
    """The lab refuses, and says so in the protocol's words."""
    told = world.api.pay

    def pay(invoice_id, headers=None):
        answer = told(invoice_id, headers)
        problem = {"type": f"https://paymentauth.org/problems/{kind}", "detail": "too late"}
        return replace(answer, body=problem) if headers else answer

    world.api.pay = pay
    return told


def test_a_stated_refusal_is_a_failure_and_another_token_waits_until_the_first_has_expired(world):
    world.api.fault("always_402")
    told = refuse_as(world, "payment-expired")
    with pytest.raises(PaymentFailed, match="too late"):
        world.settle()
    assert world.entry().state is PaymentState.FAILED
    assert world.spent() == 0
    world.api.core.lab.payment_faults.clear()
    world.api.pay = told

    with pytest.raises(PaymentRefused, match="could be settled besides it"):
        world.settle()
    world.let_the_credential_expire()
    assert world.settle().state is PaymentState.SETTLED
    assert len(world.issued) == 2


def test_an_issuer_that_fails_ends_the_payment_with_nothing_sent(world):
    def broken(_):
        raise RuntimeError(CANARY)

    world.rail = MppRail(broken, [NETWORK_ID])
    with pytest.raises(PaymentRefused, match="RuntimeError"):
        world.settle()
    assert world.api.sent == []
    assert world.entry() is None
    assert world.spent() == 0

    world.rail = MppRail(world.issue, [NETWORK_ID])
    assert world.settle().state is PaymentState.SETTLED


def test_caps_and_dry_run_come_before_a_token(world):
    world.policy = world.policy.model_copy(update={"max_cents_rolling": world.cents - 1})
    with pytest.raises(BudgetExceeded, match="rolling_cents"):
        world.settle()
    world.policy = world.policy.model_copy(update={"dry_run": True})
    with pytest.raises(PaymentsDisabled, match=rf"{world.cents} cents of 'usd' by stripe to {NETWORK_ID}"):
        world.settle()
    world.policy = PaymentPolicy()
    with pytest.raises(PaymentsDisabled, match="machine payments are off"):
        world.settle()
    assert world.issued == []


def test_no_token_is_in_the_ledger_a_log_or_an_error(world, caplog):
    caplog.set_level(logging.DEBUG)
    payment = world.settle()
    seen = [caplog.text, world.entry().model_dump_json(), payment.model_dump_json(), repr(world.rail)]
    seen += [body.decode() for body in world.store.objects.values()]
    refused = World(world.api.core)
    refused.api.fault("always_402", count=2, after=1)
    with pytest.raises(PaymentOutcomeUnknown) as caught:
        refused.settle()
    seen += [caplog.text, *(body.decode() for body in refused.store.objects.values())]
    seen += traceback.format_exception(caught.value)
    assert len(world.api.sent) == len(refused.api.sent) == 1
    haystack = "\n".join(seen)
    assert world.invoice_id in haystack
    for credential in (*world.api.sent, *refused.api.sent):
        assert credential["Payment-Authorization"].partition(" ")[2] not in haystack
    assert CANARY not in haystack


def test_runs_that_race_for_one_invoice_send_one_credential(world):
    """Each run has its own rail: what one has in memory, no other can repeat."""

    def pay(_):
        try:
            return world.settle(
                rail=MppRail(world.issue, [NETWORK_ID]), read_delays=(0, 0.01, 0.02), sleep=time.sleep
            ).state
        except PaymentOutcomeUnknown as error:
            return str(error)

    with ThreadPoolExecutor(6) as pool:
        ends = list(pool.map(pay, range(6)))
    assert PaymentState.SETTLED in ends
    assert len(world.api.sent) == len(world.api.settlements()) == 1
    assert world.entry().state is PaymentState.SETTLED


def test_an_invoice_in_doubt_on_one_rail_is_not_paid_on_the_other(world):
    from prefect_assay.orders.payments.rails.x402 import X402Limits, X402Rail

    world.api.loses = True
    with pytest.raises(PaymentOutcomeUnknown):
        world.settle()
    world.rail = X402Rail(SecretStr("0x" + "11" * 32), X402Limits())
    with pytest.raises(PaymentOutcomeUnknown, match="not by x402"):
        world.settle()
    assert len(world.api.sent) == 1
