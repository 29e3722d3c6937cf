"""Payments of many orders that are counted in one budget at once."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from datetime import UTC, datetime, timedelta

from prefect_assay.errors import BudgetExceeded
from prefect_assay.orders.ledger import PaymentLedger
from prefect_assay.orders.payments.interfaces import RollingCap
from support.archive.memory_store import ledgers_in

NOW = datetime.now(UTC)
SINCE = NOW - timedelta(days=30)


def a_cap(cents, *, now=NOW, days=30, campaign=None):
    """The caps of a payment at a time."""
    return RollingCap(max_cents=cents, since=now - timedelta(days=days), at=now, campaign_cents=campaign)


def claims(store, cap, reservations, name=""):
    """Reserve `(cents, campaign)` each in a thread and by ledgers of its own; the amounts that were let through."""
    barrier = threading.Barrier(len(reservations))

    def claim(number):
        cents, campaign = reservations[number]
        ledger = PaymentLedger(ledgers_in(store).open_order(campaign, f"order-{name}{number}"))
        barrier.wait(20)
        try:
            ledger.reserve(cents, cap)
        except BudgetExceeded:
            return 0
        return cents

    with ThreadPoolExecutor(len(reservations)) as pool:
        futures = [pool.submit(copy_context().run, claim, number) for number in range(len(reservations))]
        return [future.result() for future in futures]
