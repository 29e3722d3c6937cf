"""Paying an invoice once by machine: `settle` reads, asks the guard, records and sends (docs/paying.md).

Knows neither Prefect nor where its record is kept. Only `issuer` uses the client, for its HTTP helpers.
"""

from prefect_assay.orders.payments.guard import PaymentPolicy, check_ready
from prefect_assay.orders.payments.interfaces import (
    Ledger,
    LedgerEntry,
    PaymentAttempt,
    RollingCap,
)
from prefect_assay.orders.payments.rails import (
    MppRail,
    Rail,
    TokenIssuer,
    TokenLimits,
    X402Rail,
    rail_for,
)
from prefect_assay.orders.payments.reconciliation import hosted
from prefect_assay.orders.payments.settle import settle
from prefect_assay.service.models.billing import PayAnswer

__all__ = [
    "Ledger",
    "LedgerEntry",
    "MppRail",
    "PayAnswer",
    "PaymentAttempt",
    "PaymentPolicy",
    "Rail",
    "RollingCap",
    "TokenIssuer",
    "TokenLimits",
    "X402Rail",
    "check_ready",
    "hosted",
    "rail_for",
    "settle",
]
