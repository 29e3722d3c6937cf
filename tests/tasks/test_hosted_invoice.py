"""A hosted invoice is committed, whatever was approved: one that bills more counts with what it bills."""

import logging

import pytest

from prefect_assay.orders.ledger.log import Approved
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


def test_what_was_accepted_on_the_page_of_its_quote_counts(tmp_path):
    ledger = ledgers(tmp_path).open_order("camp", "0" * 20)
    ledger.ledgers.budget.reserve(ledger.order_key, "camp", 0)
    pay._reserve_billed(ledger, Invoice(id="inv_1", status="open", amount=90_000))
    assert ledger.ledgers.budget.read().campaign_cents("camp") == 90_000


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
