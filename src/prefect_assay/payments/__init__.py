"""Paying invoices by machine: rails, the guard, the ledger and the one way through them, `settle`.

Knows neither Prefect nor the client; it talks to the two calls of `PayApi`. See docs/paying.md.
"""

from prefect_assay.payments.api import PayAnswer, PayApi
from prefect_assay.payments.guard import PaymentPolicy, check_ready
from prefect_assay.payments.ledger import Ledger, LedgerEntry, PaymentAttempt, RollingCap
from prefect_assay.payments.rails.mpp import MppRail, TokenIssuer, TokenLimits
from prefect_assay.payments.rails.registry import Rail, rail_for
from prefect_assay.payments.rails.x402 import X402Rail
from prefect_assay.payments.reconciliation import hosted
from prefect_assay.payments.settle import settle

__all__ = [
    "Ledger",
    "LedgerEntry",
    "MppRail",
    "PayAnswer",
    "PayApi",
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
