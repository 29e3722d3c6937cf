"""The ordinary payment of an invoice by x402, and hosted invoices."""

import logging
import traceback

import pytest

from prefect_assay.archive import LocalStore
from prefect_assay.errors import (
    PaymentFailed,
    PaymentOutcomeUnknown,
)
from prefect_assay.orders.job import PaymentState
from prefect_assay.orders.payments import PaymentPolicy, describe_hosted
from prefect_assay.service.models.vocabulary import PaymentMethod
from support.services.pay_server import (
    CANARY_ADDRESS,
    CANARY_KEY,
    NETWORK,
)


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


def test_an_ordinary_settlement_needs_no_remark(world):
    assert world.settle().remark is None


def test_a_later_run_has_the_receipt_of_the_run_that_paid(world):
    first = world.settle()
    again = world.settle()

    assert again.already_paid
    assert again.receipt == first.receipt
    assert first.receipt is not None


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

    payment = describe_hosted(world.api.invoices.get("inv_1"))
    assert payment.state is state
    assert payment.method is PaymentMethod.ASYNC_INVOICE
    assert payment.hosted_invoice_url == f"{world.server.base_url}/pages/inv_1"
    assert payment.already_paid is (status == "paid")
    assert world.server.probes == 0  # nothing of a hosted invoice is asked at the pay path


@pytest.mark.parametrize("status", ["void", "uncollectible"])
def test_a_hosted_invoice_that_cannot_be_paid_any_more_is_a_failure(world, status):
    world.server.status = status

    with pytest.raises(PaymentFailed, match=status):
        describe_hosted(world.api.invoices.get("inv_1"))
    assert world.server.probes == 0
