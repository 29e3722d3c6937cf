"""Of two experiments of one order only the recorded one is confirmed or paid, whatever a slow run still believes."""

import pytest

from prefect_assay.errors import ArchiveError, TransientError
from prefect_assay.orders.billing import BillingStage
from prefect_assay.orders.job import OrderRoute
from prefect_assay.orders.ledger import OrderLedger
from prefect_assay.orders.ledger.log import (
    Confirming,
    Ordered,
    Sending,
    Surplus,
)
from prefect_assay.service.models.vocabulary import PaymentMethod
from prefect_assay.tasks.quote import confirm_quote
from support.archive.memory_store import an_attempt
from support.services.billed_service import BilledService
from support.services.order_service import books


@pytest.fixture
def book(tmp_path):
    """An order whose older experiment, `older`, has come to light after `younger`."""
    book = books(tmp_path).open_order("camp", "0" * 20)
    book.record(lambda _: Ordered(experiment_id="younger"))
    book.record(lambda _: Surplus(experiment_id="younger", kept="older"))
    return book


@pytest.mark.parametrize("confirmed", [False, True])
def test_the_quote_of_a_surplus_experiment_is_not_confirmed(book, confirmed):
    """Also when the order's own quote is confirmed already: that was another experiment's."""
    service = BilledService(
        quote={"status": "open", "amount_total": 21_900, "currency": "usd"}, status="quote_sent"
    )
    if confirmed:
        book.record(lambda _: Confirming(amount_cents=21_900))
    with pytest.raises(TransientError, match="no longer the experiment of the order"):
        confirm_quote.fn(service, "younger", book=book, approved_cents=21_900)
    assert service.confirmed == []
    assert confirm_quote.fn(service, "older", book=book, approved_cents=21_900).stage is BillingStage.INVOICED
    assert service.confirmed == ["older"]


def test_no_payment_begins_for_a_surplus_experiment(book):
    attempt = an_attempt(invoice_id="inv", experiment_id="younger", amount_cents=21_900)
    assert OrderLedger(book).begin(attempt, previous=None) is None
    assert book.read().payment is None
    right = attempt.model_copy(update={"experiment_id": "older"})
    assert OrderLedger(book).begin(right, previous=None).invoice_id == "inv"


def test_a_record_that_contradicts_the_log_is_not_written(book):
    """It could never be read again, and the order would be stuck."""
    before = book.read().count
    late = Sending(attempt=1, route=OrderRoute.QUOTED, rail=PaymentMethod.ASYNC_INVOICE)
    with pytest.raises(ArchiveError, match="contradicts"):
        book.record(lambda _: late)
    assert len(list(book.records())) == before
