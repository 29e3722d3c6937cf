import pytest
from pydantic import SecretStr

from prefect_assay.models.job import PaymentState
from prefect_assay.payments import MemoryLedger, PaymentPolicy, X402Rail, settle
from prefect_assay.payments.ledger import ledger_key
from support.pay_server import (
    CANARY_ADDRESS,
    CANARY_KEY,
    NETWORK,
    RECEIVER,
    USDC,
    HttpPayApi,
    PayServer,
    running,
)


class World:
    """A running service, a wallet and an empty ledger."""

    def __init__(self, server, api):
        self.server = server
        self.api = api
        self.rail = X402Rail(SecretStr(CANARY_KEY))
        self.ledger = MemoryLedger()
        self.slept = []
        self.policy = PaymentPolicy(
            enabled=True,
            max_cents_per_payment=10_000,
            max_cents_rolling=20_000,
            allowed_origins=(server.base_url,),
            allowed_networks=(NETWORK,),
            allowed_assets=(USDC,),
            allowed_pay_to=(RECEIVER,),
        )

    def settle(self, invoice_id="inv_1", **changes):
        arguments = {"expected_cents": 5000, "sleep": self.slept.append, **changes}
        return settle(self.api, invoice_id, self.rail, self.policy, self.ledger, **arguments)

    def entry(self):
        return self.ledger.get(ledger_key(self.server.base_url, "inv_1"))

    def allow(self, **changes):
        self.policy = PaymentPolicy(**{**self.policy.model_dump(), **changes})


@pytest.fixture
def world():
    with running(PayServer()) as server:
        api = HttpPayApi(server.base_url)
        yield World(server, api)
        api.close()


def test_an_open_invoice_is_paid_once_and_the_receipt_is_kept(world):
    payment = world.settle()

    assert payment.state is PaymentState.SETTLED
    assert payment.amount_cents == 5000
    assert not payment.already_paid
    assert payment.receipt == {
        "success": "true",
        "transaction": "0x" + "ab" * 32,
        "network": NETWORK,
        "payer": CANARY_ADDRESS,
    }
    assert len(world.server.settlements) == 1
    assert world.entry().state is PaymentState.SETTLED
    assert world.entry().experiment_id == "exp_1"
