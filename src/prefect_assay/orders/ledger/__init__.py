"""The ledger: an append-only log of orders and payments in the archive (docs/ordering.md).

Shared by processes, machines and Prefect servers without a lock: the store's conditional write gives each record
number to one writer. Knows neither Prefect nor the client.
"""

from prefect_assay.orders.ledger.budget import Budget
from prefect_assay.orders.ledger.check import check_campaigns, check_orders
from prefect_assay.orders.ledger.order_ledger import (
    Ledgers,
    OrderLedger,
    PaymentLedger,
    known_archive_id,
)
from prefect_assay.orders.ledger.state import OrderState

__all__ = [
    "Budget",
    "Ledgers",
    "OrderLedger",
    "OrderState",
    "PaymentLedger",
    "check_campaigns",
    "check_orders",
    "known_archive_id",
]
