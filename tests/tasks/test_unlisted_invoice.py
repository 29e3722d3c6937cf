"""A machine pays what the service lists. Where there may be no list, the run ends with the portal's address; nothing is paid."""

from contextlib import nullcontext

import pytest

from prefect_assay.books import OrderLedger
from prefect_assay.books.log import Ordered
from prefect_assay.errors import PaymentFailed, UnexpectedAnswer
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


class Service:
    """Answers at the list with a page that it did not write."""

    service_time = None  # its answers have no date

    def __init__(self, status):
        self.status = status

    def get_client(self):
        return nullcontext(self)

    def find_invoice(self, _experiment_id):
        raise UnexpectedAnswer("no route matched", status_code=self.status)


@pytest.fixture
def book(tmp_path):
    made = books(tmp_path).order("camp", KEY)
    made.record(lambda _: Ordered(experiment_id="e1"))
    return made


@pytest.mark.parametrize("status", [404, 405])
def test_an_invoice_does_not_wait_for_a_list_that_may_not_be_there(book, status):
    with pytest.raises(
        PaymentFailed, match=r"does not list; open it in the portal: https://portal\.example/e1"
    ):
        read_due.fn(Service(status), ORDER, book=book)
    with pytest.raises(PaymentFailed, match="does not list"):
        pay_invoice.fn(
            Service(status),
            ORDER,
            book=book,
            policy=None,
            wallet=None,
            method=PaymentMethod.X402_EXACT,
            limit_cents=21_900,
        )


def test_any_other_page_is_waited_out(book):
    with pytest.raises(UnexpectedAnswer):
        read_due.fn(Service(200), ORDER, book=book)


def test_once_a_payment_was_sent_the_list_is_there(book):
    sent = an_attempt(invoice_id="inv", experiment_id="e1", amount_cents=21_900)
    assert OrderLedger(book).begin(sent, previous=None)
    with pytest.raises(UnexpectedAnswer):
        read_due.fn(Service(404), ORDER, book=book)
