"""Payments of many orders that are counted in one budget at once."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from datetime import UTC, datetime, timedelta

from prefect_assay.errors import BudgetExceeded
from prefect_assay.orders.ledger import PaymentLedger
from prefect_assay.orders.payments import RollingCap
from support.archive.memory_store import ledgers_in

NOW = datetime.now(UTC)
SINCE = NOW - timedelta(days=30)


def a_cap(cents, *, at=NOW, days=30, campaign=None):
    """The caps of a payment at a time."""
    return RollingCap(max_cents=cents, since=at - timedelta(days=days), at=at, campaign_cents=campaign)


def claims(store, cap, wanted, name=""):
    """Reserve `(cents, campaign)` each in a thread and by ledgers of its own; the amounts that were let through."""
    barrier = threading.Barrier(len(wanted))

    def claim(number):
        cents, campaign = wanted[number]
        ledger = PaymentLedger(ledgers_in(store).open_order(campaign, f"order-{name}{number}"))
        barrier.wait(20)
        try:
            ledger.reserve(cents, cap)
        except BudgetExceeded:
            return 0
        return cents

    with ThreadPoolExecutor(len(wanted)) as pool:
        futures = [pool.submit(copy_context().run, claim, number) for number in range(len(wanted))]
        return [future.result() for future in futures]
