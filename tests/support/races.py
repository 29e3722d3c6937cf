"""Payments that are claimed in a ledger by many at once."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from datetime import UTC, datetime, timedelta

from prefect_assay.errors import BudgetExceeded
from prefect_assay.models.vocabulary import PaymentMethod
from prefect_assay.payments import LedgerEntry
from prefect_assay.payments.ledger import ledger_key

NOW = datetime.now(UTC)
SINCE = NOW - timedelta(days=30)
URL = "https://a.example"


def entry(invoice, cents, campaign=None, **changes):
    return LedgerEntry(
        key=ledger_key(URL, invoice),
        base_url=URL,
        invoice_id=invoice,
        rail=PaymentMethod.X402_EXACT,
        amount_cents=cents,
        nonce="0x01",
        network="eip155:84532",
        asset="0xa",
        pay_to="0xb",
        expires_at=NOW,
        recorded_at=NOW,
        campaign_id=campaign,
        **changes,
    )


def claims(ledger, cap, wanted, name=""):
    """Claim in ten threads at once; the amounts that were let through."""
    barrier = threading.Barrier(len(wanted))

    def claim(number):
        invoice, cents, campaign = f"inv_{name}{number}", *wanted[number]
        barrier.wait(20)
        try:
            return cents if ledger.claim(entry(invoice, cents, campaign), cap=cap) else 0
        except BudgetExceeded:
            return 0

    with ThreadPoolExecutor(len(wanted)) as pool:
        futures = [pool.submit(copy_context().run, claim, number) for number in range(len(wanted))]
        return [future.result() for future in futures]
