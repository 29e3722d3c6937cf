"""What an order with an invoice counts in a campaign's budget, also where the service lists no invoices."""

from contextlib import nullcontext
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from prefect_assay.errors import NotReady, UnexpectedAnswer
from prefect_assay.models.billing import ExperimentInvoice, Invoice, Quote
from prefect_assay.models.experiment import Experiment
from prefect_assay.models.vocabulary import InvoiceStatus
from prefect_assay.payments import hosted
from prefect_assay.payments.reconciliation import read_invoice, read_payment_status
from prefect_assay.tasks import estimate
from support.archive.memory_store import a_book

INVOICED = {"type": "invoiced", "amount_cents": 21_900, "currency": "usd", "status": "open"}
COSTS = {
    "invoiced": (INVOICED, 21_900),
    "free": (INVOICED | {"amount_cents": 0}, 0),
    "quoted": (INVOICED | {"type": "quoted"}, None),
    "euro": (INVOICED | {"currency": "eur"}, None),
    "text": (INVOICED | {"amount_cents": "219.00"}, None),
    "negative": (INVOICED | {"amount_cents": -1}, None),
    "absent": (None, None),
}


class Service:
    """An experiment with an invoice, which a list has only if it is given."""

    service_time = None  # its answers have no date

    def __init__(self, costs=None, *, status="open", listed=None):
        self.costs, self.status, self.listed, self.probes = costs, status, listed, []

    def find_invoice(self, _experiment_id):
        return self.listed

    def invoice(self, experiment_id):
        if self.status is None:
            raise NotReady("not available")
        return ExperimentInvoice(experiment_id=experiment_id, status=self.status)

    def quote(self, _experiment_id):
        return Quote(status="accepted")

    def experiment(self, experiment_id):
        return Experiment(
            id=experiment_id,
            code="LAB-1",
            status="quote_sent",
            created_at=datetime.now(UTC),
            costs=self.costs,
        )

    def pay(self, invoice_id):
        self.probes.append(invoice_id)
        return SimpleNamespace(status_code=402)


@pytest.fixture
def book():
    made = a_book()
    made.books.budget.reserve("k", "c", 50_000)
    return made


@pytest.fixture
def price(book, monkeypatch):
    """The price of the order as the campaign reads it."""
    monkeypatch.setattr(estimate, "find_order", lambda *_: SimpleNamespace(experiment_id="exp_1"))
    return lambda service: estimate.open_price.fn(
        SimpleNamespace(get_client=lambda: nullcontext(service)), SimpleNamespace(spec=None), book=book
    )


@pytest.mark.parametrize("case", COSTS)
def test_an_order_whose_invoice_is_not_listed_counts(price, case):
    costs, billed = COSTS[case]
    found = price(Service(costs))
    assert (found.committed, found.total_cents) == (True, 50_000 if billed is None else billed)


def test_an_order_whose_invoice_is_not_made_yet_counts_as_reserved(price):
    assert price(Service(INVOICED, status=None)).total_cents == 50_000


def test_a_listed_invoice_counts_with_its_amount(price):
    assert price(Service(listed=Invoice(id="inv_1", amount=30_000))).total_cents == 30_000


def test_a_payment_is_seen_also_where_invoices_are_not_listed():
    assert read_payment_status(Service(INVOICED, status="paid"), None, "exp_1").paid
    assert read_payment_status(Service(status=None), None, "exp_1").invoice is None


def test_an_invoice_without_an_id_is_not_probed():
    service = Service(INVOICED)
    payment = hosted(read_invoice(service, "exp_1"))
    assert (payment.invoice_id, payment.amount_cents) == ("of LAB-1", 21_900)
    assert service.probes == []
    assert read_invoice(service, "exp_1").status is InvoiceStatus.OPEN


@pytest.mark.parametrize("status", [200, 404, 405])
def test_a_page_of_a_stranger_at_the_list_holds_no_result_back(monkeypatch, status):
    def stranger(_experiment_id):
        raise UnexpectedAnswer("a page", status_code=status)

    service = Service(INVOICED)
    monkeypatch.setattr(service, "find_invoice", stranger)
    assert read_invoice(service, "exp_1").amount == 21_900


def test_any_other_page_is_an_error(monkeypatch):
    def maintenance(_experiment_id):
        raise UnexpectedAnswer("a page", status_code=502)

    service = Service(INVOICED)
    monkeypatch.setattr(service, "find_invoice", maintenance)
    with pytest.raises(UnexpectedAnswer):
        read_invoice(service, "exp_1")
