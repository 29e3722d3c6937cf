"""Against the lab's own process: a gateway that scales amounts, invoices read as paid once, archives of older backups."""

import json
import shutil

import httpx
import pytest

from lab_support.core import spec
from prefect_assay.errors import (
    PaymentFailed,
    PaymentOutcomeUnknown,
    PaymentRefused,
    TransientError,
    UnexpectedAnswer,
)
from prefect_assay.orders.ledger import OrderLedger
from prefect_assay.orders.payments import settle
from prefect_assay.service.client import AssayClient
from prefect_assay.service.models.spec import ExperimentSpec
from support.archive.memory_store import a_book
from support.lab.orders import booked

from .test_payments_lab import Payer


class Gateway(httpx.BaseTransport):
    """Passes everything on, and changes the JSON of some answers."""

    def __init__(self, path, change):
        self.inner = httpx.HTTPTransport()
        self.path, self.change = path, change

    def handle_request(self, request):
        answer = self.inner.handle_request(request)
        answer.read()
        if self.path not in request.url.path or not answer.is_success:
            return answer
        headers = {k: v for k, v in answer.headers.items() if k not in {"content-length", "content-encoding"}}
        content = json.dumps(self.change(json.loads(answer.content))).encode()
        return httpx.Response(answer.status_code, headers=headers, content=content)


def through(lab, path, change):
    return AssayClient(lab.base_url, lab.token, transport=Gateway(path, change), retries=0)


def pay(payer, client, approved):
    experiment_id = client.invoices.get(payer.invoice_id).experiment_id
    return settle(
        client.invoices,
        payer.invoice_id,
        payer.rail,
        payer.policy,
        OrderLedger(a_book(payer.store, experiment=experiment_id)),
        expected_cents=approved,
        experiment_id=experiment_id,
        sleep=lambda _: None,
    )


@pytest.fixture(params=["x402-exact", "mpp-spt"])
def payer(request, lab, tmp_path):
    return Payer(lab, request.param, tmp_path)


def approved_cents(payer):
    with through(payer.lab, "-", lambda body: body) as client:
        return client.invoices.get(payer.invoice_id).amount


CHANGES = [
    lambda body: {**body, "amount": body["amount"] // 100},
    lambda body: {**body, "amount": body["amount"] * 100},
    lambda body: {**body, "amount": body["amount"] - 1},
    lambda body: {**body, "amount": str(body["amount"])},
    lambda body: {**body, "amount_cents": body["amount"] // 100},
    lambda body: {**body, "currency": "eur"},
    lambda body: {**body, "currency": {"code": "usd"}},
    lambda body: {**body, "currency": ["usd"]},
]


@pytest.mark.parametrize("change", CHANGES)
def test_an_invoice_that_differs_from_its_approval_or_cannot_be_read_is_not_paid(payer, change):
    approved = approved_cents(payer)
    with (
        through(payer.lab, f"/invoices/{payer.invoice_id}", change) as client,
        pytest.raises((PaymentRefused, PaymentFailed)),
    ):
        pay(payer, client, approved)
    assert booked(payer.lab, payer.invoice_id) == []
    assert payer.tokens == 0
    with through(payer.lab, "-", lambda body: body) as client:
        assert pay(payer, client, approved).amount_cents == approved


def test_a_challenge_of_one_percent_of_the_approved_price_is_not_paid(payer):
    """The invoice's own amount is scaled as well, so that challenge and invoice agree with each other."""
    approved = approved_cents(payer)
    with pytest.raises(PaymentRefused, match="was approved"):
        pay_scaled(payer, approved * 100)
    assert booked(payer.lab, payer.invoice_id) == []


def pay_scaled(payer, approved):
    with through(payer.lab, "-", lambda body: body) as client:
        return pay(payer, client, approved)


def test_an_invoice_that_reads_as_paid_once_is_not_recorded_as_paid(payer):
    seen = []

    def once(body):
        seen.append(1)
        return {**body, "status": "paid"} if len(seen) == 2 else body  # the first reading is the test's own

    with (
        through(payer.lab, f"/invoices/{payer.invoice_id}", once) as client,
        pytest.raises(TransientError, match="read as paid, and a second later it reads as open"),
    ):
        pay(payer, client, approved_cents(payer))
    assert a_book(payer.store, experiment=None).read().settled is None
    assert payer.settle().already_paid is False, "it is paid now, once"
    assert len(booked(payer.lab, payer.invoice_id)) == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda whole: {**whole, "total_cents": whole["total_cents"] // 100},
        lambda whole: {**whole, "total_cents": whole["total_cents"] + 1},
        lambda whole: {**whole, "assay": {**whole["assay"], "subtotal_cents": 1}},
    ],
)
def test_an_estimate_that_is_not_the_sum_of_its_parts_is_refused(lab, change):
    asked = ExperimentSpec.model_validate(spec())
    with (
        through(
            lab, "/cost-estimate", lambda body: {**body, "breakdown": change(body["breakdown"])}
        ) as client,
        pytest.raises(UnexpectedAnswer, match="add up to"),
    ):
        client.experiments.estimate_cost(asked)
    with through(lab, "/cost-estimate", lambda body: body) as client:
        assert client.experiments.estimate_cost(asked).total_cents > 0


def test_an_order_restored_from_an_older_backup_never_gets_a_second_token(lab, tmp_path):
    """Played: with the log's tail gone, `mpp-spt` issued a second token in 2 of 3 tries."""
    payer = Payer(lab, "mpp-spt", tmp_path / "archive")
    with through(lab, "-", lambda body: body) as client:
        invoice = client.invoices.get(payer.invoice_id)
    a_book(payer.store, experiment=invoice.experiment_id)
    (order,) = (tmp_path / "archive").glob("**/k")
    shutil.copytree(order, tmp_path / "backup")
    lab.fault("status", payer.pay_path, "POST", status=503, after=1)
    with pytest.raises(PaymentOutcomeUnknown):
        payer.settle()
    assert payer.tokens == 1
    shutil.rmtree(order)
    shutil.copytree(tmp_path / "backup", order)
    for _ in range(3):
        with pytest.raises(PaymentOutcomeUnknown, match="lost records that its budget knows"):
            payer.settle()
    assert payer.tokens == 1
    assert booked(lab, payer.invoice_id) == []
