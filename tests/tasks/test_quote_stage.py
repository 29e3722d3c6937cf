"""Where an order stands, from what the service answers (contract 2.6, 2.7, 3, 4.2)."""

from datetime import UTC, datetime, timedelta

import pytest

from prefect_assay.orders.billing import BillingStage, read_billing
from support.services.billed_service import NOW, BilledService


def stage(**answers):
    return read_billing(BilledService(**answers), "e-1", NOW).stage


@pytest.mark.parametrize(
    ("quote", "expected"),
    [
        ("draft", BillingStage.QUOTE_PENDING),
        ("open", BillingStage.QUOTE_OPEN),
        ("pending", BillingStage.QUOTE_OPEN),
        ("accepted", BillingStage.INVOICED),
        ("rejected", BillingStage.QUOTE_REJECTED),
        ("canceled", BillingStage.QUOTE_REJECTED),
        ("expired", BillingStage.QUOTE_EXPIRED),
        ("stale", BillingStage.QUOTE_EXPIRED),
        ("Expired", BillingStage.QUOTE_EXPIRED),
        ("InNegotiation", BillingStage.QUOTE_PENDING),
    ],
)
def test_both_quote_vocabularies(quote, expected):
    assert stage(quote={"status": quote}) is expected


def test_an_open_quote_whose_validity_has_passed_is_expired():
    late = {"status": "open", "expires_at": (NOW - timedelta(seconds=1)).isoformat()}
    assert stage(quote=late) is BillingStage.QUOTE_EXPIRED


@pytest.mark.parametrize("invoice", ["draft", "open", "paid", "uncollectible", "frozen", None])
def test_an_invoice_decides_whatever_the_quote_says(invoice):
    assert stage(invoice=invoice, quote={"status": "rejected"}) is BillingStage.INVOICED


@pytest.mark.parametrize(
    ("quote", "expected"),
    [
        (None, BillingStage.QUOTE_PENDING),
        ("open", BillingStage.QUOTE_OPEN),
        ("accepted", BillingStage.INVOICED),
        ("rejected", BillingStage.QUOTE_REJECTED),
        ("stale", BillingStage.QUOTE_EXPIRED),
    ],
)
@pytest.mark.parametrize("word", ["void", "Void"])
def test_a_void_invoice_leaves_the_decision_to_the_quote(word, quote, expected):
    # contract 4.2, create rule 5: the invoice of a failed order is void, and the request can be tried again
    assert stage(invoice=word, quote=quote and {"status": quote}) is expected


def test_a_void_invoice_does_not_hide_a_cancellation():
    for quote in ("open", "accepted"):
        assert stage(invoice="void", quote={"status": quote}, status="canceled") is BillingStage.CANCELED
    assert stage(invoice="open", quote={"status": "accepted"}, status="canceled") is BillingStage.INVOICED


def test_without_a_quote_the_status_decides():
    assert stage() is BillingStage.QUOTE_PENDING
    assert stage(status="draft") is BillingStage.NOT_SUBMITTED
    assert stage(status="canceled", quote={"status": "open"}) is BillingStage.CANCELED


@pytest.mark.parametrize("ahead", [timedelta(days=-400), timedelta(days=400)])
def test_a_quote_expires_by_the_services_clock_whatever_this_machines_says(ahead):
    service = BilledService(quote={"status": "open", "expires_at": datetime.now(UTC) + ahead})
    service.service_time = datetime.now(UTC) + ahead - timedelta(hours=1)
    assert read_billing(service, "e-1").stage is BillingStage.QUOTE_OPEN
    service.service_time += timedelta(hours=2)
    assert read_billing(service, "e-1").stage is BillingStage.QUOTE_EXPIRED
