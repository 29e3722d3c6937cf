"""A hosted invoice is committed, whatever was approved, and paid by a person: what a run reads of it goes to the order's log."""

import logging

import pytest

from prefect_assay.books.log import Approved, Ordered
from prefect_assay.errors import TransientError
from prefect_assay.models.billing import Invoice
from prefect_assay.models.job import Order
from prefect_assay.tasks import pay
from support.services.billed_service import BilledService
from support.services.order_service import books


def a_service(**invoices):
    """An experiment with invoices of these statuses, by their ids; the list has the first."""
    found = {
        name: Invoice(id=name, experiment_id="e-1", status=status, amount=21_900)
        for name, status in invoices.items()
    }
    service = BilledService(status="in_queue", listed=next(iter(found.values())))
    service.invoice_by_id = found.__getitem__
    return service


@pytest.fixture
def book(tmp_path, monkeypatch):
    monkeypatch.setattr(pay, "get_run_logger", lambda: logging.getLogger("run"))
    made = books(tmp_path).order("camp", "0" * 20)
    made.record(lambda _: Approved(amount_cents=50_000, approver="within 1,000.00 USD"))
    made.books.budget.reserve(made.order_key, "camp", 50_000)
    return made


def read(book, service, *, experiment="e-1", invoice=None):
    book.record(lambda _: Ordered(experiment_id="e-1", invoice_id=invoice))
    order = Order(order_key=book.order_key, experiment_id=experiment, status="in_queue", adopted=True)
    return pay.pay_invoice.fn(
        service, order, book=book, policy=None, wallet=None, method="async_invoice", limit_cents=0
    )


def test_what_a_person_has_paid_goes_to_the_log(book):
    assert read(book, a_service(inv_1="paid")).state == "settled"
    settled = book.read().settled
    assert (settled.invoice_id, settled.amount_cents) == ("inv_1", 21_900)


@pytest.mark.parametrize("status", ["open", "draft"])
def test_an_unpaid_one_is_known_to_the_log_and_not_paid(book, status):
    assert read(book, a_service(inv_1=status)).state == "intended"
    assert (book.read().invoiced.invoice_id, book.read().settled) == ("inv_1", None)


def test_a_void_one_gives_way_to_the_one_issued_in_its_place(book):
    assert read(book, a_service(inv_1="paid", inv_0="void"), invoice="inv_0").invoice_id == "inv_1"
    assert book.read().settled.invoice_id == "inv_1"


def test_a_void_one_alone_is_reported_and_the_wait_goes_on(book, caplog):
    assert read(book, a_service(inv_1="void")).state == "failed"
    assert "ask the laboratory" in caplog.text


def test_a_payment_of_another_experiment_of_the_order_is_not_recorded(book):
    with pytest.raises(TransientError, match="no longer the experiment of the order"):
        read(book, a_service(inv_1="paid"), experiment="e-2")
    assert book.read().settled is None


@pytest.mark.parametrize(
    ("status", "amount", "counted"),
    [
        ("open", 490_000, 490_000),
        ("paid", 490_000, 490_000),
        ("open", 50_000, 50_000),
        ("open", None, 50_000),
        ("void", 490_000, 50_000),
    ],
)
def test_what_is_billed_above_the_approval_counts(book, caplog, status, amount, counted):
    pay._count(book, Invoice(id="inv_1", status=status, amount=amount))
    assert book.books.budget.read().campaign_cents("camp") == counted
    said = ["Invoice inv_1 bills 4,900.00 USD, and 500.00 USD was approved: ask the laboratory why"]
    assert [record.getMessage() for record in caplog.records] == (said if counted > 50_000 else [])
