"""The lab's x402-exact rail (x402 version 2): the payment challenge, and settlement without a chain.

`settle` makes every check that a facilitator makes before it sends a transaction, and then invents the
transaction. It must not know storage: the caller says whether a nonce was used, and records it together with the
invoice in one database transaction. A header is foreign input: whatever is in it, the answer is a `Settlement`.
"""

import base64
import binascii
import dataclasses
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from pydantic_core import from_json

from prefect_assay.lab.kernel.settings import X402Settings
from prefect_assay.lab.rails import eip3009

VERSION: Final = 2
SCHEME: Final = "exact"
REQUIRED_HEADER: Final = "PAYMENT-REQUIRED"
SIGNATURE_HEADER: Final = "PAYMENT-SIGNATURE"
RESPONSE_HEADER: Final = "PAYMENT-RESPONSE"
UNITS_PER_CENT: Final = 10_000
"""USDC has six decimals."""

HEADER_BYTES_MAX: Final = 16_384
CLOCK_SKEW_S: Final = 60
_TEN_YEARS_S: Final = 10 * 365 * 86_400
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_NONCE = re.compile(r"0x[0-9a-fA-F]{64}")
_SIGNATURE = re.compile(r"0x[0-9a-fA-F]{130}")
_UINT = re.compile(r"0|[1-9][0-9]{0,77}")


@dataclass(frozen=True, slots=True)
class Settlement:
    """The outcome of one credential.

    Attributes:
        ok: whether the invoice may be marked as paid.
        reason: an x402 error code when refused, else None.
        detail: the same in words, for the error message.
        payer: the signer's checksum address, once the signature is proved.
        nonce: lower-case hex. Record (payer, nonce) with the invoice.
        transaction: the invented transaction hash.
        network: the network that was offered.
        response_header: the value of PAYMENT-RESPONSE.
    """

    ok: bool
    reason: str | None
    detail: str
    payer: str | None
    nonce: str | None
    transaction: str | None
    network: str
    response_header: str


class _Refused(Exception):
    """A credential that fails a check. Never leaves this module."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(code)
        self.code = code
        self.detail = detail


def encode(value: dict[str, Any]) -> str:
    """An x402 header value: standard base64 of JSON."""
    return base64.b64encode(json.dumps(value, separators=(",", ":")).encode()).decode("ascii")


def challenge(
    *, invoice: dict[str, Any], pay_url: str, settings: X402Settings, error: str | None = None
) -> tuple[dict[str, str], dict[str, Any]]:
    """The 402 answer for an open invoice: headers, and as JSON body the same terms (contract 2.12).

    `invoice` has `id` and `amount_cents`, `pay_url` is absolute, `error` says why the credential before was refused.
    """
    shown_url = f"{pay_url}/other" if settings.fault == "wrong_resource" else pay_url
    body: dict[str, Any] = {
        "x402Version": VERSION,
        "error": error or "payment required: repeat the request with a PAYMENT-SIGNATURE header",
        "resource": {
            "url": shown_url,
            "description": f"invoice {invoice['id']}",
            "mimeType": "application/json",
        },
        "accepts": [_offer(invoice, settings)],
    }
    return {REQUIRED_HEADER: encode(body), "Cache-Control": "no-store"}, body


def _offer(invoice: dict[str, Any], settings: X402Settings) -> dict[str, Any]:
    amount = int(invoice["amount_cents"]) * UNITS_PER_CENT
    terms = _with_fault(settings)
    return {
        "scheme": SCHEME,
        "network": terms.network,
        "asset": terms.asset,
        "amount": str(amount * 2 if settings.fault == "wrong_amount" else amount),
        "payTo": terms.pay_to,
        "maxTimeoutSeconds": terms.max_timeout_seconds,
        "extra": {"name": terms.asset_name, "version": terms.asset_version},
    }


def _with_fault(settings: X402Settings) -> X402Settings:
    """The terms as shown: a fault is consistent, so a client without a guard would really pay them."""
    match settings.fault:
        case "wrong_pay_to":
            return dataclasses.replace(settings, pay_to="0x000000000000000000000000000000000000dEaD")
        case "wrong_asset":
            return dataclasses.replace(settings, asset="0x0000000000000000000000000000000000000bad")
        case "wrong_network":
            return dataclasses.replace(settings, network="eip155:8453")
        case "ten_year_window":
            return dataclasses.replace(settings, max_timeout_seconds=_TEN_YEARS_S)
        case _:
            return settings


def settle(
    *,
    header_value: str,
    invoice: dict[str, Any],
    pay_url: str,
    settings: X402Settings,
    nonce_used: Callable[[str, str], bool],
    now: datetime,
) -> Settlement:
    """Check a PAYMENT-SIGNATURE against the offer of `challenge` for this invoice, and settle it locally.

    `nonce_used` tells whether (payer, nonce), both as in `Settlement`, settled something before. `now` is wall time, as
    authorisations are signed with it. ConfigurationError when the extra `x402` is not installed.
    """
    network = _with_fault(settings).network
    try:
        payment = _decode(header_value)
        offer = _offer(invoice, settings)
        _check_envelope(payment, offer, pay_url, settings)
        authorization, signature = _authorization(payment)
        _check_terms(authorization, offer, now)
        payer = _signer(authorization, signature, _with_fault(settings))
        nonce = authorization["nonce"].lower()
        _check_unused(payer, nonce, nonce_used)
    except _Refused as refusal:
        return _refusal(refusal, network)
    transaction = "0x" + hashlib.sha256(f"{network}|{payer}|{nonce}".encode()).hexdigest()
    response = {"success": True, "transaction": transaction, "network": network, "payer": payer}
    return Settlement(True, None, "settled", payer, nonce, transaction, network, encode(response))


def _check_unused(payer: str, nonce: str, nonce_used: Callable[[str, str], bool]) -> None:
    if nonce_used(payer, nonce):
        raise _Refused("invalid_transaction_state", "this authorisation has been used already")


def _refusal(refusal: _Refused, network: str) -> Settlement:
    response = {"success": False, "errorReason": refusal.code, "transaction": "", "network": network}
    return Settlement(False, refusal.code, refusal.detail, None, None, None, network, encode(response))


def _decode(header_value: str) -> dict[str, Any]:
    if len(header_value) > HEADER_BYTES_MAX:
        raise _Refused("invalid_payload", f"the header is longer than {HEADER_BYTES_MAX} characters")
    try:
        payment = from_json(base64.b64decode(header_value.strip(), validate=True))
    except (binascii.Error, ValueError):
        raise _Refused("invalid_payload", "the header is not base64 of JSON") from None
    if not isinstance(payment, dict):
        raise _Refused("invalid_payload", "the header is not a JSON object")
    return payment


def _check_envelope(
    payment: dict[str, Any], offer: dict[str, Any], pay_url: str, settings: X402Settings
) -> None:
    version = payment.get("x402Version")
    if version != VERSION or isinstance(version, bool):
        raise _Refused("invalid_x402_version", f"x402Version must be {VERSION}")
    accepted = payment.get("accepted")
    if not isinstance(accepted, dict):
        raise _Refused("invalid_payment_requirements", "accepted is missing")
    if accepted.get("scheme") != offer["scheme"]:
        raise _Refused("invalid_scheme", "accepted.scheme was not offered")
    if accepted.get("network") != offer["network"]:
        raise _Refused("invalid_network", "accepted.network was not offered")
    if accepted != offer:
        raise _Refused("invalid_payment_requirements", "accepted is not the offered entry, verbatim")
    resource = payment.get("resource")
    if resource is None:
        return
    shown_url = f"{pay_url}/other" if settings.fault == "wrong_resource" else pay_url
    if not isinstance(resource, dict) or resource.get("url") != shown_url:
        raise _Refused("invalid_payment_requirements", "resource.url is another invoice's")


def _authorization(payment: dict[str, Any]) -> tuple[dict[str, str], str]:
    payload = payment.get("payload")
    authorization = payload.get("authorization") if isinstance(payload, dict) else None
    signature = payload.get("signature") if isinstance(payload, dict) else None
    if not isinstance(authorization, dict):
        raise _Refused("invalid_payload", "payload.authorization is missing")
    shapes = {
        "from": _ADDRESS,
        "to": _ADDRESS,
        "value": _UINT,
        "validAfter": _UINT,
        "validBefore": _UINT,
        "nonce": _NONCE,
    }
    for name, shape in shapes.items():
        value = authorization.get(name)
        if not isinstance(value, str) or not shape.fullmatch(value):
            raise _Refused("invalid_payload", f"payload.authorization.{name} is malformed")
    if not isinstance(signature, str) or not _SIGNATURE.fullmatch(signature):
        raise _Refused("invalid_exact_evm_payload_signature", "payload.signature is not 65 bytes of hex")
    return {name: authorization[name] for name in shapes}, signature


def _check_terms(authorization: dict[str, str], offer: dict[str, Any], now: datetime) -> None:
    if authorization["to"].lower() != offer["payTo"].lower():
        raise _Refused("invalid_exact_evm_payload_recipient_mismatch", "the money would go elsewhere")
    if authorization["value"] != offer["amount"]:
        raise _Refused("invalid_exact_evm_payload_authorization_value", "the value is not the amount")
    moment = now.timestamp()
    if int(authorization["validAfter"]) > moment:
        raise _Refused("invalid_exact_evm_payload_authorization_valid_after", "not valid yet")
    if int(authorization["validBefore"]) <= moment:
        raise _Refused("invalid_exact_evm_payload_authorization_valid_before", "expired")
    if int(authorization["validBefore"]) > moment + offer["maxTimeoutSeconds"] + CLOCK_SKEW_S:
        raise _Refused(
            "invalid_exact_evm_payload_authorization_valid_before", "valid for longer than maxTimeoutSeconds"
        )


def _signer(authorization: dict[str, str], signature: str, terms: X402Settings) -> str:
    """The payer's checksum address, who must be `from`."""
    payer = eip3009.recover(
        authorization,
        signature,
        name=terms.asset_name,
        version=terms.asset_version,
        chain_id=terms.chain_id,
        contract=terms.asset,
    )
    if payer is None or payer.lower() != authorization["from"].lower():
        raise _Refused("invalid_exact_evm_payload_signature", "the authorisation is not signed by from")
    return payer
