"""A running service, a wallet and an unpaid order, for tests of paying by x402."""

from contextlib import contextmanager
from datetime import timedelta
from types import SimpleNamespace

from pydantic import SecretStr

from prefect_assay.orders.ledger import OrderLedger
from prefect_assay.orders.payments import PaymentPolicy, settle
from prefect_assay.orders.payments.rails.x402 import X402Limits, X402Rail
from prefect_assay.orders.payments.settle import utc_now
from support.archive.memory_store import MemoryStore, a_book, spent_cents
from support.services.pay_server import (
    CANARY_KEY,
    NETWORK,
    RECEIVER,
    USDC,
    PayServer,
    pay_client,
    running,
)

LIMITS = X402Limits(networks=(NETWORK,), assets=(USDC,), pay_to=(RECEIVER,))
RAIL = X402Rail(SecretStr(CANARY_KEY), LIMITS)
OTHER_RAIL = X402Rail(SecretStr("0x" + "11" * 32), LIMITS)


def without_signing(credential):
    """The canary's rail with something else in place of its signature."""
    return SimpleNamespace(
        method=RAIL.method,
        payer=RAIL.payer,
        is_repeatable=RAIL.is_repeatable,
        make_nonce=RAIL.make_nonce,
        read_offers=RAIL.read_offers,
        find_problems=RAIL.find_problems,
        read_settlement=RAIL.read_settlement,
        make_credential=credential,
    )


def interrupt(*_, **__):
    raise KeyboardInterrupt


class World:
    """A running service, a wallet and an order that is not paid. Each payment is another run's, with a log of its own."""

    def __init__(self, server, api):
        self.server = server
        self.api = api
        self.rail = RAIL
        self.store = MemoryStore()
        self.ledger = None
        self.slept = []
        self.policy = PaymentPolicy(
            enabled=True,
            max_cents_per_payment=10_000,
            max_cents_rolling=20_000,
            allowed_origins=(server.base_url,),
        )

    def settle(self, invoice_id="inv_1", **changes):
        arguments = {
            "expected_cents": 5000,
            "experiment_id": "exp_1",
            "sleep": self.slept.append,
            **changes,
        }
        self.server.now = arguments.get("now", utc_now)  # time passes for both
        ledger = self.ledger or self.another_run()
        return settle(self.api.invoices, invoice_id, self.rail, self.policy, ledger, **arguments)

    def book(self):
        return a_book(self.store)

    def another_run(self):
        return OrderLedger(self.book())

    def entry(self):
        return self.another_run().get()

    def spent(self):
        return spent_cents(self.book(), utc_now() - timedelta(days=1))

    def records(self):
        return [record.kind for record in self.book().records()][2:]

    def allow(self, **changes):
        self.policy = PaymentPolicy(**{**self.policy.model_dump(), **changes})


@contextmanager
def x402_world():
    """A world with a service of its own."""
    with running(PayServer()) as server, pay_client(server.base_url) as api:
        yield World(server, api)
