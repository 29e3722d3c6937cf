"""The lab's mpp-spt rail: the challenge of the "Payment" scheme, and settlement of a shared payment token.

The challenge's id is a MAC over its parts, so nothing is stored before a settlement; the charge is invented.
The caller looks up used credentials, and records payer and nonce with the invoice in one transaction.
"""

import base64
import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any, Final

from assay_lab.kernel import times
from assay_lab.rails.credentials import (
    HEADER_BYTES_MAX,
    CredentialError,
    CredentialVerdict,
    decode_credential,
)
from assay_lab.rails.rail import Bill, Challenge, LabRail, Settlements
from assay_lab.vocabulary import PaymentMethod

SCHEME: Final = "Payment"
INTENT: Final = "charge"
CHALLENGE_HEADER: Final = "WWW-Authenticate"
CREDENTIAL_HEADER: Final = "Payment-Authorization"
RECEIPT_HEADER: Final = "Payment-Receipt"
DECLINED: Final = "spt_declined"
INSUFFICIENT: Final = "https://paymentauth.org/problems/payment-insufficient"
_TEN_YEARS: Final = timedelta(days=3650)
_SPT: Final = re.compile(r"spt_[A-Za-z0-9_]{1,200}")
# The parts of a challenge, in the order of its header and of its id.
_PARTS: Final = ("realm", "method", "intent", "request", "expires", "digest", "header", "opaque")


@dataclass(frozen=True, slots=True)
class MppSettings:
    """The terms of the mpp-spt rail."""

    method: str = "stripe"
    # The receiver's profile in the provider's network; the default is unassigned
    network_id: str = "profile_lab_1ab402"
    payment_method_types: tuple[str, ...] = ("card",)
    valid_seconds: int = 300  # how long a challenge can be answered
    # Key of the challenges' ids.
    secret: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)


class MppRail(LabRail[MppSettings]):
    """See `LabRail`. A shared payment token, and a challenge, are each good for one payment."""

    method = PaymentMethod.MPP_SPT
    credential_header = CREDENTIAL_HEADER
    credential_text = f"mpp-spt: the credential that answers {CHALLENGE_HEADER}: {SCHEME}."

    def make_settings(self) -> MppSettings:
        """A receiver that is unassigned, and a new secret."""
        return MppSettings()

    def show_settings(self, settings: MppSettings) -> dict[str, Any]:
        """All but the secret."""
        return {name: value for name, value in asdict(settings).items() if name != "secret"}

    def challenge(
        self, bill: Bill, settings: MppSettings, now: datetime, error: str | None = None
    ) -> Challenge:
        """The terms in WWW-Authenticate."""
        headers = {CHALLENGE_HEADER: make_challenge(bill, settings, now), "Cache-Control": "no-store"}
        problem = {"type": INSUFFICIENT} if error == "insufficient_funds" else {}
        text = error or f"payment required: repeat the request with a {CREDENTIAL_HEADER} header"
        return Challenge({"error": text, **problem}, headers)

    def settle(
        self, credential: str, bill: Bill, settings: MppSettings, settlements: Settlements, now: datetime
    ) -> CredentialVerdict:
        """Check a Payment-Authorization, and settle its token; the charge is invented."""
        return settle_credential(credential, bill, settings, used=settlements.has_either, now=now)

    def refuse(
        self, bill: Bill, settings: MppSettings, now: datetime, verdict: CredentialVerdict
    ) -> Challenge:
        """A new challenge, and why."""
        return self.challenge(bill, settings, now, verdict.detail)

    def receipt_headers(self, verdict: CredentialVerdict) -> dict[str, str]:
        """Payment-Receipt."""
        return {RECEIPT_HEADER: str(verdict.header), "Cache-Control": "private"}


def encode_value(value: Mapping[str, Any]) -> str:
    """base64url of canonical JSON, without padding."""
    text = json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    return base64.urlsafe_b64encode(text.encode()).decode("ascii").rstrip("=")


def make_challenge(bill: Bill, settings: MppSettings, now: datetime) -> str:
    """The value of WWW-Authenticate for an open invoice. `now` is wall time, as challenges expire on it."""
    parts = _list_fixed_parts(bill, settings)
    parts["expires"] = times.stamp(_compute_expiry(bill, settings, now))
    # Every challenge is unique, so that each can be used once.
    parts["opaque"] = encode_value({"challenge": secrets.token_hex(8), "invoice": bill.invoice_id})
    parts["id"] = _compute_id(parts, settings)
    return f"{SCHEME} " + ", ".join(f'{name}="{parts[name]}"' for name in ("id", *_PARTS) if name in parts)


def _list_fixed_parts(bill: Bill, settings: MppSettings) -> dict[str, str]:
    """The parts that all challenges for this invoice share."""
    digest = base64.b64encode(hashlib.sha256(bill.body).digest()).decode("ascii")
    parts = {
        "realm": bill.realm,
        "method": "other" if bill.fault == "wrong_network" else settings.method,
        "intent": INTENT,
        "request": encode_value(_make_request(bill, settings)),
        "digest": f"sha-256=:{digest}:",
        "header": CREDENTIAL_HEADER,
    }
    if bill.fault == "missing_header":
        del parts["header"]
    return parts


def _make_request(bill: Bill, settings: MppSettings) -> dict[str, Any]:
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


def _compute_expiry(bill: Bill, settings: MppSettings, now: datetime) -> datetime:
    if bill.fault == "expired_challenge":
        return now - timedelta(seconds=settings.valid_seconds)
    if bill.fault == "ten_year_window":
        return now + _TEN_YEARS
    return now + timedelta(seconds=settings.valid_seconds)


def _compute_id(parts: Mapping[str, str], settings: MppSettings) -> str:
    """base64url HMAC-SHA256 over the parts; without a `header` part its place is left out."""
    covered = [parts.get(name, "") for name in _PARTS if name != "header" or name in parts]
    made = hmac.new(
        settings.secret.encode(), "|".join(covered).encode("utf-8", "replace"), hashlib.sha256
    ).digest()
    return base64.urlsafe_b64encode(made).decode("ascii").rstrip("=")


def settle_credential(
    header_value: str,
    bill: Bill,
    settings: MppSettings,
    *,
    used: Callable[[str, str], bool],
    now: datetime,
) -> CredentialVerdict:
    """Check a Payment-Authorization against the challenge for this bill, and settle it at wall time `now`.

    `used` returns whether this payer or this nonce settled something before.
    """
    try:
        return _settle_checked(header_value, bill, settings, used, now)
    except CredentialError as error:
        return CredentialVerdict(False, error.detail, error.status)


def _settle_checked(
    header_value: str, bill: Bill, settings: MppSettings, used: Callable[[str, str], bool], now: datetime
) -> CredentialVerdict:
    credential = _decode_header(header_value)
    echo = _read_echo(credential)
    _check_issued(echo, bill, settings)
    if times.read(echo["expires"]) <= now:
        raise CredentialError("the challenge has expired")
    token = _read_token(credential, bill, settings)
    payer = f"spt:{hashlib.sha256(token.encode()).hexdigest()[:32]}"
    if used(payer, echo["id"]):
        detail = "the token or the challenge was used before; read the invoice"
        raise CredentialError(detail, status=HTTPStatus.FORBIDDEN)
    if token.startswith(DECLINED):
        raise CredentialError("the payment was declined")
    reference = "pi_" + hashlib.sha256(f"{payer}|{echo['id']}".encode()).hexdigest()[:24]
    receipt = {
        "status": "success",
        "method": echo["method"],
        "reference": reference,
        "timestamp": times.stamp(now),
        "externalId": bill.invoice_id,
    }
    return CredentialVerdict(
        True,
        "settled",
        payer=payer,
        nonce=echo["id"],
        reference=reference,
        amount_cents=int(_make_request(bill, settings)["amount"]),
        header=encode_value(receipt),
    )


def _decode_header(header_value: str) -> dict[str, Any]:
    scheme, _, content = header_value.strip().partition(" ")
    if scheme.lower() != SCHEME.lower() or len(header_value) > HEADER_BYTES_MAX:
        raise CredentialError(f"{CREDENTIAL_HEADER} takes one credential of the scheme {SCHEME}")
    return decode_credential(content.strip(), "credential", url_safe=True)


def _read_echo(credential: dict[str, Any]) -> dict[str, str]:
    echo = credential.get("challenge")
    if not isinstance(echo, dict):
        raise CredentialError("the credential has no challenge")
    parts = {name: echo[name] for name in ("id", *_PARTS) if echo.get(name) is not None}
    if not all(isinstance(value, str) for value in parts.values()):
        raise CredentialError("the challenge is not echoed as it was sent")
    return parts


def _check_issued(echo: dict[str, str], bill: Bill, settings: MppSettings) -> None:
    """The echo is a challenge of this lab, verbatim, for this invoice and request."""
    if not hmac.compare_digest(
        _compute_id(echo, settings).encode(), echo.get("id", "").encode("utf-8", "replace")
    ):
        raise CredentialError("the challenge was not issued here, or is not echoed as it was sent")
    expected = _list_fixed_parts(bill, settings)
    differing = [name for name, value in expected.items() if echo.get(name) != value]
    if differing or "expires" not in echo:
        raise CredentialError(f"the challenge is for another request: {', '.join(differing) or 'expires'}")


def _read_token(credential: dict[str, Any], bill: Bill, settings: MppSettings) -> str:
    payload = credential.get("payload")
    token = payload.get("spt") if isinstance(payload, dict) else None
    if not isinstance(payload, dict) or not isinstance(token, str) or not _SPT.fullmatch(token):
        raise CredentialError("payload.spt is not a shared payment token")
    external = payload.get("externalId")
    if external is not None and external != _make_request(bill, settings)["externalId"]:
        raise CredentialError("payload.externalId is another invoice's")
    return token
