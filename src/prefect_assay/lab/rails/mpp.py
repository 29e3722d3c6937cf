"""The lab's mpp-spt rail: the challenge of the "Payment" scheme, and settlement of a shared payment token.

The challenge's id is a MAC over its own parts, so nothing has to be stored until something is settled. `settle`
checks what a server of the protocol checks, and then invents the charge. It must not know storage: the caller says
what was used, and records payer and nonce with the invoice in one transaction. A header is foreign input: whatever
is in it, the answer is a `Settlement`.
"""

import base64
import binascii
import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from pydantic_core import from_json

from prefect_assay.lab.kernel import times
from prefect_assay.lab.kernel.settings import MppSettings

SCHEME: Final = "Payment"
INTENT: Final = "charge"
CHALLENGE_HEADER: Final = "WWW-Authenticate"
CREDENTIAL_HEADER: Final = "Payment-Authorization"
RECEIPT_HEADER: Final = "Payment-Receipt"
HEADER_BYTES_MAX: Final = 16_384
DECLINED: Final = "spt_declined"
_REFUSED: Final = 402
INSUFFICIENT: Final = "https://paymentauth.org/problems/payment-insufficient"
_REPLAYED: Final = 403
_TEN_YEARS: Final = timedelta(days=3650)
_SPT = re.compile(r"spt_[A-Za-z0-9_]{1,200}")
# The parts of a challenge in the order in which its id covers them.
_COVERED: Final = ("realm", "method", "intent", "request", "expires", "digest", "header", "opaque")


@dataclass(frozen=True, slots=True)
class Bill:
    """What is to be paid, in which request.

    Attributes:
        invoice_id: becomes `externalId`.
        amount_cents: of the invoice.
        currency: lower case.
        realm: the service, as `host[:port]`.
        body: of the pay request; challenge and credential belong to the same one.
        fault: a wrong term that the challenge shows, so that a client's guard can be tested.
    """

    invoice_id: str
    amount_cents: int
    currency: str
    realm: str
    body: bytes
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class Settlement:
    """The outcome of one credential.

    Attributes:
        ok: whether the invoice may be marked as paid.
        status: of the answer: 200, 402 for another try, 403 for something that was used before.
        detail: why it is refused.
        payer: fingerprint of the token; the token itself is not kept.
        nonce: the challenge's id. Record (payer, nonce) with the invoice.
        reference: the invented charge.
        receipt: the value of Payment-Receipt.
    """

    ok: bool
    status: int
    detail: str
    payer: str | None = None
    nonce: str | None = None
    reference: str | None = None
    receipt: str | None = None


class _Refused(Exception):
    """A credential that fails a check. Never leaves this module."""

    def __init__(self, detail: str, status: int = _REFUSED) -> None:
        super().__init__(detail)
        self.detail = detail
        self.status = status


def encode(value: Mapping[str, Any]) -> str:
    """base64url of canonical JSON, without padding."""
    text = json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    return base64.urlsafe_b64encode(text.encode()).decode("ascii").rstrip("=")


def challenge(bill: Bill, settings: MppSettings, now: datetime) -> str:
    """The value of WWW-Authenticate for an open invoice. `now` is wall time, as challenges expire on it."""
    parts = _fixed(bill, settings)
    parts["expires"] = times.stamp(_expiry(bill, settings, now))
    # Every challenge is another one, so that each can be used once.
    parts["opaque"] = encode({"challenge": secrets.token_hex(8), "invoice": bill.invoice_id})
    shown = {"id": _id(parts, settings), **parts}
    order = ("id", "realm", "method", "intent", "request", "expires", "digest", "header", "opaque")
    return f"{SCHEME} " + ", ".join(f'{name}="{shown[name]}"' for name in order if name in shown)


def _fixed(bill: Bill, settings: MppSettings) -> dict[str, str]:
    """The parts that are the same in every challenge for this invoice."""
    digest = base64.b64encode(hashlib.sha256(bill.body).digest()).decode("ascii")
    parts = {
        "realm": bill.realm,
        "method": "other" if bill.fault == "wrong_network" else settings.method,
        "intent": INTENT,
        "request": encode(_request(bill, settings)),
        "digest": f"sha-256=:{digest}:",
        "header": CREDENTIAL_HEADER,
    }
    if bill.fault == "missing_header":
        del parts["header"]
    return parts


def _request(bill: Bill, settings: MppSettings) -> dict[str, Any]:
    """The terms. A fault is consistent, so a client without a guard would really pay them."""
    fault = bill.fault
    return {
        "amount": str(bill.amount_cents * (2 if fault == "wrong_amount" else 1)),
        "currency": "eur" if fault == "wrong_asset" else bill.currency,
        "externalId": f"{bill.invoice_id}-other" if fault == "wrong_resource" else bill.invoice_id,
        "methodDetails": {
            "networkId": "profile_other" if fault == "wrong_payee" else settings.network_id,
            "paymentMethodTypes": list(settings.payment_method_types),
        },
    }


def _expiry(bill: Bill, settings: MppSettings, now: datetime) -> datetime:
    if bill.fault == "expired_challenge":
        return now - timedelta(seconds=settings.valid_seconds)
    if bill.fault == "ten_year_window":
        return now + _TEN_YEARS
    return now + timedelta(seconds=settings.valid_seconds)


def _id(parts: Mapping[str, str], settings: MppSettings) -> str:
    """base64url HMAC-SHA256 over the parts; a header that is not named takes no place among them."""
    covered = [parts.get(name, "") for name in _COVERED if name != "header" or name in parts]
    made = hmac.new(
        settings.secret.encode(), "|".join(covered).encode("utf-8", "replace"), hashlib.sha256
    ).digest()
    return base64.urlsafe_b64encode(made).decode("ascii").rstrip("=")


def settle(
    header_value: str,
    bill: Bill,
    settings: MppSettings,
    *,
    used: Callable[[str, str], bool],
    now: datetime,
) -> Settlement:
    """Check a Payment-Authorization against the challenge for this bill, and settle it locally.

    `bill` and `settings` are those of `challenge`. `used` tells whether this payer or this nonce settled something
    before. `now` is wall time.
    """
    try:
        credential = _decode(header_value)
        echo = _echo(credential)
        _check_issued(echo, bill, settings)
        _check_time(echo["expires"], now)
        token = _token(credential, bill, settings)
        payer = f"spt:{hashlib.sha256(token.encode()).hexdigest()[:32]}"
        _check_unused(payer, echo["id"], used)
        _check_funds(token)
    except _Refused as refusal:
        return Settlement(False, refusal.status, refusal.detail)
    reference = "pi_" + hashlib.sha256(f"{payer}|{echo['id']}".encode()).hexdigest()[:24]
    receipt = {
        "status": "success",
        "method": echo["method"],
        "reference": reference,
        "timestamp": times.stamp(now),
        "externalId": bill.invoice_id,
    }
    return Settlement(True, 200, "settled", payer, echo["id"], reference, encode(receipt))


def _decode(header_value: str) -> dict[str, Any]:
    scheme, _, content = header_value.strip().partition(" ")
    if scheme.lower() != SCHEME.lower() or len(header_value) > HEADER_BYTES_MAX:
        raise _Refused(f"{CREDENTIAL_HEADER} takes one credential of the scheme {SCHEME}")
    text = content.strip().rstrip("=")
    try:
        found = from_json(base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True))
    except (binascii.Error, ValueError):
        raise _Refused("the credential is not base64url of JSON") from None
    if not isinstance(found, dict):
        raise _Refused("the credential is not a JSON object")
    return found


def _echo(credential: dict[str, Any]) -> dict[str, str]:
    echo = credential.get("challenge")
    if not isinstance(echo, dict):
        raise _Refused("the credential has no challenge")
    parts = {name: echo[name] for name in ("id", *_COVERED) if echo.get(name) is not None}
    if not all(isinstance(value, str) for value in parts.values()):
        raise _Refused("the challenge is not echoed as it was sent")
    return parts


def _check_issued(echo: dict[str, str], bill: Bill, settings: MppSettings) -> None:
    """The echo is a challenge of this lab, verbatim, and one for this invoice and request."""
    if not hmac.compare_digest(_id(echo, settings).encode(), echo.get("id", "").encode("utf-8", "replace")):
        raise _Refused("the challenge was not issued here, or is not echoed as it was sent")
    expected = _fixed(bill, settings)
    differing = [name for name, value in expected.items() if echo.get(name) != value]
    if differing or "expires" not in echo:
        raise _Refused(f"the challenge is for another request: {', '.join(differing) or 'expires'}")


def _check_time(expires: str, now: datetime) -> None:
    if times.read(expires) <= now:
        raise _Refused("the challenge has expired")


def _check_unused(payer: str, nonce: str, used: Callable[[str, str], bool]) -> None:
    if used(payer, nonce):
        raise _Refused("the token or the challenge was used before; read the invoice", _REPLAYED)


def _check_funds(token: str) -> None:
    if token.startswith(DECLINED):
        raise _Refused("the payment was declined")


def _token(credential: dict[str, Any], bill: Bill, settings: MppSettings) -> str:
    payload = credential.get("payload")
    token = payload.get("spt") if isinstance(payload, dict) else None
    if not isinstance(payload, dict) or not isinstance(token, str) or not _SPT.fullmatch(token):
        raise _Refused("payload.spt is no shared payment token")
    external = payload.get("externalId")
    if external is not None and external != _request(bill, settings)["externalId"]:
        raise _Refused("payload.externalId is another invoice's")
    return token
