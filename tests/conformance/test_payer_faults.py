"""The payer against broken answers to a payment, R3 to R9 of `x402-conformance`. The lab's settlements are the judge.

Each must neither be taken for a payment nor be paid a second time, whether the payment arrived before it or not. The suite's rules for
clients (C1 to C3) are in `tests/orders/payments/test_settle.py` and `test_payments_x402.py`.
"""

import base64
import json

import httpx
import pytest
from pydantic import SecretStr

from assay_lab.testing import LocalLab
from prefect_assay.archive import LocalStore
from prefect_assay.errors import PaymentOutcomeUnknown
from prefect_assay.orders.job import PaymentState
from prefect_assay.orders.ledger import PaymentLedger
from prefect_assay.orders.payments import PaymentPolicy, settle
from prefect_assay.orders.payments.rails.x402 import X402Limits, X402Rail
from prefect_assay.service.client import AssayClient
from support.archive.memory_store import make_ledger
from support.lab.orders import booked, open_invoice

SUCCESS = {"success": True, "transaction": "0x" + "ab" * 32, "network": "eip155:84532"}
PAGE = b"<html><body>Service temporarily unavailable</body></html>"


def encoded(content):
    return base64.b64encode(json.dumps(content).encode()).decode()


def of_settlement(reason):
    settlement = {"success": False, "errorReason": reason, "transaction": SUCCESS["transaction"]}
    return lambda _: httpx.Response(402, json={}, headers={"PAYMENT-RESPONSE": encoded(settlement)})


def no_answer(_):
    raise httpx.ReadTimeout("no answer")


def cut(answer):
    return httpx.Response(200, content=(answer.content if answer else b'{"already_paid": fal')[:-4])


BROKEN = {
    "R3 no answer": no_answer,
    "R4 a page with 502": lambda _: httpx.Response(502, content=PAGE),
    "R5 503 with a body of success": lambda _: httpx.Response(
        503, json=SUCCESS, headers={"PAYMENT-RESPONSE": encoded(SUCCESS)}
    ),
    "R6 a page with 200": lambda _: httpx.Response(200, content=PAGE),
    "R7 cut": cut,
    "R8 pending": of_settlement("settlement_pending"),
    "C1 a 402 without a word": lambda _: httpx.Response(402, json={}),
    "R9 a failed transaction": of_settlement("invalid_transaction_state"),
    "200 that claims a settlement": lambda _: httpx.Response(
        200, json={"status": "paid"}, headers={"PAYMENT-RESPONSE": encoded(SUCCESS)}
    ),
}


class Line(httpx.BaseTransport):
    """The network to the lab. `broken` answers payments; `arrives` says whether they get there first."""

    def __init__(self, broken=None, *, arrives=True):
        self.network, self.broken, self.arrives = httpx.HTTPTransport(), broken, arrives
        self.signed = []

    def handle_request(self, request):
        if "payment-signature" not in request.headers:
            return self.network.handle_request(request)
        self.signed.append(request.headers["payment-signature"])
        answer = self.network.handle_request(request) if self.arrives else None
        if answer is not None:
            answer.read()
        return self.broken(answer) if self.broken else answer


@pytest.fixture(scope="module")
def lab():
    with LocalLab() as running:
        yield running


class Payer:
    def __init__(self, lab, folder):
        self.lab, self.store = lab, LocalStore(folder)
        self.invoice_id = open_invoice(lab, "x402-exact")
        offer = lab.rail("x402-exact")
        self.limits = X402Limits(
            networks=(offer["network"],), assets=(offer["asset"],), pay_to=(offer["pay_to"],)
        )
        self.policy = PaymentPolicy(
            enabled=True,
            max_cents_per_payment=10_000_000,
            max_cents_rolling=10_000_000,
            allowed_origins=(lab.base_url,),
        )

    def settle(self, line):
        with AssayClient(self.lab.base_url, self.lab.token, transport=line) as client:
            invoice = client.invoices.get(self.invoice_id)
            ledger = PaymentLedger(make_ledger(self.store, experiment=invoice.experiment_id))
            return settle(
                client.invoices,
                self.invoice_id,
                X402Rail(SecretStr("0x" + "22" * 32), self.limits),
                self.policy,
                ledger,
                expected_cents=invoice.amount,
                experiment_id=invoice.experiment_id,
                sleep=lambda _: None,
            )

    def booked(self):
        return booked(self.lab, self.invoice_id)


@pytest.fixture
def payer(lab, tmp_path):
    return Payer(lab, tmp_path)


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN.keys())
def test_a_payment_that_arrived_is_found_whatever_the_answer(payer, broken):
    line = Line(broken)
    assert payer.settle(line).state is PaymentState.SETTLED
    assert len(line.signed) == len(payer.booked()) == 1
    assert payer.settle(line).already_paid
    assert len(line.signed) == len(payer.booked()) == 1


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN.keys())
def test_a_payment_that_did_not_arrive_is_never_taken_for_one_and_settles_once_later(payer, broken):
    lost = Line(broken, arrives=False)
    with pytest.raises(PaymentOutcomeUnknown):
        payer.settle(lost)
    assert len(lost.signed) == 1
    assert payer.booked() == []
    later = Line()
    assert payer.settle(later).state is PaymentState.SETTLED
    assert len(payer.booked()) == 1

    def nonce(header):
        return json.loads(base64.b64decode(header))["payload"]["authorization"]["nonce"]

    assert {nonce(header) for header in lost.signed + later.signed} == {nonce(lost.signed[0])}
