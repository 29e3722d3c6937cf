"""Of two experiments of one order only the recorded one is confirmed or paid, whatever a slow run still believes."""

import pytest

from prefect_assay.errors import ArchiveError, TransientError
from prefect_assay.orders.billing import BillingStage
from prefect_assay.orders.job import OrderRoute
from prefect_assay.orders.ledger import PaymentLedger
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
from support.services.order_service import ledgers


@pytest.fixture
def ledger(tmp_path):
    """An order whose older experiment, `older`, has come to light after `younger`."""
    ledger = ledgers(tmp_path).open_order("camp", "0" * 20)
    ledger.record(lambda _: Ordered(experiment_id="younger"))
    ledger.record(lambda _: Surplus(experiment_id="younger", kept="older"))
    return ledger


@pytest.mark.parametrize("confirmed", [False, True])
def test_the_quote_of_a_surplus_experiment_is_not_confirmed(ledger, confirmed):
    """Also when the order's own quote is confirmed already: that was another experiment's."""
    service = BilledService(
        quote={"status": "open", "amount_total": 21_900, "currency": "usd"}, status="quote_sent"
    )
    if confirmed:
        ledger.record(lambda _: Confirming(amount_cents=21_900))
    with pytest.raises(TransientError, match="no longer the experiment of the order"):
        confirm_quote.fn(service, "younger", ledger=ledger, approved_cents=21_900)
    assert service.confirmed == []
    assert (
        confirm_quote.fn(service, "older", ledger=ledger, approved_cents=21_900).stage
        is BillingStage.INVOICED
    )
    assert service.confirmed == ["older"]


def test_no_payment_begins_for_a_surplus_experiment(ledger):
    attempt = an_attempt(invoice_id="inv", experiment_id="younger", amount_cents=21_900)
    assert PaymentLedger(ledger).begin(attempt, previous=None) is None
    assert ledger.read().payment is None
    right = attempt.model_copy(update={"experiment_id": "older"})
    assert PaymentLedger(ledger).begin(right, previous=None).invoice_id == "inv"


def test_a_record_that_contradicts_the_log_is_not_written(ledger):
    """It could never be read again, and the order would be stuck."""
    before = ledger.read().count
    late = Sending(attempt=1, route=OrderRoute.QUOTED, rail=PaymentMethod.ASYNC_INVOICE)
    with pytest.raises(ArchiveError, match="contradicts"):
        ledger.record(lambda _: late)
    assert len(list(ledger.records())) == before
