"""A hosted invoice is committed, whatever was approved: one that bills more counts with what it bills."""

import logging

import pytest

from prefect_assay.orders.ledger.log import Approved, Ordered
from prefect_assay.service.models.billing import Invoice
from prefect_assay.tasks import pay
from support.services.order_service import ledgers


@pytest.fixture
def ledger(tmp_path, monkeypatch):
    monkeypatch.setattr(pay, "get_run_logger", lambda: logging.getLogger("run"))
    made = ledgers(tmp_path).open_order("camp", "0" * 20)
    made.record(lambda _: Approved(amount_cents=50_000, approver="within 1,000.00 USD"))
    made.ledgers.budget.reserve(made.order_key, "camp", 50_000)
    return made


@pytest.mark.parametrize("campaign_id", ["camp", "EGFR-1"])
def test_what_was_accepted_on_the_page_of_its_quote_counts(tmp_path, campaign_id):
    """Also in the log that a listing of all orders gives, whose folder has another spelling of the campaign's id."""
    ledger = ledgers(tmp_path).open_order(campaign_id, "0" * 20)
    ledger.record(lambda _: Ordered(experiment_id="exp_1"))
    ledger.ledgers.budget.reserve(ledger.order_key, campaign_id, 0)
    for log in (ledger, *ledger.ledgers.list_orders()):
        pay._reserve_billed(log, Invoice(id="inv_1", status="open", amount=90_000))
    pay._reserve_billed(log, Invoice(id="inv_1", status="open", amount=95_000))
    assert ledger.ledgers.budget.read().campaign_cents(campaign_id) == 95_000


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
def test_what_is_billed_above_the_approval_counts(ledger, caplog, status, amount, counted):
    pay._reserve_billed(ledger, Invoice(id="inv_1", status=status, amount=amount))
    assert ledger.ledgers.budget.read().campaign_cents("camp") == counted
    warnings = ["Invoice inv_1 bills 4,900.00 USD, and 500.00 USD was approved: ask the laboratory why"]
    assert [record.getMessage() for record in caplog.records] == (warnings if counted > 50_000 else [])
