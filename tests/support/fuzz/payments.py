"""Fuzzes the payment headers of both rails, on the paying and on the receiving side."""

import base64
import json
from datetime import UTC, datetime
from typing import ClassVar

from assay_lab.rails import mpp as lab_mpp
from assay_lab.rails import x402 as lab_x402
from prefect_assay.errors import PaymentRefused
from prefect_assay.orders.payments.rails import mpp
from prefect_assay.orders.payments.rails.headers import parse_challenges
from prefect_assay.orders.payments.rails.x402 import read_offers, read_settlement
from support.fuzz.mutations import Mutator

_NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


class X402Fuzz:
    """The x402 headers on both sides: an answer or the documented refusal."""

    CHALLENGE: ClassVar = {
        "x402Version": 2,
        "error": "payment required",
        "resource": {"url": "https://lab.example/api/v1/invoices/i/pay", "description": "invoice i"},
        "accepts": [
            {
                "scheme": "exact",
                "network": "eip155:84532",
                "asset": "0x036CbD53842c5426634e7929541eC2318f3dCF7e",
                "amount": "1000000",
                "payTo": "0x00000000000000000000000000000000001ab402",
                "maxTimeoutSeconds": 300,
                "extra": {"name": "USDC", "version": "2"},
            }
        ],
    }

    def __init__(self, seed: int) -> None:
        settled = {
            "success": True,
            "transaction": "0x" + "a" * 64,
            "network": "eip155:84532",
            "payer": "0x" + "b" * 40,
        }
        authorization = {
            "from": "0x" + "1" * 40, "to": self.CHALLENGE["accepts"][0]["payTo"], "value": "1000000", "validAfter": "0",
            "validBefore": str(int(_NOW.timestamp()) + 200), "nonce": "0x" + "c" * 64,
        }  # fmt: skip
        payment = {
            "x402Version": 2,
            "accepted": self.CHALLENGE["accepts"][0],
            "payload": {"signature": "0x" + "d" * 130, "authorization": authorization},
        }
        words = (
            '"',
            "{",
            "}",
            "[",
            "]" * 50,
            "[" * 300,
            "null",
            "true",
            "1e999",
            "NaN",
            "-1",
            "10" * 40,
            '"exact"',
            "eip155:",
            "0x",
        )
        self._plain = Mutator(seed, [json.dumps(item) for item in (self.CHALLENGE, settled, payment)], words)
        self._coded = Mutator(
            seed + 1, [base64.b64encode(json.dumps(item).encode()).decode() for item in (payment, settled)]
        )
        self._settings = lab_x402.X402Settings()

    def one(self) -> None:
        whole = self._plain.chance.random() < 0.7
        value = base64.b64encode(self._plain.data()).decode() if whole else self._coded.text()
        try:
            offers = read_offers(value)
        except PaymentRefused:
            pass
        else:
            assert all(terms.amount_units >= 0 for terms in offers.terms)
        read_settlement(value)
        settlement = lab_x402.settle(
            value,
            lab_mpp.Bill("i", 100, "usd", "https://lab.example/api/v1/invoices/i/pay", "lab.example", b""),
            self._settings,
            nonce_used=lambda _payer, _nonce: False,
            now=_NOW,
        )
        assert not settlement.ok, "a payment that nobody signed"


class MppFuzz:
    """The headers of the "Payment" scheme on both sides: an answer or the documented refusal."""

    SPT = "spt_genuine_0123456789"

    def __init__(self, seed: int) -> None:
        self._settings = lab_mpp.MppSettings()
        self._bill = lab_mpp.Bill("inv_1", 5_000, "usd", "", "lab.test", b"")
        header = lab_mpp.challenge(self._bill, self._settings, _NOW)
        (challenge,) = parse_challenges(header)
        self._genuine = {"challenge": challenge.parameters, "payload": {"spt": self.SPT}}
        credential = mpp.encode_credential(challenge.parameters, {"spt": self.SPT})
        receipt = lab_mpp.encode(
            {
                "status": "success",
                "method": "stripe",
                "reference": "pi_1",
                "timestamp": "2026-03-02T09:00:00Z",
            }
        )
        words = (
            '"',
            '\\"',
            "Payment ",
            "Bearer x, ",
            ", ",
            "=",
            'id="x"',
            'method="stripe"',
            'expires="soon"',
            "Basic YQ==",
            "spt_",
            "{" * 300,
        )
        self._headers = Mutator(
            seed, [header, f"Bearer, {header}", f'{header}, Payment id="2", method="x"'], words
        )
        self._credentials = Mutator(seed + 1, [credential, "Payment e30", credential[8:]], words)
        self._content = Mutator(seed + 2, [json.dumps(self._genuine)], words)
        self._receipts = Mutator(seed + 3, [receipt, "e30"], words)

    def one(self) -> None:
        chance = self._headers.chance
        try:
            offers = mpp.read_offers(self._headers.text())
        except PaymentRefused:
            pass
        else:
            assert all(terms.amount_units >= 0 for terms in offers.terms)
        kind = chance.randrange(3)
        mpp.read_settlement(
            kind > 0, self._receipts.text(), {"type": self._receipts.text(), "detail": kind or None}
        )
        value = self._credentials.text()
        if kind:
            value = f"Payment {base64.urlsafe_b64encode(self._content.data()).decode()}"
        settlement = lab_mpp.settle(
            value, self._bill, self._settings, used=lambda _payer, _nonce: False, now=_NOW
        )
        # Whoever holds a challenge may answer it with any token, but only that challenge and only for this invoice.
        if settlement.ok:
            assert settlement.nonce == self._genuine["challenge"]["id"]
        else:
            assert settlement.status in (402, 403)
