"""The lab's x402-exact rail (x402 version 2): the payment challenge, and settlement without a chain.

All checks of a facilitator are made, and the transaction is invented. Contract wallets cannot be checked offline.
The caller looks up used nonces, and records the nonce with the invoice in one transaction.
"""

import base64
import hashlib
import importlib
import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Final

from assay_lab.errors import ConfigurationError
from assay_lab.rails.credentials import (
    HEADER_BYTES_MAX,
    CredentialError,
    CredentialVerdict,
    decode_credential,
)
from assay_lab.rails.rail import Bill, Challenge, LabRail, Settlements
from assay_lab.vocabulary import PaymentMethod

VERSION: Final = 2
SCHEME: Final = "exact"
REQUIRED_HEADER: Final = "PAYMENT-REQUIRED"
SIGNATURE_HEADER: Final = "PAYMENT-SIGNATURE"
RESPONSE_HEADER: Final = "PAYMENT-RESPONSE"
UNITS_PER_CENT: Final = 10_000  # USDC has six decimals
CLOCK_SKEW_S: Final = 60
# Facilitators refuse an authorisation that could expire before its transaction is in a block.
SETTLING_S: Final = 6
_TEN_YEARS_S: Final = 10 * 365 * 86_400
_ADDRESS: Final = re.compile(r"0x[0-9a-fA-F]{40}")
_NONCE: Final = re.compile(r"0x[0-9a-fA-F]{64}")
_SIGNATURE: Final = re.compile(r"0x[0-9a-fA-F]{130}")
_UINT: Final = re.compile(r"0|[1-9][0-9]{0,77}")
# The upper half of s is the same signature mirrored; token contracts refuse it.
_HALF_ORDER: Final = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0
# The only values of v that token contracts take; the library also reads 0 and 1.
_RECOVERY_BYTES: Final = frozenset({27, 28})
# The fields of an EIP-3009 authorisation: their EIP-712 types, and their form in JSON.
_FIELDS: Final = {
    "from": ("address", _ADDRESS),
    "to": ("address", _ADDRESS),
    "value": ("uint256", _UINT),
    "validAfter": ("uint256", _UINT),
    "validBefore": ("uint256", _UINT),
    "nonce": ("bytes32", _NONCE),
}


@dataclass(frozen=True, slots=True)
class X402Settings:
    """The terms of the x402-exact rail."""

    network: str = "eip155:84532"  # CAIP-2 name of an EVM chain; a test network
    # The token contract; name and version are its EIP-712 domain
    asset: str = "0x036CbD53842c5426634e7929541eC2318f3dCF7e"
    pay_to: str = "0x00000000000000000000000000000000001ab402"  # the default is unassigned
    asset_name: str = "USDC"
    asset_version: str = "2"
    max_timeout_seconds: int = 300  # how far ahead an authorisation may be valid

    @property
    def chain_id(self) -> int:
        """The number after `eip155:`."""
        return int(self.network.removeprefix("eip155:"))


class X402Rail(LabRail[X402Settings]):
    """See `LabRail`. An authorisation is used up by its payer and nonce together."""

    method = PaymentMethod.X402_EXACT
    credential_header = SIGNATURE_HEADER
    credential_text = f"x402-exact: the credential that answers {REQUIRED_HEADER}."

    def make_settings(self) -> X402Settings:
        """A test network, and a receiver that is unassigned."""
        return X402Settings()

    def show_settings(self, settings: X402Settings) -> dict[str, Any]:
        """All of them."""
        return asdict(settings)

    def challenge(
        self,
        bill: Bill,
        settings: X402Settings,
        now: datetime,  # noqa: ARG002 - a length of time is offered
        error: str | None = None,
    ) -> Challenge:
        """The terms as JSON, in the header and as the body (contract 2.12)."""
        return make_challenge(bill, settings, error)

    def settle(
        self, credential: str, bill: Bill, settings: X402Settings, settlements: Settlements, now: datetime
    ) -> CredentialVerdict:
        """Check a PAYMENT-SIGNATURE, and settle it without a chain."""
        return settle_credential(credential, bill, settings, nonce_used=settlements.has_both, now=now)

    def refuse(
        self, bill: Bill, settings: X402Settings, now: datetime, verdict: CredentialVerdict
    ) -> Challenge:
        """The challenge again, with the refusal in PAYMENT-RESPONSE."""
        asked = self.challenge(bill, settings, now, verdict.reason)
        return replace(asked, headers={**asked.headers, **self.receipt_headers(verdict)})

    def receipt_headers(self, verdict: CredentialVerdict) -> dict[str, str]:
        """PAYMENT-RESPONSE."""
        return {RESPONSE_HEADER: str(verdict.header)}


def encode_value(value: dict[str, Any]) -> str:
    """An x402 header value: standard base64 of JSON."""
    return base64.b64encode(json.dumps(value, separators=(",", ":")).encode()).decode("ascii")


def make_challenge(bill: Bill, settings: X402Settings, error: str | None = None) -> Challenge:
    """The 402 answer for an open invoice: headers, and as JSON body the same terms (contract 2.12)."""
    body: dict[str, Any] = {
        "x402Version": VERSION,
        "error": error or "payment required: repeat the request with a PAYMENT-SIGNATURE header",
        "resource": {
            "url": _resource_url(bill),
            "description": f"invoice {bill.invoice_id}",
            "mimeType": "application/json",
        },
        "accepts": [_make_offer(bill, settings)],
    }
    headers = {REQUIRED_HEADER: encode_value(body), "Cache-Control": "no-store"}
    if bill.fault == "missing_header":
        del headers[REQUIRED_HEADER]
    return Challenge(body, headers)


def _resource_url(bill: Bill) -> str:
    return f"{bill.pay_url}/other" if bill.fault == "wrong_resource" else bill.pay_url


def _make_offer(bill: Bill, settings: X402Settings) -> dict[str, Any]:
    amount = bill.amount_cents * UNITS_PER_CENT
    terms = _with_fault(settings, bill.fault)
    return {
        "scheme": SCHEME,
        "network": terms.network,
        "asset": terms.asset,
        "amount": str(amount * 2 if bill.fault == "wrong_amount" else amount),
        "payTo": terms.pay_to,
        "maxTimeoutSeconds": terms.max_timeout_seconds,
        "extra": {"name": terms.asset_name, "version": terms.asset_version},
    }


def _with_fault(settings: X402Settings, fault: str | None) -> X402Settings:
    """The offered terms: a fault is consistent, so a client without a guard would really pay them."""
    match fault:
        case "wrong_payee":
            return replace(settings, pay_to="0x000000000000000000000000000000000000dEaD")
        case "wrong_asset":
            return replace(settings, asset="0x0000000000000000000000000000000000000bad")
        case "wrong_network":
            return replace(settings, network="eip155:8453")
        case "expired_challenge":
            return replace(settings, max_timeout_seconds=0)
        case "ten_year_window":
            return replace(settings, max_timeout_seconds=_TEN_YEARS_S)
        case _:
            return settings


def settle_credential(
    header_value: str,
    bill: Bill,
    settings: X402Settings,
    *,
    nonce_used: Callable[[str, str], bool],
    now: datetime,
) -> CredentialVerdict:
    """Check a PAYMENT-SIGNATURE against the offer of `challenge` at wall time `now`, and settle it locally.

    `nonce_used` is called with payer and lower-case nonce. ConfigurationError when the extra `x402` is not installed.
    """
    terms = _with_fault(settings, bill.fault)
    network = terms.network
    try:
        payment = _decode_header(header_value)
        offer = _make_offer(bill, settings)
        _check_envelope(payment, offer, _resource_url(bill))
        authorization, signature = _read_authorization(payment)
        _check_terms(authorization, offer, now)
        payer = _find_signer(authorization, signature, terms)
        nonce = authorization["nonce"].lower()
        if nonce_used(payer, nonce):
            raise _make_error("invalid_transaction_state", "this authorisation has been used already")
    except CredentialError as error:
        refused = {"success": False, "errorReason": error.reason, "transaction": "", "network": network}
        return CredentialVerdict(
            False, error.detail, error.status, reason=error.reason, header=encode_value(refused)
        )
    transaction = "0x" + hashlib.sha256(f"{network}|{payer}|{nonce}".encode()).hexdigest()
    settled = {"success": True, "transaction": transaction, "network": network, "payer": payer}
    return CredentialVerdict(
        True,
        "settled",
        payer=payer,
        nonce=nonce,
        reference=transaction,
        amount_cents=int(authorization["value"]) // UNITS_PER_CENT,
        header=encode_value(settled),
    )


def _make_error(reason: str, detail: str) -> CredentialError:
    return CredentialError(detail, reason=reason)


def _decode_header(header_value: str) -> dict[str, Any]:
    if len(header_value) > HEADER_BYTES_MAX:
        raise _make_error("invalid_payload", f"the header is longer than {HEADER_BYTES_MAX} characters")
    return decode_credential(header_value.strip(), "header", reason="invalid_payload")


def _check_envelope(payment: dict[str, Any], offer: dict[str, Any], resource_url: str) -> None:
    version = payment.get("x402Version")
    if version != VERSION or isinstance(version, bool):
        raise _make_error("invalid_x402_version", f"x402Version must be {VERSION}")
    accepted = payment.get("accepted")
    if not isinstance(accepted, dict):
        raise _make_error("invalid_payment_requirements", "accepted is missing")
    if accepted.get("scheme") != offer["scheme"]:
        raise _make_error("invalid_scheme", "accepted.scheme was not offered")
    if accepted.get("network") != offer["network"]:
        raise _make_error("invalid_network", "accepted.network was not offered")
    if accepted != offer:
        raise _make_error("invalid_payment_requirements", "accepted is not the offered entry, verbatim")
    resource = payment.get("resource")
    if resource is not None and (not isinstance(resource, dict) or resource.get("url") != resource_url):
        raise _make_error("invalid_payment_requirements", "resource.url is another invoice's")


def _read_authorization(payment: dict[str, Any]) -> tuple[dict[str, str], str]:
    payload = payment.get("payload")
    authorization = payload.get("authorization") if isinstance(payload, dict) else None
    signature = payload.get("signature") if isinstance(payload, dict) else None
    if not isinstance(authorization, dict):
        raise _make_error("invalid_payload", "payload.authorization is missing")
    for name, (_, form) in _FIELDS.items():
        value = authorization.get(name)
        if not isinstance(value, str) or not form.fullmatch(value):
            raise _make_error("invalid_payload", f"payload.authorization.{name} is malformed")
    if not isinstance(signature, str) or not _SIGNATURE.fullmatch(signature):
        raise _make_error("invalid_exact_evm_payload_signature", "payload.signature is not 65 bytes of hex")
    return {name: authorization[name] for name in _FIELDS}, signature


def _check_terms(authorization: dict[str, str], offer: dict[str, Any], now: datetime) -> None:
    code = "invalid_exact_evm_payload"
    if authorization["to"].lower() != offer["payTo"].lower():
        raise _make_error(f"{code}_recipient_mismatch", "the money would go elsewhere")
    if authorization["value"] != offer["amount"]:
        raise _make_error(f"{code}_authorization_value", "the value is not the amount")
    moment, valid_before = now.timestamp(), int(authorization["validBefore"])
    if int(authorization["validAfter"]) > moment:
        raise _make_error(f"{code}_authorization_valid_after", "not valid yet")
    if valid_before < int(moment) + SETTLING_S:
        raise _make_error(f"{code}_authorization_valid_before", f"expired, or within {SETTLING_S} seconds")
    if valid_before > moment + offer["maxTimeoutSeconds"] + CLOCK_SKEW_S:
        raise _make_error(f"{code}_authorization_valid_before", "valid for longer than maxTimeoutSeconds")


def _find_signer(authorization: dict[str, str], signature: str, terms: X402Settings) -> str:
    """The payer's checksum address, who must be `from`."""
    payer = _recover_address(authorization, signature, terms)
    if payer is None or payer.lower() != authorization["from"].lower():
        raise _make_error("invalid_exact_evm_payload_signature", "the authorisation is not signed by from")
    return payer


def _recover_address(authorization: dict[str, str], signature: str, terms: X402Settings) -> str | None:
    """The checksum address that signed a `TransferWithAuthorization` (EIP-3009), or None for a bad signature."""
    account, messages = _load_library()
    if int(signature[66:130], 16) > _HALF_ORDER or int(signature[130:], 16) not in _RECOVERY_BYTES:
        return None
    message = messages.encode_typed_data(
        domain_data={
            "name": terms.asset_name,
            "version": terms.asset_version,
            "chainId": terms.chain_id,
            "verifyingContract": terms.asset.lower(),
        },
        message_types={
            "TransferWithAuthorization": [{"name": name, "type": kind} for name, (kind, _) in _FIELDS.items()]
        },
        message_data={
            # Lower case: the encoder refuses an address whose mixed case is not a checksum.
            "from": authorization["from"].lower(),
            "to": authorization["to"].lower(),
            "value": int(authorization["value"]),
            "validAfter": int(authorization["validAfter"]),
            "validBefore": int(authorization["validBefore"]),
            "nonce": bytes.fromhex(authorization["nonce"][2:]),
        },
    )
    try:
        return str(account.recover_message(message, signature=signature))
    except Exception:  # noqa: BLE001 - the library raises many types for a bad signature
        return None


def _load_library() -> tuple[Any, Any]:
    try:
        account = importlib.import_module("eth_account").Account
        return account, importlib.import_module("eth_account.messages")
    except ImportError:
        raise ConfigurationError(
            "settling x402 payments in the lab needs eth-account: pip install eth-account"
        ) from None
