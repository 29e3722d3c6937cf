"""What an order with an invoice counts in a campaign's budget, also where the service lists no invoices."""

from types import SimpleNamespace

import pytest

from prefect_assay.errors import ServiceUnavailable, UnexpectedAnswer
from prefect_assay.orders.payments.reconciliation import describe_hosted, read_invoice, read_payment_status
from prefect_assay.service.models.vocabulary import InvoiceStatus
from prefect_assay.tasks import estimate
from support.archive.memory_store import make_ledger
from support.services.billed_service import NONE_YET, BilledService

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


def a_service(costs=None, invoice="open", **answers):
    return BilledService(
        costs=costs, invoice=invoice, quote={"status": "accepted"}, status="quote_sent", **answers
    )


@pytest.fixture
def ledger():
    made = make_ledger()
    made.ledgers.budget.reserve("k", "c", 50_000)
    return made


@pytest.fixture
def price(ledger, monkeypatch):
    """The price of the order as the campaign reads it."""
    monkeypatch.setattr(estimate, "find_order", lambda *_: SimpleNamespace(experiment_id="exp_1"))
    return lambda service: estimate.read_price.fn(service, SimpleNamespace(spec=None), ledger=ledger)


@pytest.mark.parametrize("case", COSTS)
def test_an_order_whose_invoice_is_not_listed_counts(price, case):
    costs, billed = COSTS[case]
    cost = price(a_service(costs))
    assert (cost.committed, cost.total_cents) == (True, 50_000 if billed is None else billed)


def test_an_order_whose_invoice_is_not_made_yet_counts_as_reserved(price):
    assert price(a_service(INVOICED, NONE_YET)).total_cents == 50_000


def test_a_listed_invoice_counts_with_its_amount(price):
    assert (
        price(a_service(listed={"id": "inv_1", "amount": 30_000, "experiment_id": "exp_1"})).total_cents
        == 30_000
    )


def test_a_payment_is_seen_also_where_invoices_are_not_listed():
    assert read_payment_status(a_service(INVOICED, "paid"), None, "exp_1").paid
    assert read_payment_status(a_service(invoice=NONE_YET), None, "exp_1").invoice is None


def test_an_invoice_without_an_id_is_not_probed():
    service = a_service(INVOICED)
    service.invoices.pay = lambda _invoice_id: pytest.fail("probed")
    payment = describe_hosted(read_invoice(service, "exp_1"))
    assert (payment.invoice_id, payment.amount_cents) == ("of LAB-1", 21_900)
    assert read_invoice(service, "exp_1").status is InvoiceStatus.OPEN


@pytest.mark.parametrize("status", [200, 404, 405])
def test_a_page_of_a_stranger_at_the_list_holds_no_result_back(status):
    service = a_service(INVOICED, listed=UnexpectedAnswer("a page", status_code=status))
    assert read_invoice(service, "exp_1").amount == 21_900


def test_any_other_page_is_an_error():
    with pytest.raises(ServiceUnavailable):
        read_invoice(a_service(INVOICED, listed=UnexpectedAnswer("a page", status_code=502)), "exp_1")
