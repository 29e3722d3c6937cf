"""A small pay service on loopback, written from the public x402 description alone.

It shares no code with the package: it checks signatures with eth_account itself and counts settlements, so
that a test can say "never two". It is not the lab.
"""

import base64
import json
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from eth_account import Account
from eth_account.messages import encode_typed_data

from prefect_assay.orders.payments.settle import utc_now
from prefect_assay.service.client import AssayClient
from support.services.serving import serving

USDC = "0x036CbD53842c5426634e7929541eC2318f3dCF7e"
NETWORK = "eip155:84532"
RECEIVER = "0x209693Bc6afc0C5328bA36FaF03C514EF312287C"
# A key that stands for a secret: no test may find it, or any signature, where it does not belong.
CANARY_KEY = "0x" + "c0ffee" * 10 + "1234"
CANARY_ADDRESS = Account.from_key(CANARY_KEY).address

AUTHORIZATION = [
    {"name": "from", "type": "address"},
    {"name": "to", "type": "address"},
    {"name": "value", "type": "uint256"},
    {"name": "validAfter", "type": "uint256"},
    {"name": "validBefore", "type": "uint256"},
    {"name": "nonce", "type": "bytes32"},
]


def encode(content) -> str:
    return base64.b64encode(json.dumps(content).encode()).decode()


def decode(value):
    return json.loads(base64.b64decode(value))


@dataclass
class PayServer:
    """State of the service. `faults` change how the pay path behaves; see `_pay`."""

    amount_cents: int = 5000
    status: str = "open"
    faults: set[str] = field(default_factory=set)
    offer: dict = field(default_factory=dict)  # overrides in the offered entry
    extra_offers: list = field(default_factory=list)
    resource_url: str | None = None
    invoice_fields: dict = field(default_factory=dict)
    paid_visible_after: int = 0  # readings of the invoice that still show it open after a settlement
    reason: str = (
        "payment required"  # in PAYMENT-REQUIRED; with silent_402 the only statement on a credential
    )
    before_settling: Callable[[], None] = lambda: None
    now: Callable[[], datetime] = utc_now  # in the header Date

    settlements: list[dict] = field(default_factory=list)
    used: set[tuple] = field(
        default_factory=set
    )  # the token contract's own memory: (chain, asset, from, nonce)
    probes: int = 0
    credentials: list[dict] = field(default_factory=list)
    idempotency_keys: list[str | None] = field(default_factory=list)
    base_url: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def pay_url(self) -> str:
        return f"{self.base_url}/api/v1/invoices/inv_1/pay"

    def entry(self) -> dict:
        return {
            "scheme": "exact",
            "network": NETWORK,
            "asset": USDC,
            "amount": str(self.amount_cents * 10_000),
            "payTo": RECEIVER,
            "maxTimeoutSeconds": 300,
            "extra": {"name": "USDC", "version": "2"},
            **self.offer,
        }

    def challenge(self) -> dict:
        return {
            "x402Version": 2,
            "error": self.reason,
            "resource": {"url": self.resource_url or self.pay_url, "mimeType": "application/json"},
            "accepts": [*self.extra_offers, self.entry()],
        }

    def invoice(self) -> dict:
        with self.lock:
            status = self.status
            if status == "paid" and self.paid_visible_after > 0:
                self.paid_visible_after -= 1
                status = "open"
        return {
            "id": "inv_1",
            "provider_invoice_id": "in_abc",
            "status": status,
            "currency": "usd",
            "amount": self.amount_cents,
            "experiment_id": "exp_1",
            "provider_hosted_invoice_url": f"{self.base_url}/pages/inv_1",
            **self.invoice_fields,
        }

    def problem(self, credential: dict) -> str | None:
        """Why a credential does not pay, None when it does. Called under the lock."""
        authorization, accepted = credential["payload"]["authorization"], credential["accepted"]
        if credential["x402Version"] != 2 or accepted != self.entry():
            return "invalid_payload"
        if (
            authorization["to"].lower() != accepted["payTo"].lower()
            or authorization["value"] != accepted["amount"]
        ):
            return "invalid_exact_evm_payload_authorization"
        if not int(authorization["validAfter"]) <= time.time() < int(authorization["validBefore"]):
            return "invalid_exact_evm_payload_authorization_valid_before"
        if (
            recover(authorization, credential["payload"]["signature"], accepted)
            != authorization["from"].lower()
        ):
            return "invalid_exact_evm_payload_signature"
        used = (accepted["network"], accepted["asset"].lower(), authorization["from"], authorization["nonce"])
        if used in self.used:
            return "authorization_is_used"
        self.used.add(used)
        return None


def recover(authorization: dict, signature: str, accepted: dict) -> str:
    signable = encode_typed_data(
        domain_data={
            "name": accepted["extra"]["name"],
            "version": accepted["extra"]["version"],
            "chainId": int(accepted["network"].split(":")[1]),
            "verifyingContract": accepted["asset"],
        },
        message_types={"TransferWithAuthorization": AUTHORIZATION},
        message_data={
            **authorization,
            **{name: int(authorization[name]) for name in ("value", "validAfter", "validBefore")},
        },
    )
    return Account.recover_message(signable, signature=signature).lower()


class _Handler(BaseHTTPRequestHandler):
    server: "_Http"
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *args):
        pass

    def date_time_string(self, timestamp=None):
        return format_datetime(self.server.pay.now(), usegmt=True)

    def do_GET(self):
        pay = self.server.pay
        if "read_500" in pay.faults:
            self.answer(500, {"error": "no"})
        elif self.path in {"/api/v1/invoices/inv_1", "/api/v1/invoices/in_abc"}:
            self.answer(200, pay.invoice())
        else:
            self.answer(404, {"error": "no such invoice"})

    def do_POST(self):
        pay = self.server.pay
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        credential = self.headers.get("PAYMENT-SIGNATURE")
        if credential is None:
            self.probe(pay)
        else:
            pay.idempotency_keys.append(self.headers.get("Idempotency-Key"))
            self.pay(pay, decode(credential))

    def probe(self, pay):
        pay.probes += 1
        for fault, status in (("probe_500", 500), ("pinned", 409)):
            if fault in pay.faults:
                self.answer(status, {"error": fault})
                return
        if "already_paid" in pay.faults:
            pay.status = "paid"
        if pay.status == "paid":
            self.answer(200, {"already_paid": True})
        elif "async" in pay.faults:
            self.answer(200, {"status": "open", "already_paid": False})
        else:
            self.answer(402, {"error": "payment required"}, {"PAYMENT-REQUIRED": encode(pay.challenge())})

    def pay(self, pay, credential):
        pay.before_settling()
        if "drop_before" in pay.faults:
            pay.faults.discard("drop_before")
            pay.credentials.append(credential)
            self.drop()
            return
        with pay.lock:
            pay.credentials.append(credential)
            already = pay.status == "paid"
            problem = None if already else self.settle(pay, credential)
        if already:
            self.answer(200, {"already_paid": True})
        elif problem:
            self.answer(
                402,
                {"error": problem},
                {
                    "PAYMENT-REQUIRED": encode(pay.challenge()),
                    "PAYMENT-RESPONSE": encode(
                        {"success": False, "errorReason": problem, "network": NETWORK}
                    ),
                },
            )
        elif "silent_402" in pay.faults:
            self.answer(402, {"error": "again"}, {"PAYMENT-REQUIRED": encode(pay.challenge())})
        elif "drop" in pay.faults:
            self.drop()
        elif "500" in pay.faults:
            self.answer(500, {"error": "after settling"})
        elif "replay_403" in pay.faults:
            self.answer(403, {"error": "replayed"})
        elif "no_receipt" in pay.faults:
            self.answer(200, {"already_paid": False})
        else:
            receipt = {
                "success": True,
                "transaction": "0x" + "ab" * 32,
                "network": NETWORK,
                "payer": CANARY_ADDRESS,
            }
            self.answer(200, {"settlement_reference": "set_1"}, {"PAYMENT-RESPONSE": encode(receipt)})

    def settle(self, pay, credential):
        if "always_402" in pay.faults:
            return "insufficient_funds"
        if "silent_402" in pay.faults:
            return None
        problem = pay.problem(credential)
        if problem is None:
            pay.settlements.append(credential)
            if "settled_but_open" not in pay.faults:
                pay.status = "paid"
        return problem

    def answer(self, status, body, headers=None):
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def drop(self):
        self.close_connection = True
        self.connection.close()


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    pay: PayServer

    def handle_error(self, request, client_address):
        pass  # a dropped connection is a fault that was asked for


@contextmanager
def running(pay: PayServer):
    """The service on a free loopback port; `pay.base_url` names it."""
    server = _Http(("127.0.0.1", 0), _Handler)
    server.pay = pay
    with serving(server) as pay.base_url:
        yield pay


def pay_client(base_url):
    """The package's own client, which repeats nothing."""
    return AssayClient(base_url, "token", retries=0)
