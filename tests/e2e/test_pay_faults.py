"""What is wrong with the pay path stands in the UI: in the run's state, its form or its artifacts. Both rails.

One order meets all the terms that the guard refuses; each fault of an answer has an order of its own. The lab's books
are the judge of what was paid.
"""

import re

import pytest
from prefect.states import Scheduled

from prefect_assay.approvals.uncertain_payment import answer_paid
from prefect_assay.blocks import SharedPaymentTokens, SpendingPolicy
from prefect_assay.client import AssayClient
from prefect_assay.models.vocabulary import InvoiceStatus
from support.crash.process import token_issuer
from support.crash.story import RAILS

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(240)]

PAYMENT = {
    "method": "POST",
    "path": "/api/v1/invoices/*/pay",
    "after": 1,
}  # the first call asks for the terms

REFUSED = {
    "wrong_amount": ("the challenge asks for", "the challenge asks for"),
    "wrong_payee": (
        "payTo .* is not in pay_to of the X402Wallet block",
        "networkId .* is not in network_ids of the SpendingPolicy block",
    ),
    "wrong_asset": ("asset .* is not in assets of the X402Wallet block", "the currency is 'eur', not usd"),
    "wrong_network": (
        "network .* is not in networks of the X402Wallet block",
        "method 'other', intent 'charge': not known here",
    ),
    "wrong_resource": ("resource.url is .*, this invoice's is", "externalId is .*, this invoice's is"),
    "expired_challenge": ("it expired", "it expired"),
    "ten_year_window": ("the policy allows 600 s", "the policy allows 600 s"),
    "missing_header": (r"not by x402 \(PAYMENT-REQUIRED\)", "it names no header for the credential"),
}


@pytest.fixture
def held(world, held):
    yield held
    world.stack.lab.clear_faults()
    world.stack.lab.end_payment_faults()


@pytest.fixture(params=RAILS)
def rail(request):
    return request.param


@pytest.fixture
def order(world, held, rail):
    """Start a run of one design that is paid by the rail."""
    policy = SpendingPolicy(
        per_experiment_cents=2_000_000,
        per_campaign_cents=5_000_000,
        machine_payments=True,
        rolling_cents=50_000_000,
        network_ids=[world.stack.lab.mpp["network_id"]],
    )
    policy.save("faults-policy", overwrite=True)
    with token_issuer() as url:
        tokens = SharedPaymentTokens(issuer_url=url, issuer_key="key")
        tokens.save("faults-tokens", overwrite=True)
        wallet = {"x402-exact": world.wallet, "mpp-spt": tokens}[rail]

        def start(what):
            return held.experiment(f"{what}-{rail}", policy=policy, payment_method=rail, wallet=wallet)

        yield start


def test_terms_that_are_refused_fail_the_run_with_the_reason(world, held, order, rail):
    creates = world.creates()
    run = order("refused")
    for action, reasons in REFUSED.items():
        world.stack.lab.payment_fault(action)
        state = held.execute(run)
        assert state.is_failed(), action
        assert "PaymentRefused" in state.message
        assert re.search(reasons[RAILS.index(rail)], state.message), state.message
        assert "The order remains" in state.message
        world.stack.lab.end_payment_faults()
        world.api.set_flow_run_state(run.id, Scheduled(name="AwaitingRetry"), force=True)
    assert world.settlements(f"refused-{rail}") == []
    assert held.execute(run).name == "Suspended"
    assert len(world.settlements(f"refused-{rail}")) == 1
    assert world.creates() == creates + 1


def doubled(world, monkeypatch):
    """Something between here and the service sends each payment twice: the second one answers 403."""
    world.stack.lab.payment_fault("replay_403", after=2)
    pay = AssayClient.pay

    def twice(client, invoice_id, headers=None):
        if headers:
            pay(client, invoice_id, headers)
        return pay(client, invoice_id, headers)

    monkeypatch.setattr(AssayClient, "pay", twice)


@pytest.mark.parametrize(
    ("fault", "remark"),
    [
        ("lose_answer", "the payment was answered with nothing"),
        ("error_after", "the payment was answered with status 5"),
        ("no_receipt", "the payment was answered without a receipt"),
        ("replay_403", "the payment was answered with status 403, the credential was used before"),
    ],
)
def test_a_payment_that_was_made_goes_on_and_its_artifact_says_what_was_odd(
    world, held, order, rail, fault, remark, monkeypatch
):
    name = fault.replace("_", "-")
    run = order(name)
    if fault == "no_receipt":
        world.stack.lab.payment_fault(fault)
    elif fault == "replay_403":
        doubled(world, monkeypatch)
    else:
        world.fault(fault, **PAYMENT)
    assert held.execute(run).name == "Suspended"
    assert not held.state(run).state_details.run_input_keyset  # it waits for the laboratory, and for nobody
    assert len(world.settlements(f"{name}-{rail}")) == 1
    (receipt,) = world.artifacts(run, "assay-receipt-")
    assert "| state | settled |" in receipt.data
    assert remark in receipt.data
    assert "the invoice is paid" in receipt.data


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("always_402", "answered with status 402, the payment was refused"),
        ("reset", "answered with nothing"),
        ("replay_403", "answered with status 403, the credential was used before"),
    ],
)
def test_a_payment_in_doubt_is_shown_to_a_person_with_the_answer(
    world, held, order, rail, fault, reason, monkeypatch
):
    name = f"doubt-{fault.replace('_', '-')}"
    run = order(name)
    with monkeypatch.context() as patched:
        if fault == "always_402":
            world.stack.lab.payment_fault(fault)
        elif fault == "replay_403":
            doubled(world, patched)
            stale(patched)
        else:
            world.fault(fault, **PAYMENT)
        assert held.execute(run).name == "Suspended"
    words, schema = held.form(run)
    assert "may or may not have been made" in words
    assert reason in words
    again = ["pay_again"] if rail == "x402-exact" else []
    assert schema["properties"]["decision"]["enum"] == ["paid", *again, "stop"]
    if fault == "replay_403":  # it was made, and the service says so by now
        if rail == "mpp-spt":  # the sweep sees it before the person does
            problems: list[str] = []
            assert answer_paid(world.api, [world.run(run)], problems) == [run.id]
            assert problems == []
            held.execute(run)
        else:
            assert held.answer(run, decision="paid") == "ACCEPT"
        assert held.state(run).name == "Suspended"
        assert not held.state(run).state_details.run_input_keyset
        assert len(world.settlements(f"{name}-{rail}")) == 1
        return
    assert answer_paid(world.api, [world.run(run)], []) == []
    assert held.answer(run, decision="stop") == "ACCEPT"
    ended = held.state(run)
    assert ended.is_failed()
    assert "its invoice is open, and money may have moved. The order remains" in ended.message
    assert world.settlements(f"{name}-{rail}") == []


def stale(monkeypatch):
    """The service shows a paid invoice as open for a while."""

    def opened(read):
        def shown(*arguments, **options):
            invoice = read(*arguments, **options)
            return invoice and invoice.model_copy(update={"status": InvoiceStatus.OPEN})

        return shown

    for name in ("invoice_by_id", "find_invoice"):
        monkeypatch.setattr(AssayClient, name, opened(getattr(AssayClient, name)))
