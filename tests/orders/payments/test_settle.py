"""One invoice is paid once, by either rail: what is paid, what is refused, what has an unknown outcome, and what is recorded."""

import json
import logging
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from pydantic import SecretStr

from prefect_assay.archive import LocalStore
from prefect_assay.errors import (
    ArchiveUnavailable,
    BudgetExceeded,
    OrderStopped,
    PaymentFailed,
    PaymentOutcomeUnknown,
    PaymentRefused,
    PaymentsDisabled,
    ServiceUnavailable,
    TransientError,
)
from prefect_assay.orders.job import PaymentState
from prefect_assay.orders.ledger.log import Surplus
from prefect_assay.orders.payments.guard import PaymentPolicy
from prefect_assay.orders.payments.rails.x402 import X402Limits, X402Rail
from prefect_assay.orders.payments.reconciliation import describe_hosted
from prefect_assay.orders.payments.settle import utc_now
from prefect_assay.service.models.vocabulary import PaymentMethod
from support.lab.pay import (
    CANARY_TOKEN,
    LIMITS,
    MPP,
    OTHER_RAIL,
    PAY_TO,
    PROFILE,
    X402,
    Answer,
    PayWorld,
    after,
    arrive,
    claim_settlement,
    drop_answer,
    fail_after,
    forbid_replay,
    hidden,
    interrupt,
    leave_out_receipt,
    lose,
    refuse,
    refuse_without_reason,
    state_failure,
    with_signing,
)
from support.x402 import CANARY_ADDRESS, CANARY_KEY, NETWORK, RECEIVER, USDC, decode

ODD_ANSWERS = [
    (drop_answer, "the payment was answered with nothing (PaymentOutcomeUnknown)"),
    (fail_after, "the payment was answered with status 500"),
    (forbid_replay, "the payment was answered with status 403"),
    (leave_out_receipt, "the payment was answered without a receipt"),
    (after(refuse_without_reason), "the payment was answered with status 402"),
    (after(state_failure("settlement_pending")), "the payment was answered with status 402"),
    (after(state_failure("invalid_transaction_state")), "the payment was answered with status 402"),
]
# To a credential that has not arrived; R3 to R9 of `x402-conformance`. Bodies that can't be read: test_client_faults.py.
EMPTY_ANSWERS = [
    lose,
    claim_settlement,
    refuse_without_reason,
    state_failure("settlement_pending"),
    state_failure("invalid_transaction_state"),
]
HOUR = timedelta(hours=1)


def cannot_sign(*_, **__):
    raise PaymentRefused("the terms cannot be signed")


def leave_in_doubt(world, answers=lose, match=None, **changes):
    """Pay with an answer that leaves the outcome unknown; the next answers arrive."""
    world.api.answers = answers
    with pytest.raises(PaymentOutcomeUnknown, match=match):
        world.settle(**changes)
    world.api.answers = arrive


def let_refuse(world):
    world.api.answers = refuse
    with pytest.raises(PaymentFailed, match="insufficient_funds"):
        world.settle()
    world.api.answers = arrive


def let_the_credential_expire(world):
    """As if the last attempt had been made earlier."""
    key = max(key for key, body in world.store.objects.items() if b'"kind":"paying"' in body)
    late = (utc_now() - timedelta(seconds=1)).isoformat()
    world.store.objects[key] = json.dumps(
        {**json.loads(world.store.objects[key]), "expires_at": late}
    ).encode()


def repeat_the_challenge(world):
    """The service's challenge is stateless: the same id, bytes and end for every asking."""
    kept = []

    def repeat(answer):
        kept.append(answer)
        return kept[0]

    world.api.asked = repeat


def require_paid(world, **changes):
    """Money moved once, whatever came before."""
    payment = world.settle(**changes)
    assert payment.state is PaymentState.SETTLED
    assert len(world.settlements()) == 1
    assert (world.state(), world.spent()) == ("settled", world.cents)
    return payment


# --- what is paid ---


def test_an_open_invoice_is_paid_once_and_the_receipt_is_kept(world):
    states = []
    world.api.before = lambda: states.append(world.state())
    payment = require_paid(world)
    assert states == ["sent"], "the intent is recorded before anything is sent"
    assert (payment.method, payment.amount_cents) == (PaymentMethod(world.method), world.cents)
    assert (payment.already_paid, payment.remark) == (False, None)
    (settled,) = world.settlements()
    if world.method == X402:
        assert payment.receipt["payer"] == CANARY_ADDRESS
        assert (payment.receipt["success"], payment.receipt["network"]) == ("true", NETWORK)
    else:
        assert payment.receipt["reference"] == settled["reference"]
        assert payment.receipt["externalId"] == world.invoice_id
        (limits,) = world.issued
        assert (limits.currency, limits.max_amount, limits.network_id) == ("usd", world.cents, PROFILE)
        assert 0 < limits.expires_at - utc_now().timestamp() <= 300
        assert int(world.entry().expires_at.timestamp()) == limits.expires_at
    entry = world.entry()
    terms = (NETWORK, USDC, PAY_TO) if world.method == X402 else ("stripe", "usd", PROFILE)
    assert (entry.network, entry.asset, entry.pay_to, entry.experiment_id) == (*terms, world.experiment_id)

    again = world.settle()
    assert (again.already_paid, again.receipt) == (True, payment.receipt)
    assert (len(world.api.sent), len(world.issued)) == (1, int(world.method == MPP))


def test_a_paid_invoice_is_done_without_asking_the_pay_path(world):
    world.api.shown["status"] = "paid"
    world.policy = PaymentPolicy()
    payment = world.settle()
    assert (payment.state, payment.already_paid, world.api.probes) == (PaymentState.SETTLED, True, 0)


def test_an_invoice_that_reads_as_paid_once_is_not_recorded_as_paid(world):
    statuses = iter(["paid"])
    world.api.shown["status"] = lambda: next(statuses, "open")
    with pytest.raises(TransientError, match="read as paid, and a second later it reads as open"):
        world.settle()
    assert world.is_untouched()
    world.api.shown.clear()
    require_paid(world)


def test_an_invoice_paid_between_reading_and_asking_is_done(world):
    def pay_elsewhere(_):
        world.api.shown["status"] = "paid"
        return Answer(200, {}, {"already_paid": True})

    world.api.asked = pay_elsewhere
    assert world.settle().already_paid
    assert world.api.sent == []


def test_of_several_offers_the_acceptable_one_is_paid_and_echoed_verbatim(x402):
    x402.api.offer(others=[{"scheme": "upto", "network": "solana:x"}, "nonsense"])
    require_paid(x402)
    accepted = decode(x402.api.sent[0]["PAYMENT-SIGNATURE"])["accepted"]
    assert (accepted["scheme"], accepted["network"], accepted["payTo"]) == ("exact", NETWORK, PAY_TO)


@pytest.mark.parametrize(
    ("status", "state"), [("open", "intended"), ("paid", "settled"), ("draft", "intended")]
)
def test_a_hosted_invoice_names_its_page_and_whether_it_is_paid(x402, status, state):
    x402.api.shown = {"status": status, "provider_hosted_invoice_url": "https://pay.example/1"}
    payment = describe_hosted(x402.api.get(x402.invoice_id))
    assert (payment.state.value, payment.method.value) == (state, "async_invoice")
    assert (payment.hosted_invoice_url, payment.already_paid) == ("https://pay.example/1", status == "paid")


@pytest.mark.parametrize("status", ["void", "uncollectible"])
def test_a_hosted_invoice_that_cannot_be_paid_any_more_is_a_failure(x402, status):
    x402.api.shown["status"] = status
    with pytest.raises(PaymentFailed, match=status):
        describe_hosted(x402.api.get(x402.invoice_id))


# --- what is refused before anything is signed ---


def show(**fields):
    return lambda world: world.api.shown.update(fields)


def offer(**changes):
    return lambda world: world.api.offer(**changes)


def offer_extra(**fields):
    """What the offered entry says of its token contract."""
    return lambda world: world.api.offer(extra=fields)


def fault(action):
    return lambda world: world.api.fault(action)


def allow(**changes):
    return lambda world: world.allow(**changes)


def answer_probe(status):
    return lambda world: setattr(world.api, "asked", lambda _: Answer(status, {}, {}))


REFUSED = [
    *(
        (show(status=one), PaymentFailed, f"is '?{one}'?, not open")
        for one in ("draft", "void", "frozen", None)
    ),
    *((show(amount=one), PaymentRefused, "amount") for one in ("50.00", "5000", True, -5, 5000.5, None)),
    (show(amount=5100), PaymentRefused, r"asks for 51.00 USD, but .* USD was approved"),
    (show(amount=51), PaymentRefused, r"asks for 0.51 USD, but .* USD was approved"),
    (show(amount_cents=51), PaymentRefused, "."),
    (show(currency="eur"), PaymentRefused, "its currency is 'eur', not USD"),
    (show(currency={"code": "usd"}), PaymentRefused, "currency"),
    (show(currency=["usd"]), PaymentRefused, "currency"),
    (show(experiment_id="exp_2"), PaymentRefused, "belongs to experiment 'exp_2', and the order is"),
    (show(experiment_id="exp_2", status="paid"), PaymentRefused, "belongs to experiment 'exp_2'"),
    (fault("wrong_amount"), PaymentRefused, "the challenge asks for"),
    (fault("wrong_resource"), PaymentRefused, "resource.url is|externalId is"),
    (fault("missing_header"), PaymentRefused, "."),
    (fault("ten_year_window"), PaymentRefused, "at most 600 s are allowed"),
    (answer_probe(200), PaymentRefused, "pay it by hand"),
    (answer_probe(409), PaymentFailed, "pinned to another payment method"),
    (answer_probe(500), ServiceUnavailable, "answered 500"),
    (allow(enabled=False), PaymentsDisabled, "machine_payments of the SpendingPolicy block"),
    (lambda w: w.allow(max_cents_rolling=w.cents - 1), BudgetExceeded, "rolling_usd|is committed"),
]
REFUSED_X402 = [
    (offer(amount="50010000"), PaymentRefused, "challenge asks for 50.01 USD, the invoice for"),
    (offer(amount="50000001"), PaymentRefused, "challenge asks for 50000001 units"),
    (offer(payTo=USDC), PaymentRefused, "payTo '0x036CbD.* is not in pay_to of the X402Wallet block"),
    (offer(asset=RECEIVER), PaymentRefused, "asset '0x209693.* is not in assets of the X402Wallet block"),
    (offer(network="eip155:1"), PaymentRefused, "network 'eip155:1' is not in networks of the X402Wallet"),
    (offer(maxTimeoutSeconds=0), PaymentRefused, "it expired 0 s ago"),
    (offer(scheme="upto"), PaymentRefused, "scheme 'upto' on 'eip155:84532': not known here"),
    (offer(asset=None), PaymentRefused, "asset"),
    (offer_extra(name="USDC"), PaymentRefused, "malformed or missing extra.version"),
    (offer_extra(name="USDC", version="2", assetTransferMethod="permit2"), PaymentRefused, "by 'permit2'"),
    (offer(resource="http://127.0.0.1:1/api/v1/invoices/inv_2/pay"), PaymentRefused, "this invoice's is"),
]
REFUSED_MPP = [
    (fault("wrong_payee"), PaymentRefused, "networkId 'profile_other' is not in network_ids of the Shared"),
    (fault("wrong_asset"), PaymentRefused, "the currency is 'eur'"),
    (fault("wrong_network"), PaymentRefused, "method 'other', intent 'charge': not known here"),
    (fault("expired_challenge"), PaymentRefused, "it expired"),
]


@pytest.mark.parametrize(
    ("method", "prepare", "error", "match"),
    [
        *((method, *row) for method in (X402, MPP) for row in REFUSED),
        *((X402, *row) for row in REFUSED_X402),
        *((MPP, *row) for row in REFUSED_MPP),
    ],
)
def test_what_is_not_as_approved_is_refused_unsigned_and_paid_when_it_is(core, method, prepare, error, match):
    world = PayWorld(core, method)
    policy = world.policy
    prepare(world)
    rail = with_signing(lambda *_, **__: pytest.fail("signed")) if method == X402 else world.rail
    with pytest.raises(error, match=match):
        world.settle(rail=rail)
    assert world.is_untouched()
    assert world.issued == []
    core.lab.payment_faults.clear()
    world.api.shown, world.api.asked, world.policy = {}, lambda answer: answer, policy
    require_paid(world)


@pytest.mark.parametrize("error", [PaymentRefused, RuntimeError])
def test_a_credential_that_cannot_be_made_frees_its_share_of_the_cap(mpp, x402, error):
    def broken(*_, **__):
        raise error(CANARY_TOKEN)

    with pytest.raises(PaymentRefused) as caught:
        mpp.settle(rail=mpp.new_rail(broken))
    assert error is PaymentRefused or "RuntimeError" in str(caught.value)
    assert mpp.is_untouched()
    with pytest.raises(PaymentRefused, match="cannot be signed"):
        x402.settle(rail=with_signing(cannot_sign))
    assert (x402.is_untouched(), x402.records()) == (True, [])
    require_paid(mpp)


# --- what the service refuses ---


def test_a_refused_payment_of_an_open_invoice_is_a_failure_and_another_one_waits_until_it_has_expired(world):
    let_refuse(world)
    assert (world.state(), world.spent()) == ("failed", 0)
    world.rail = OTHER_RAIL if world.method == X402 else world.new_rail()
    with pytest.raises(PaymentRefused, match="could be settled besides it"):
        world.settle()
    assert len(world.api.sent) == 1
    let_the_credential_expire(world)
    require_paid(world)


def test_the_same_wallet_may_pay_at_once_after_a_refusal(x402):
    let_refuse(x402)
    require_paid(x402)
    assert x402.could_settle() == 1


@pytest.mark.parametrize("status", ["void", "frozen", "unreadable"])
def test_a_refusal_is_believed_only_while_the_invoice_reads_as_open(world, status):
    def shown():
        if not world.api.sent:
            return "open"
        if status == "unreadable":
            raise ServiceUnavailable("not now")
        return status

    world.api.shown["status"] = shown
    leave_in_doubt(world, refuse)
    world.api.shown.clear()
    assert (world.state(), world.spent()) == ("unknown", world.cents)


def test_a_second_402_without_a_statement_is_not_followed_and_is_unknown(world):
    leave_in_doubt(world, refuse_without_reason, "status 402")
    assert (len(world.api.sent), world.api.probes, world.state()) == (1, 1, "unknown")


# --- unknown outcomes ---


@pytest.mark.parametrize(("answers", "remark"), ODD_ANSWERS)
def test_a_settlement_whose_answer_is_lost_or_odd_is_found_by_reading_the_invoice(world, answers, remark):
    world.api.answers = answers
    with hidden(world, 3):
        payment = require_paid(world)
    assert world.slept[:4] == [0.0, 1.0, 2.0, 4.0], "with back-off"
    again = world.settle()
    assert again.already_paid
    assert again.remark == world.entry().remark == payment.remark
    assert payment.remark.startswith(remark)
    assert len(world.api.sent) == 1


@pytest.mark.parametrize("answers", [arrive, *(answers for answers, _ in ODD_ANSWERS)])
def test_a_settlement_that_the_invoice_never_shows_is_unknown_and_never_settles_twice(world, answers):
    world.api.answers = answers
    with hidden(world):
        for _ in range(2):
            with pytest.raises(PaymentOutcomeUnknown):
                world.settle()
            assert (world.state(), world.spent()) == ("unknown", world.cents)
    assert (world.could_settle(), len(world.issued)) == (1, int(world.method == MPP))
    require_paid(world)


@pytest.mark.parametrize("answers", EMPTY_ANSWERS)
def test_an_answer_to_a_credential_that_did_not_arrive_is_never_taken_for_a_payment(world, answers):
    leave_in_doubt(world, answers)
    assert (world.state(), world.spent(), world.settlements()) == ("unknown", world.cents, [])
    if world.method == X402:
        require_paid(world)
        assert world.could_settle() == 1


def test_a_credential_lost_on_the_way_is_sent_again_by_the_next_call_unchanged(x402):
    leave_in_doubt(x402)
    later = utc_now() + timedelta(minutes=2)  # its window is open
    assert x402.settle(now=lambda: later).state is PaymentState.SETTLED
    first, second = x402.api.sent
    assert first == second, "with its idempotency key"
    assert first["Idempotency-Key"]
    assert x402.records() == ["paying", "in_doubt", "paying", "settled"]


def test_after_the_old_window_has_passed_the_same_nonce_is_signed_anew(x402):
    leave_in_doubt(x402, now=lambda: utc_now() - HOUR)
    require_paid(x402)
    first, second = x402.authorisations()
    assert first["nonce"] == second["nonce"]
    assert int(first["validBefore"]) < time.time() < int(second["validBefore"])
    assert len({sent["Idempotency-Key"] for sent in x402.api.sent}) == 1


def use_token_contract(**change):
    def prepare(world):
        world.api.offer(**change)
        pairs = [(NETWORK, USDC), (NETWORK, RECEIVER), ("eip155:8453", USDC)]
        limits = X402Limits(
            networks=(NETWORK, "eip155:8453"),
            assets=tuple(f"{network}/erc20:{asset}" for network, asset in pairs),
            pay_to=(PAY_TO,),
        )
        world.rail = X402Rail(SecretStr(CANARY_KEY), limits)

    return prepare


def use_alias(world):
    """The service by an alias of its address, as another run's credentials block spells it."""
    alias = world.api.base_url.replace("127.0.0.1", "localhost")
    world.api.base_url = alias
    world.allow(allowed_origins=(alias,))
    world.api.offer(resource=f"{alias}/api/v1/invoices/{world.invoice_id}/pay")


def use_other_wallet(world):
    world.rail = OTHER_RAIL


def use_other_wallet_and_alias(world):
    use_alias(world)
    use_other_wallet(world)


BESIDES = "could be settled besides it"


@pytest.mark.parametrize(
    ("method", "change", "match"),
    [
        (X402, use_other_wallet, BESIDES),
        (X402, use_other_wallet_and_alias, BESIDES),
        (X402, use_token_contract(network="eip155:8453"), BESIDES),
        (X402, use_token_contract(asset=RECEIVER), BESIDES),
        (X402, lambda w: setattr(w, "policy", PaymentPolicy()), "machine payments are off"),
        (X402, show(status="void"), "'void', not open"),
        (X402, lambda w: setattr(w, "rail", with_signing(cannot_sign)), "cannot be signed"),
        (MPP, lambda w: None, "mpp-spt was sent and is unknown; no other one is issued"),
        (MPP, lambda w: setattr(w, "rail", w.new_rail()), "no other one is issued"),
        (MPP, lambda w: setattr(w, "rail", X402Rail(SecretStr(CANARY_KEY), LIMITS)), "not by x402"),
    ],
)
@pytest.mark.parametrize("elapsed", [timedelta(), HOUR, timedelta(days=400)])
def test_a_payment_in_doubt_is_never_followed_by_one_that_could_be_settled_besides_it(
    core, method, change, match, elapsed
):
    world = PayWorld(core, method)
    leave_in_doubt(world)
    remark = world.entry().remark
    change(world)
    with pytest.raises(PaymentOutcomeUnknown, match=match):
        world.settle(now=lambda: utc_now() + elapsed)
    world.api.shown.clear()
    assert (len(world.api.sent), len(world.issued)) == (1, int(method == MPP))
    assert (world.state(), world.entry().remark, world.settlements()) == ("unknown", remark, [])


def test_by_an_alias_of_the_address_the_recorded_nonce_is_sent_again(x402):
    leave_in_doubt(x402)
    use_alias(x402)
    assert x402.rail.make_nonce(x402.api.base_url, x402.invoice_id) != x402.entry().nonce
    leave_in_doubt(x402)
    assert (len(x402.api.sent), x402.could_settle()) == (2, 1)


def test_an_alias_of_the_invoice_has_the_same_entry_and_nonce(x402):
    for name in (x402.invoice_id, x402.alias):
        leave_in_doubt(x402, invoice_id=name)
    assert (len(x402.api.sent), x402.could_settle()) == (2, 1)


def test_after_a_lost_answer_a_stated_refusal_ends_no_doubt(x402):
    leave_in_doubt(x402)
    leave_in_doubt(x402, refuse, "status 402, insufficient_funds")
    assert x402.state() == "unknown"


def test_a_payment_in_doubt_is_looked_for_with_patience_before_it_is_sent_again(world):
    with hidden(world, 7):  # five readings after sending, and two of the next call
        leave_in_doubt(world, drop_answer)
        assert world.settle().already_paid
    assert (len(world.api.sent), world.api.probes) == (1, 1)


def test_a_repeated_challenge_gets_one_token_and_does_not_end_the_wait_for_a_refused_one(core):
    for answers, error in ((lose, PaymentOutcomeUnknown), (refuse, PaymentRefused)):
        world = PayWorld(core, MPP)
        repeat_the_challenge(world)
        world.api.answers = answers
        with pytest.raises((PaymentOutcomeUnknown, PaymentFailed)):
            world.settle(rail=world.new_rail())
        world.api.answers = arrive
        with pytest.raises(error):
            world.settle(rail=world.new_rail())
        assert len(world.issued) == len(world.api.sent) == 1


def test_a_log_restored_from_an_older_backup_gets_no_second_token(mpp):
    """Played: with the log's tail gone, `mpp-spt` issued a second token in 2 of 3 tries."""
    mpp.ledger()
    backup = {
        key: body
        for key, body in mpp.store.objects.items()
        if key.endswith(("/k/000001.json", "/k/000002.json"))
    }
    leave_in_doubt(mpp)
    for key in [key for key in mpp.store.objects if "/k/" in key]:
        del mpp.store.objects[key]
    mpp.store.objects.update(backup)
    for _ in range(2):
        with pytest.raises(PaymentOutcomeUnknown, match="lost records that its budget knows"):
            mpp.settle(rail=mpp.new_rail())
    assert (len(mpp.issued), len(mpp.api.sent)) == (1, 1)


# --- crashes, races and archives that fail ---


def test_a_crash_before_the_record_binds_nothing(world):
    with pytest.raises(KeyboardInterrupt):
        world.settle(rail=world.signing(interrupt))
    assert (world.entry(), world.spent()) == (None, world.cents)
    require_paid(world, rail=OTHER_RAIL if world.method == X402 else world.new_rail())


def test_a_crash_before_a_failed_payment_is_tried_again_does_not_forget_that_it_was_sent(x402):
    let_refuse(x402)
    with pytest.raises(KeyboardInterrupt):
        x402.settle(rail=with_signing(interrupt))
    assert x402.state() == "failed"
    with pytest.raises(PaymentRefused, match=BESIDES):
        x402.settle(rail=OTHER_RAIL)


@pytest.mark.parametrize("is_refused", [False, True], ids=["first", "after a refusal"])
def test_of_runs_that_race_for_one_invoice_one_sends_a_credential(world, is_refused):
    if is_refused:
        let_refuse(world)
        let_the_credential_expire(world)
    world.api.answers = lose
    barrier = threading.Barrier(3)
    before = len(world.api.sent)

    def pay(_):
        with pytest.raises(
            PaymentOutcomeUnknown
        ):  # all three have read the entry before one records an attempt
            world.settle(rail=world.signing(lambda: barrier.wait(20)))

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(pay, range(3)))
    assert len(world.api.sent) - before == 1
    assert world.spent() == world.cents


def test_a_ledger_that_fails_after_the_settlement_does_not_hide_it(world, caplog):
    payment_ledger, calls = world.another_run(), []

    def broken(*_, **__):
        calls.append(1)
        raise OSError("disk full")

    world.api.before = lambda: setattr(payment_ledger, "record_paid", broken)
    assert world.settle(ledger=payment_ledger).state is PaymentState.SETTLED
    assert calls
    assert "is paid; that cannot be recorded now" in caplog.text
    assert world.entry().in_doubt
    world.api.before = lambda: None
    require_paid(world)


@pytest.mark.parametrize("fail", ["fail_before_writing", "lose_answer"])
def test_an_archive_that_goes_away_before_the_record_stops_the_payment(world, monkeypatch, fail):
    monkeypatch.setattr("prefect_assay.orders.ledger.log.time.sleep", lambda _: None)
    with pytest.raises(ArchiveUnavailable):
        world.settle(rail=world.signing(lambda: getattr(world.store, fail)(4)))
    assert world.api.sent == []
    if fail == "lose_answer":
        assert world.entry().in_doubt
    else:
        require_paid(world)


def test_an_order_that_becomes_another_experiment_meanwhile_is_not_paid(world):
    """Another run finds an older experiment of the order between this run's reading and its record."""
    surplus = Surplus(experiment_id=world.experiment_id, kept="exp_0")
    with pytest.raises(PaymentOutcomeUnknown, match="this one sent nothing"):
        world.settle(rail=world.signing(lambda: world.ledger().record(lambda _: surplus)))
    assert (world.api.sent, world.records(), world.spent()) == ([], ["surplus"], 0)


def test_a_reservation_whose_invoice_someone_else_has_paid_frees_its_share_of_the_cap(world):
    with pytest.raises(KeyboardInterrupt):
        world.settle(rail=world.signing(interrupt))
    assert world.spent() == world.cents
    world.api.shown["status"] = "paid"
    assert world.settle().already_paid
    assert (world.records(), world.spent()) == (["settled"], 0)


def test_a_settled_order_takes_no_further_payment_whatever_its_invoice_says(world):
    repeat_the_challenge(world)
    require_paid(world)
    error, match = (PaymentOutcomeUnknown, "the order is settled; this one sent nothing")
    if world.method == MPP:
        error, match = PaymentRefused, "was sent and is settled"
    with hidden(world), pytest.raises(error, match=match):
        world.settle()
    assert (len(world.api.sent), world.spent()) == (1, world.cents)


# --- a person cancels ---


def stop(world):
    world.ledger().stop("ada", "prefect-assay cancel")


def test_of_a_stopped_order_no_credential_is_made_and_reopened_it_is_paid_once(world):
    stop(world)
    with pytest.raises(OrderStopped):
        world.settle(rail=world.signing(lambda: pytest.fail("signed")))
    assert (world.is_untouched(), world.records(), world.issued) == (True, ["stopped"], [])
    world.ledger().reopen("ada")
    require_paid(world)


def test_a_stop_while_the_credential_is_made_keeps_it_from_leaving(world):
    def stop_while_reserved():
        assert world.spent() == world.cents
        stop(world)

    with pytest.raises(OrderStopped):
        world.settle(rail=world.signing(stop_while_reserved))
    assert (world.is_untouched(), world.records()) == (True, ["stopped"])


def test_a_payment_that_was_recorded_before_the_stop_ends_as_its_invoice_says(world):
    world.api.before = lambda: stop(world)
    require_paid(world)
    assert world.records() == ["paying", "stopped", "settled"]


def test_a_payment_in_doubt_is_not_sent_again_after_the_stop_and_is_found_paid(world):
    with hidden(world):
        leave_in_doubt(world, arrive)
        stop(world)
        with pytest.raises((OrderStopped, PaymentOutcomeUnknown)):
            world.settle()
    assert (len(world.api.sent), world.spent()) == (1, world.cents)
    require_paid(world)


# --- no secret ---


def test_key_token_and_signature_appear_nowhere(world, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    world.store = LocalStore(tmp_path)
    shown = [repr(world.rail), str(vars(world.rail)) if world.method == X402 else ""]
    with hidden(world):
        for _ in range(2):
            with pytest.raises(PaymentOutcomeUnknown) as caught:
                world.settle()
            shown += traceback.format_exception(caught.value)
    shown += [repr(world.settle()), world.entry().model_dump_json(), caplog.text]
    shown += [path.read_text() for path in tmp_path.rglob("*.json")]
    haystack = "\n".join(shown).lower()
    secrets = [CANARY_KEY[2:], CANARY_TOKEN]
    for sent in world.api.sent:
        if world.method == X402:
            secrets.append(decode(sent["PAYMENT-SIGNATURE"])["payload"]["signature"][2:])
        else:
            secrets.append(sent["Payment-Authorization"].partition(" ")[2])
    assert len(secrets) > 2
    assert [secret for secret in secrets if secret.lower() in haystack] == []
    assert world.invoice_id in haystack


def test_a_provider_that_repeats_the_token_does_not_get_it_into_a_message_or_the_ledger(mpp):
    token = f"{CANARY_TOKEN}_{mpp.invoice_id.replace('-', '')}_1"
    mpp.api.answers = lambda _: Answer(402, {}, {"detail": "x" * 178 + f" No such token: {token}"})
    with pytest.raises(PaymentOutcomeUnknown) as caught:
        mpp.settle()
    assert "spt_" not in str(caught.value)  # nor the beginning of it, where the reason is cut
    assert "spt_" not in mpp.entry().model_dump_json()
    assert mpp.entry().remark.startswith("the payment was answered with status 402, xxx")
