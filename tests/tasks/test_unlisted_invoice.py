"""A machine pays what is certainly the order's invoice. Where no call names it, a person pays the hosted page."""

from contextlib import nullcontext

import pytest

from prefect_assay.blocks import SpendingPolicy
from prefect_assay.books import OrderLedger
from prefect_assay.books.log import Accepted, Ordered
from prefect_assay.errors import PayByHand, PaymentsDisabled, UnexpectedAnswer
from prefect_assay.models.billing import ExperimentInvoice
from prefect_assay.models.job import Order
from prefect_assay.models.vocabulary import PaymentMethod
from prefect_assay.tasks.pay import pay_invoice, read_due
from support.archive.memory_store import an_attempt
from support.services.order_service import books

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
    "policy": SpendingPolicy(per_experiment_cents=1, per_campaign_cents=1),
    "wallet": None,
}


class Service:
    """Answers at the list with a page that it did not write."""

    base_url = "https://lab.example"

    def __init__(self, status):
        self.status = status

    def get_client(self):
        return nullcontext(self)

    def find_invoice(self, _experiment_id):
        raise UnexpectedAnswer("no route matched", status_code=self.status)

    def invoice(self, experiment_id):
        return ExperimentInvoice(
            experiment_id=experiment_id, status="open", provider_invoice_url="https://pay.example/1"
        )


@pytest.fixture
def book(tmp_path):
    made = books(tmp_path).order("camp", KEY)
    made.record(lambda _: Ordered(experiment_id="e1"))
    return made


def due(service, book, method=PaymentMethod.X402_EXACT):
    return read_due.fn(service, ORDER, book=book, method=method, **SHARED)


@pytest.mark.parametrize("status", [200, 404, 405])
def test_an_invoice_that_no_call_names_is_paid_by_a_person(book, status):
    with pytest.raises(PayByHand, match=r"A person can pay it: https://pay\.example/1"):
        due(Service(status), book)
    with pytest.raises(PayByHand):
        pay_invoice.fn(
            Service(status), ORDER, book=book, method=PaymentMethod.X402_EXACT, limit_cents=21_900, **SHARED
        )


def test_any_other_page_is_waited_out(book):
    with pytest.raises(UnexpectedAnswer):
        due(Service(502), book)


def test_once_a_payment_was_sent_its_invoice_is_known(book):
    sent = an_attempt(invoice_id="inv", experiment_id="e1", amount_cents=21_900)
    assert OrderLedger(book).begin(sent, previous=None)
    asked = []

    def invoice_by_id(invoice_id):
        asked.append(invoice_id)
        raise UnexpectedAnswer("maintenance", status_code=502)

    service = Service(404)
    service.invoice_by_id = invoice_by_id
    service.pay = lambda _invoice_id: pytest.fail("asked")
    service.invoice = lambda _experiment_id: ExperimentInvoice(status="paid")
    service.experiment = lambda _experiment_id: pytest.fail("a paid invoice is never refused")
    assert due(service, book) is None
    assert asked == ["inv"]


@pytest.mark.parametrize(
    ("answer", "method", "fits"),
    [
        ({"machine": True, "rails": ("x402-exact",)}, PaymentMethod.X402_EXACT, True),
        ({"machine": True}, PaymentMethod.MPP_SPT, True),
        ({}, PaymentMethod.MPP_SPT, True),
        ({"machine": True, "rails": ("x402-exact",)}, PaymentMethod.MPP_SPT, False),
        ({"machine": True, "rails": ("x402-exact",)}, PaymentMethod.ASYNC_INVOICE, False),
        ({"machine": False}, PaymentMethod.X402_EXACT, False),
    ],
)
def test_a_rail_that_was_not_asked_for_is_refused_at_once(book, answer, method, fits):
    book.record(lambda _: Accepted(**answer))
    with pytest.raises(PayByHand if fits else PaymentsDisabled):
        due(Service(404), book, method)
