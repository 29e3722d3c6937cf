"""Paying an invoice once by machine: `settle` reads, asks the guard, records and sends (docs/ordering.md).

Knows neither Prefect nor where its record is kept. What differs between rails is in `rails`, a module for each.
"""

from prefect_assay.orders.payments.guard import PaymentPolicy, check_ready
from prefect_assay.orders.payments.interfaces import (
    Ledger,
    LedgerEntry,
    PaymentAttempt,
    RollingCap,
)
from prefect_assay.orders.payments.rails import RAILS, Rail, can_pay_again, get_rail_kind, name_rail
from prefect_assay.orders.payments.reconciliation import describe_hosted
from prefect_assay.orders.payments.settle import settle
from prefect_assay.service.models.billing import PayAnswer

__all__ = [
    "RAILS",
    "Ledger",
    "LedgerEntry",
    "PayAnswer",
    "PaymentAttempt",
    "PaymentPolicy",
    "Rail",
    "RollingCap",
    "can_pay_again",
    "check_ready",
    "describe_hosted",
    "get_rail_kind",
    "name_rail",
    "settle",
]
