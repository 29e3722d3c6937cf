"""The `x402-exact` rail: a stablecoin transfer that the payer authorises by signature (EIP-3009, x402 v2).

The payer chooses the nonce of an authorisation. Here it follows from the service's address, the invoice and the wallet.
So all authorisations for one invoice share it, and the token contract refuses to settle a second.
Before the payment, a malformed `PAYMENT-REQUIRED` raises PaymentRefused. After it, reading an answer never raises.
"""

import json
import re
from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from http import HTTPStatus
from types import ModuleType
from typing import Annotated, Any, Final

from pydantic import Field, SecretStr, ValidationError

from prefect_assay.errors import ConfigurationError, PaymentRefused
from prefect_assay.orders.payments.interfaces import header
from prefect_assay.orders.payments.rails.headers import (
    RECEIPT_VALUE_MAX,
    compact,
    decode,
    places,
    plain,
    receipt,
)
from prefect_assay.orders.payments.terms import (
    Offers,
    SettlementNotice,
    Terms,
    X402Terms,
    ascii_quoted,
)
from prefect_assay.service.models.base import ExactModel
from prefect_assay.service.models.billing import PayAnswer
from prefect_assay.service.models.vocabulary import PaymentMethod

REQUIRED_HEADER: Final = "PAYMENT-REQUIRED"
SIGNATURE_HEADER: Final = "PAYMENT-SIGNATURE"
RESPONSE_HEADER: Final = "PAYMENT-RESPONSE"
VERSION: Final = 2
SCHEME: Final = "exact"
TRANSFER_METHOD: Final = "eip3009"

OFFERS_MAX: Final = 32
RECEIPT_FIELDS: Final = ("success", "transaction", "network", "payer", "errorReason")

# The reason of a refusal is one word; a sentence is the text of the challenge.
_REASON = re.compile(r"\w{1,80}", re.ASCII)
# Reasons found before anything is broadcast. One about the nonce or a transaction may come from an earlier sending.
_NEVER_BROADCAST = re.compile(
    r"(?!\w*(nonce|transaction|transfer|settle))((insufficient|invalid|missing|unsupported)_\w+|\w+_(expired|mismatch))"
)

Address = Annotated[str, Field(pattern=r"^0x[0-9a-fA-F]{40}$")]


class _Extra(ExactModel):
    name: Annotated[str, Field(min_length=1, max_length=100)]
    version: Annotated[str, Field(min_length=1, max_length=20)]
    transfer_method: str = Field(default=TRANSFER_METHOD, alias="assetTransferMethod")


class _Entry(ExactModel):
    network: Annotated[str, Field(pattern=r"^eip155:[1-9][0-9]{0,17}$")]
    asset: Address
    amount: Annotated[str, Field(pattern=r"^[0-9]{1,30}$")]
    pay_to: Address = Field(alias="payTo")
    max_timeout_seconds: Annotated[int, Field(alias="maxTimeoutSeconds", ge=0, strict=True)]
    extra: _Extra


def read_offers(value: str | None, authenticate: str | None = None) -> Offers:
    """The offers in the `PAYMENT-REQUIRED` of a 402, or PaymentRefused; `authenticate` is what is offered instead."""
    if value is None:
        instead = f"; it offers {ascii_quoted(authenticate)}" if authenticate else ""
        raise PaymentRefused(f"the service asks for payment, but not by x402 ({REQUIRED_HEADER}){instead}")
    try:
        challenge = decode(value)
    except ValueError as error:
        raise PaymentRefused(f"the {REQUIRED_HEADER} header cannot be read: {error}") from None
    if challenge.get("x402Version") != VERSION:
        raise PaymentRefused(
            f"the challenge is x402 version {ascii_quoted(challenge.get('x402Version'))}; only {VERSION} is spoken here"
        )
    accepts = challenge.get("accepts")
    if not isinstance(accepts, list) or len(accepts) > OFFERS_MAX:
        raise PaymentRefused(f"the challenge's `accepts` is not a list of at most {OFFERS_MAX} entries")
    resource = challenge.get("resource")
    read = [_read_entry(entry, resource if isinstance(resource, dict) else None) for entry in accepts]
    return Offers.of(read)


def read_settlement(value: str | None, refusal: str | None = None) -> SettlementNotice:
    """The `PAYMENT-RESPONSE` header or, without one, the `PAYMENT-REQUIRED` of a 402; empty when unreadable."""
    try:
        if value is None:
            reason = plain(decode(refusal or "").get("error")) or ""
            refused = False if _NEVER_BROADCAST.fullmatch(reason) else None
            return (
                SettlementNotice(success=refused, reason=reason)
                if _REASON.fullmatch(reason)
                else SettlementNotice()
            )
        stated = decode(value)
    except ValueError:
        return SettlementNotice()
    success = stated.get("success")
    kept = receipt(stated, RECEIPT_FIELDS)
    reason = kept.get("errorReason", "")
    if success is False and (kept.get("transaction") or not _NEVER_BROADCAST.fullmatch(reason)):
        success = None  # it was broadcast or may have been, so it may still be settled
    return SettlementNotice(
        success=success if isinstance(success, bool) else None, reason=reason or None, receipt=kept or None
    )


def encode(content: Mapping[str, Any]) -> str:
    """A header value: standard base64 of compact JSON."""
    return b64encode(compact(content)).decode()


def _read_entry(entry: object, resource: dict[str, Any] | None) -> X402Terms | str:
    if not isinstance(entry, dict):
        return f"{ascii_quoted(entry)}: not an object"
    if entry.get("scheme") != SCHEME:
        return f"scheme {ascii_quoted(entry.get('scheme'))} on {ascii_quoted(entry.get('network'))}: not known here"
    try:
        read = _Entry.model_validate(entry)
        terms = _terms(read, entry, resource)
    except ValidationError as error:
        return f"exact on {ascii_quoted(entry.get('network'))}: malformed or missing {places(error)}"
    if read.extra.transfer_method != TRANSFER_METHOD:
        return f"exact on {read.network} by {ascii_quoted(read.extra.transfer_method)}: only {TRANSFER_METHOD} is known"
    return terms


def _terms(read: _Entry, entry: dict[str, Any], resource: dict[str, Any] | None) -> X402Terms:
    url = resource.get("url") if resource else None
    return X402Terms(
        network=read.network,
        asset=read.asset,
        pay_to=read.pay_to,
        amount_units=int(read.amount),
        max_timeout_seconds=read.max_timeout_seconds,
        resource_url=url if isinstance(url, str) else None,
        domain_name=read.extra.name,
        domain_version=read.extra.version,
        accepted=entry,
        resource=resource,
    )


_NONCE_DOMAIN: Final = "prefect-assay/x402-exact/nonce/1"

_AUTHORIZATION_TYPES: Final = {
    "TransferWithAuthorization": [
        {"name": "from", "type": "address"},
        {"name": "to", "type": "address"},
        {"name": "value", "type": "uint256"},
        {"name": "validAfter", "type": "uint256"},
        {"name": "validBefore", "type": "uint256"},
        {"name": "nonce", "type": "bytes32"},
    ]
}


class X402Rail:
    """Signs with one wallet key. No repr, error, ledger entry or log contains the key; `payer` is its address."""

    method = PaymentMethod.X402_EXACT
    repeatable = True

    def __init__(self, private_key: SecretStr) -> None:
        """Take the wallet's key; ConfigurationError when it is no private key, or without the extra `x402`."""
        self._key = private_key
        self.payer = address_of(private_key)

    def __repr__(self) -> str:
        return f"X402Rail(payer={self.payer!r})"

    def nonce(self, base_url: str, invoice_id: str, terms: Terms | None = None) -> str:  # noqa: ARG002 - the same for all terms
        """The one nonce of this invoice and wallet, as 0x and 64 hex characters."""
        parts = json.dumps([_NONCE_DOMAIN, base_url, invoice_id, self.payer.lower()])
        return f"0x{sha256(parts.encode()).hexdigest()}"

    def offers(self, answer: PayAnswer) -> Offers:
        """The offers of a 402; PaymentRefused when it cannot be read."""
        return read_offers(header(answer, REQUIRED_HEADER), header(answer, "WWW-Authenticate"))

    def settlement(self, answer: PayAnswer) -> SettlementNotice:
        """What an answer states about the payment; never fails."""
        refused = answer.status_code == HTTPStatus.PAYMENT_REQUIRED
        said = read_settlement(
            header(answer, RESPONSE_HEADER), header(answer, REQUIRED_HEADER) if refused else None
        )
        why = plain(answer.body.get("error"))
        return said if said.reason or not why else said.model_copy(update={"reason": why[:RECEIPT_VALUE_MAX]})

    def credential(self, terms: Terms, *, nonce: str, valid_before: int) -> dict[str, str]:
        """The request header that pays, signed; PaymentRefused when the terms cannot be signed."""
        if not isinstance(terms, X402Terms):
            raise PaymentRefused(f"these are no terms of {self.method.value}: {terms.summary()}")
        authorization = {
            "from": self.payer,
            "to": terms.pay_to,
            "value": str(terms.amount_units),
            "validAfter": "0",
            "validBefore": str(valid_before),
            "nonce": nonce,
        }
        signature = _sign(self._key, terms, authorization)
        payload: dict[str, Any] = {
            "x402Version": VERSION,
            "accepted": terms.accepted,
            "payload": {"signature": signature, "authorization": authorization},
        }
        if terms.resource is not None:
            payload["resource"] = terms.resource
        return {SIGNATURE_HEADER: encode(payload)}


def _eth_account() -> tuple[type[Any], ModuleType]:
    try:
        from eth_account import Account, messages  # noqa: PLC0415 - an extra, and half a second of imports
    except ImportError:
        raise ConfigurationError.missing_extra("x402", "paying with x402-exact") from None
    return Account, messages


def address_of(private_key: SecretStr) -> str:
    """Return the wallet's address; ConfigurationError when it is no private key, or without the extra `x402`."""
    account, _ = _eth_account()
    # The cause is dropped and not only hidden: its frames and text could contain the key.
    with suppress(Exception):
        return str(account.from_key(private_key.get_secret_value()).address)
    raise ConfigurationError("the wallet's private key is not 32 bytes in hex; check the wallet block")


def _sign(private_key: SecretStr, terms: X402Terms, authorization: Mapping[str, str]) -> str:
    account, messages = _eth_account()
    numbers = {name: int(authorization[name]) for name in ("value", "validAfter", "validBefore")}
    with suppress(Exception):  # as above
        signable = messages.encode_typed_data(
            domain_data={
                "name": terms.domain_name,
                "version": terms.domain_version,
                "chainId": terms.chain_id,
                # Lower case: a mixed-case address with a wrong checksum is refused by the library.
                "verifyingContract": terms.asset.lower(),
            },
            message_types=_AUTHORIZATION_TYPES,
            message_data={
                **numbers,
                "from": authorization["from"].lower(),
                "to": authorization["to"].lower(),
                "nonce": bytes.fromhex(authorization["nonce"].removeprefix("0x")),
            },
        )
        signed = account.sign_message(signable, private_key.get_secret_value())
        return f"0x{bytes(signed.signature).hex()}"
    raise PaymentRefused(f"the terms cannot be signed: {terms.summary()}")
