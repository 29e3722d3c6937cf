"""Both rails against the public libraries, over HTTP on loopback: theirs pay our lab, ours pays theirs.

The libraries take seconds to import; only the tests of this file pay for it, inside the tests.
"""

import asyncio
from types import SimpleNamespace

import pytest
from pydantic import SecretStr

from prefect_assay.errors import PaymentFailed, PaymentOutcomeUnknown
from prefect_assay.orders.job import PaymentState
from prefect_assay.orders.ledger import PaymentLedger
from prefect_assay.orders.payments.guard import PaymentPolicy
from prefect_assay.orders.payments.rails.mpp import MppRail
from prefect_assay.orders.payments.rails.x402 import X402Limits, X402Rail
from prefect_assay.orders.payments.settle import settle
from prefect_assay.service.client import AssayClient
from support.archive.memory_store import MemoryStore, make_ledger
from support.lab.orders import booked, open_invoice
from support.services.asgi import served

KEY = "0x" + "22" * 32
USDC = "0x036CbD53842c5426634e7929541eC2318f3dCF7e"
RECEIVER = "0x209693Bc6afc0C5328bA36FaF03C514EF312287C"
NETWORK = "eip155:84532"
PROFILE = "profile_interop"
LIMITS = X402Limits(networks=(NETWORK,), assets=(USDC,), pay_to=(RECEIVER,))
TOKEN = "a-token-of-the-service"
PAY_PATH = "/api/v1/invoices/inv_1/pay"


def policy_for(base_url):
    return PaymentPolicy(
        enabled=True, max_cents_per_payment=5000, max_cents_rolling=5000, allowed_origins=(base_url,)
    )


def pay(base_url, rail, store=None, *, twice=False):
    """Another run's payment of the order; with `twice` the network delivers the credential two times."""
    with AssayClient(base_url, TOKEN, timeout=60) as client:
        if twice:
            send = client.invoices.pay
            client.invoices.pay = lambda invoice_id, headers=None: [
                send(invoice_id, headers) for _ in range(2 if headers else 1)
            ][-1]
        return settle(
            client.invoices,
            "inv_1",
            rail,
            policy_for(base_url),
            PaymentLedger(make_ledger(store)),
            expected_cents=5000,
            sleep=lambda _: None,
        )


def invoice(*, paid):
    return {"id": "inv_1", "status": "paid" if paid else "open", "currency": "usd", "amount": 5000}


def lab_pay_url(lab, invoice_id):
    return f"{lab.base_url}/api/v1/invoices/{invoice_id}/pay"


def test_x402s_client_pays_the_lab(lab):
    from eth_account import Account
    from x402 import x402Client
    from x402.http.clients.httpx import x402HttpxClient
    from x402.mechanisms.evm.exact import register_exact_evm_client
    from x402.mechanisms.evm.signers import EthAccountSigner

    invoice_id = open_invoice(lab, "x402-exact")
    account = Account.from_key(KEY)

    async def run():
        client = x402Client()
        client.set_spend_controls(False)
        register_exact_evm_client(client, EthAccountSigner(account))
        async with x402HttpxClient(
            client, timeout=60, headers={"Authorization": f"Bearer {lab.token}"}
        ) as http:
            return await http.post(lab_pay_url(lab, invoice_id))

    answer = asyncio.run(run())
    assert (answer.status_code, answer.json()["status"]) == (200, "paid")
    (row,) = booked(lab, invoice_id)
    assert row["payer"] == account.address
    assert "PAYMENT-RESPONSE" in answer.headers


def x402_service(chain):
    """A service whose pay path is guarded by x402's own middleware, server and facilitator."""
    from fastapi import FastAPI
    from x402 import x402Facilitator, x402ResourceServer
    from x402.http.middleware.fastapi import payment_middleware
    from x402.mechanisms.evm.exact import register_exact_evm_facilitator, register_exact_evm_server

    facilitator = x402Facilitator()
    register_exact_evm_facilitator(facilitator, chain, networks=NETWORK)
    server = x402ResourceServer(facilitator)
    register_exact_evm_server(server, NETWORK)
    price = {"amount": "50000000", "asset": USDC, "extra": {"name": "USDC", "version": "2"}}
    offer = {"scheme": "exact", "payTo": RECEIVER, "price": price, "network": NETWORK}
    app = FastAPI()
    app.middleware("http")(payment_middleware({f"POST {PAY_PATH}": {"accepts": offer}}, server))

    @app.get("/api/v1/invoices/inv_1")
    def read():
        return invoice(paid=bool(chain.transfers) and not chain.hidden)

    @app.post(PAY_PATH)
    def paid():
        return {"already_paid": False}

    return app


@pytest.fixture
def chain():
    from support.services.chain import Chain

    return Chain(USDC)


def test_our_client_pays_x402s_server_and_facilitator(chain):
    rail = X402Rail(SecretStr(KEY), LIMITS)
    with served(x402_service(chain)) as base_url:
        payment = pay(base_url, rail)

    (moved,) = chain.transfers
    assert (moved["from"], moved["to"], moved["value"]) == (rail.payer, RECEIVER, 50_000_000)
    assert payment.state is PaymentState.SETTLED
    assert (payment.receipt["success"], payment.receipt["transaction"]) == ("true", f"0x{1:064x}")
    assert payment.receipt["payer"] == rail.payer


def test_x402s_facilitator_refuses_a_second_settlement_of_our_nonce(chain):
    """The invoice never shows the payment; the token contract alone keeps it from being made twice."""
    chain.hidden = True
    store, rail = MemoryStore(), X402Rail(SecretStr(KEY), LIMITS)
    with served(x402_service(chain)) as base_url:
        for _ in range(2):
            with pytest.raises(PaymentOutcomeUnknown):
                pay(base_url, rail, store)
        assert len(chain.transfers) == 1
        assert chain.refused > 0
        chain.hidden = False
        assert pay(base_url, rail, store).state is PaymentState.SETTLED
    assert len(chain.transfers) == 1


def test_what_x402s_facilitator_refuses_before_a_broadcast_is_a_failure_with_its_reason(chain):
    chain.broke = True
    with served(x402_service(chain)) as base_url:
        with pytest.raises(PaymentFailed, match="insufficient_balance"):
            pay(base_url, X402Rail(SecretStr(KEY), LIMITS))
        assert chain.transfers == []
        chain.broke = False
        assert pay(base_url, X402Rail(SecretStr(KEY), LIMITS)).state is PaymentState.SETTLED


def test_a_broadcast_that_x402s_facilitator_takes_for_a_failure_stays_in_doubt(chain):
    chain.late = chain.hidden = True
    with served(x402_service(chain)) as base_url:
        store = MemoryStore()
        with pytest.raises(PaymentOutcomeUnknown, match="transaction_failed"):
            pay(base_url, X402Rail(SecretStr(KEY), LIMITS), store)
        chain.hidden = False
        assert pay(base_url, X402Rail(SecretStr(KEY), LIMITS), store).already_paid
    assert len(chain.transfers) == 1


def test_pympps_client_pays_the_lab(lab):
    from mpp.client import Mpp
    from mpp.methods.stripe import client as spt

    invoice_id = open_invoice(lab, "mpp-spt")
    asked = []

    async def create_token(parameters):
        asked.append(parameters)
        return "spt_of_pympp"

    async def run():
        methods = [spt.charge(create_token=create_token, payment_method="pm_card_visa")]
        async with Mpp(methods=methods) as mpp:
            headers = {"Authorization": f"Bearer {lab.token}"}
            return await mpp.fetch(lab_pay_url(lab, invoice_id), method="POST", headers=headers)

    from mpp import Receipt

    answer = asyncio.run(run())
    assert (answer.status_code, answer.json()["status"]) == (200, "paid")
    (row,) = booked(lab, invoice_id)
    receipt = Receipt.from_payment_receipt(answer.headers["Payment-Receipt"])
    assert (receipt.reference, receipt.external_id) == (row["reference"], invoice_id)
    (parameters,) = asked
    assert (parameters.amount, parameters.network_id) == (
        str(row["amount_cents"]),
        lab.rail("mpp-spt")["network_id"],
    )


class Provider:
    """The payment provider's client, as pympp calls it: a charge for each new idempotency key."""

    def __init__(self):
        self.charges = {}
        self.hidden = False
        self.payment_intents = self

    def create(self, body, options):
        key, replayed = options["idempotency_key"], options["idempotency_key"] in self.charges
        self.charges.setdefault(key, body)
        answer = SimpleNamespace(headers={"idempotent-replayed": str(replayed).lower()})
        return SimpleNamespace(id=f"pi_{len(self.charges)}", status="succeeded", last_response=answer)


def mpp_service(provider, **options):
    """A service whose pay path is pympp's server engine. It wants the bearer token, too."""
    from fastapi import FastAPI, Request, Response
    from fastapi.responses import JSONResponse
    from mpp.methods.stripe import server as spt
    from mpp.server import Mpp
    from mpp.server import Request as MppRequest

    method = spt.charge(client=provider, network_id=PROFILE, currency="usd", external_id="inv_1")
    settings = {"realm": "lab.test", "secret_key": "s" * 32, "requires_auth": True, **options}
    engine = Mpp(methods=method, **settings)
    app = FastAPI()

    @app.get("/api/v1/invoices/inv_1")
    def read():
        return invoice(paid=bool(provider.charges) and not provider.hidden)

    @app.post(PAY_PATH)
    async def paid(request: Request):
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return JSONResponse({"error": "no token"}, status_code=401)
        asked = MppRequest("POST", str(request.url), request.headers.items(), await request.body())
        result = await engine.charge(amount="50.00")(asked)
        if result.status != 200:
            told = result.challenge
            return Response(told.body, told.status, dict(told.headers))
        return result.with_receipt(JSONResponse({"already_paid": False}))

    return app


def test_our_client_pays_pympps_server():
    provider, asked = Provider(), []

    def issue(limits):
        asked.append(limits)
        return "spt_ours"

    with served(mpp_service(provider)) as base_url:
        payment = pay(base_url, MppRail(issue, [PROFILE]))

    (charge,) = provider.charges.values()
    assert (charge["amount"], charge["currency"], charge["shared_payment_granted_token"]) == (
        5000,
        "usd",
        "spt_ours",
    )
    assert payment.state is PaymentState.SETTLED
    assert (payment.receipt["reference"], payment.receipt["externalId"]) == ("pi_1", "inv_1")
    (limits,) = asked
    assert (limits.max_amount, limits.currency, limits.network_id) == (5000, "usd", PROFILE)


def test_a_replay_that_pympps_server_refuses_with_403_is_unknown_until_the_invoice_is_paid():
    provider, store, rail = Provider(), MemoryStore(), MppRail(lambda _: "spt_ours", [PROFILE])
    provider.hidden = True
    with served(mpp_service(provider)) as base_url:
        with pytest.raises(PaymentOutcomeUnknown, match="status 403"):
            pay(base_url, rail, store, twice=True)
        with pytest.raises(PaymentOutcomeUnknown, match="no other one is issued"):
            pay(base_url, rail, store)
        provider.hidden = False
        assert pay(base_url, rail, store).already_paid
    assert len(provider.charges) == 1


def test_pympps_server_without_a_header_of_its_own_is_refused_before_a_token_is_issued():
    from prefect_assay.errors import PaymentRefused

    asked = []
    with (
        served(mpp_service(Provider(), requires_auth=False)) as base_url,
        pytest.raises(PaymentRefused, match="names no header"),
    ):
        pay(base_url, MppRail(asked.append, [PROFILE]))
    assert asked == []
