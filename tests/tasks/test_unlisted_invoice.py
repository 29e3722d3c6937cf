"""A machine pays what is certainly the order's invoice. Where no call names it, a person pays the hosted page."""

import logging

import pytest

from prefect_assay.blocks import SharedPaymentTokens, SpendingPolicy, X402Wallet
from prefect_assay.errors import (
    NotFound,
    NotReady,
    PayByHand,
    PaymentFailed,
    PaymentOutcomeUnknown,
    PaymentsDisabled,
    ServiceUnavailable,
    UnexpectedAnswer,
)
from prefect_assay.orders.job import Order
from prefect_assay.orders.ledger import PaymentLedger
from prefect_assay.orders.ledger.log import Accepted, Ordered
from prefect_assay.orders.payments.due import DueInvoice
from prefect_assay.service.models.billing import ExperimentInvoice, Invoice, PayAnswer
from prefect_assay.service.models.vocabulary import InvoiceStatus, PaymentMethod
from prefect_assay.tasks import pay
from prefect_assay.tasks.pay import choose_rail, pay_invoice, read_due
from support.archive.memory_store import an_attempt
from support.services.billed_service import BilledService
from support.services.order_service import ledgers
from support.x402 import CANARY_KEY, NETWORK, RECEIVER, USDC

KEY = "0" * 20
ORDER = Order(
    order_key=KEY,
    experiment_id="e1",
    experiment_code="LAB-001-001",
    experiment_url="https://portal.example/e1",
    status="waiting_for_materials",
    adopted=False,
)
SHARED = {
    "policy": SpendingPolicy(per_experiment_usd=0.01, per_campaign_usd=0.01),
    "wallet": None,
}


@pytest.fixture
def ledger(tmp_path):
    made = ledgers(tmp_path).open_order("camp", KEY)
    made.record(lambda _: Ordered(experiment_id="e1"))
    return made


def a_service(status):
    """Answers at the list with a page that it did not write."""
    return BilledService(invoice="open", listed=UnexpectedAnswer("no route matched", status_code=status))


def due(service, ledger, method=PaymentMethod.X402_EXACT):
    return read_due.fn(service, ORDER, ledger=ledger, method=method, wallet=None)


@pytest.mark.parametrize("status", [200, 404, 405])
def test_an_invoice_that_no_call_names_is_paid_by_a_person(ledger, status):
    with pytest.raises(PayByHand, match=r"A person can pay it: https://pay\.example/1"):
        due(a_service(status), ledger)
    with pytest.raises(PayByHand):
        pay_invoice.fn(
            a_service(status),
            ORDER,
            ledger=ledger,
            method=PaymentMethod.X402_EXACT,
            limit_cents=21_900,
            **SHARED,
        )


def test_any_other_page_is_waited_out(ledger):
    with pytest.raises(ServiceUnavailable):
        due(a_service(502), ledger)


def test_once_a_payment_was_sent_its_invoice_is_known(ledger):
    sent = an_attempt(invoice_id="inv", experiment_id="e1", amount_cents=21_900)
    assert PaymentLedger(ledger).begin(sent, previous=None)
    asked = []

    def get_invoice(invoice_id):
        asked.append(invoice_id)
        raise UnexpectedAnswer("maintenance", status_code=502)

    service = a_service(404)
    service.invoices.get = get_invoice
    service.invoices.pay = lambda _invoice_id: pytest.fail("asked")
    service.experiments.get_invoice = lambda _experiment_id: ExperimentInvoice(status="paid")
    service.experiments.get = lambda _experiment_id: pytest.fail("a paid invoice is never refused")
    assert due(service, ledger) is None
    assert asked == ["inv"]


@pytest.mark.parametrize("status", ["void", "uncollectible"])
def test_a_dropped_invoice_is_waited_for_like_one_that_is_not_made(ledger, monkeypatch, status):
    """Unless a payment was sent, whose outcome is a question."""
    monkeypatch.setattr(pay, "get_run_logger", lambda: logging.getLogger("run"))
    service = a_service(404)
    service.invoices.get = lambda invoice_id: Invoice(id=invoice_id, status=status, experiment_id="e1")
    monkeypatch.setattr(pay, "_find_payable_invoice", lambda *_: service.invoices.get("inv"))
    with pytest.raises(NotReady, match=f"invoice inv is {status}, and nothing is paid"):
        due(service, ledger)
    sent = an_attempt(invoice_id="inv", experiment_id="e1", amount_cents=21_900)
    assert PaymentLedger(ledger).begin(sent, previous=None)
    with pytest.raises(PaymentOutcomeUnknown, match=f"invoice inv is {status}, and nothing is paid"):
        due(service, ledger)


def read_uncalled(service):
    """The invoice of the experiment `e1` where the service has no call that shows invoices."""
    service.invoices.get = lambda _: raise_error(NotFound("404"))
    return DueInvoice(service, "e1", lambda *_: 21_900).get("inv")


def raise_error(error):
    raise error


def test_an_invoice_that_names_another_experiment_is_not_the_orders():
    service = BilledService(invoice="open")
    service.experiments.get_invoice = lambda _: ExperimentInvoice(status="open", experiment_id="e2")
    with pytest.raises(PaymentFailed, match="names experiment e2; nothing is paid"):
        read_uncalled(service)


@pytest.mark.parametrize(
    ("body", "status", "shown"),
    [
        ({}, "waiting_for_materials", InvoiceStatus.OPEN),
        ({}, "in_production", InvoiceStatus.PAID),
        ({"already_paid": True}, "waiting_for_materials", InvoiceStatus.PAID),
        ({"status": "paid"}, "waiting_for_materials", InvoiceStatus.PAID),
        ({"status": "open"}, "waiting_for_materials", InvoiceStatus.OPEN),
    ],
)
def test_a_pay_path_that_asks_for_nothing_proves_a_payment_only_where_the_service_says_so(
    body, status, shown
):
    service = BilledService(invoice="open", status=status)
    service.invoices.pay = lambda _: PayAnswer(status_code=200, headers={}, body=body)
    assert read_uncalled(service).status == shown


POLICY = SpendingPolicy(
    per_experiment_usd=0.01, per_campaign_usd=0.01, rolling_usd=0.01, machine_payments=True
)
TOKENS = SharedPaymentTokens(
    issuer_url="http://127.0.0.1:9/issue", issuer_key="key", network_ids=["profile_1"]
)
X402 = X402Wallet(private_key=CANARY_KEY, networks=[NETWORK], assets=[USDC], pay_to=[RECEIVER])
PINNED = {"machine": True, "rails": ("x402-exact",)}


@pytest.mark.parametrize(
    ("answer", "method", "wallet", "used"),
    [
        ({}, PaymentMethod.MPP_SPT, TOKENS, PaymentMethod.MPP_SPT),
        (PINNED, PaymentMethod.X402_EXACT, X402, PaymentMethod.X402_EXACT),
        (PINNED, PaymentMethod.ASYNC_INVOICE, X402, PaymentMethod.X402_EXACT),
        ({"machine": True}, PaymentMethod.MPP_SPT, TOKENS, PaymentMethod.MPP_SPT),
        ({"machine": True}, PaymentMethod.ASYNC_INVOICE, TOKENS, PaymentMethod.MPP_SPT),
        (
            {"machine": True, "rails": ("mpp-spt", "x402-exact")},
            PaymentMethod.ASYNC_INVOICE,
            X402,
            PaymentMethod.X402_EXACT,
        ),
        ({"machine": False}, PaymentMethod.X402_EXACT, X402, PaymentMethod.ASYNC_INVOICE),
    ],
)
def test_the_rail_that_the_acceptance_names_is_used(ledger, answer, method, wallet, used):
    ledger.record(lambda _: Accepted(**answer))
    assert choose_rail(ledger, method, POLICY, wallet) is used


@pytest.mark.parametrize(
    ("answer", "policy", "wallet", "why"),
    [
        (PINNED, POLICY, None, "x402-exact pays with a wallet of its kind"),
        (PINNED, POLICY, TOKENS, "x402-exact pays with a wallet of its kind"),
        (PINNED, SHARED["policy"], X402, "machine payments are off"),
        ({"machine": True, "rails": ("another",)}, POLICY, X402, "payment by another"),
    ],
)
def test_a_named_rail_that_wallet_or_policy_do_not_allow_is_refused(ledger, answer, policy, wallet, why):
    ledger.record(lambda _: Accepted(**answer))
    with pytest.raises(PaymentsDisabled, match="Nothing is paid; the order remains") as refused:
        choose_rail(ledger, PaymentMethod.ASYNC_INVOICE, policy, wallet)
    assert why in refused.value.message
    assert "nothing was ordered" not in refused.value.message


def test_a_payment_in_doubt_is_never_followed_by_a_hosted_page(ledger):
    ledger.record(lambda _: Accepted(machine=False))
    sent = an_attempt(invoice_id="inv", experiment_id="e1", amount_cents=21_900)
    assert PaymentLedger(ledger).begin(sent, previous=None)
    assert choose_rail(ledger, PaymentMethod.X402_EXACT, POLICY, X402) is PaymentMethod.X402_EXACT
