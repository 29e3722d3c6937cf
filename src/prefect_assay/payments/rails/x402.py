"""The `x402-exact` rail: a stablecoin transfer that the payer authorises by signature (EIP-3009).

The nonce of an authorisation is the payer's choice. Here it follows from the service's address, the invoice
and the wallet, so that every authorisation ever signed for one invoice carries the same nonce, and the token
contract itself refuses to settle a second one. This module judges no terms; the guard has done so before.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from types import ModuleType
from typing import Any, Final

from pydantic import SecretStr

from prefect_assay.errors import ConfigurationError, PaymentRefused
from prefect_assay.models.vocabulary import PaymentMethod
from prefect_assay.payments.api import HTTP_PAYMENT_REQUIRED, PayAnswer, header
from prefect_assay.payments.rails.wire import RECEIPT_VALUE_MAX, plain
from prefect_assay.payments.rails.x402_wire import (
    REQUIRED_HEADER,
    RESPONSE_HEADER,
    SIGNATURE_HEADER,
    VERSION,
    encode,
    read_offers,
    read_settlement,
)
from prefect_assay.payments.terms import Offers, Settlement, Terms, X402Terms

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
    """Signs with one wallet key. The key stays inside: not in the repr, an error, the ledger or a log.

    Attributes:
        method: `x402-exact`.
        payer: the wallet's address.
    """

    method = PaymentMethod.X402_EXACT
    repeatable = True

    def __init__(self, private_key: SecretStr) -> None:
        """Take the wallet's key.

        Raises:
            ConfigurationError: the extra `x402` is missing, or the key is no private key.
        """
        self._key = private_key
        self.payer = _address_of(private_key)

    def __repr__(self) -> str:
        return f"X402Rail(payer={self.payer!r})"

    def nonce(self, base_url: str, invoice_id: str, terms: Terms | None = None) -> str:  # noqa: ARG002 - the same for all terms
        """The one nonce of this invoice and wallet, as 0x and 64 hex characters."""
        parts = json.dumps([_NONCE_DOMAIN, base_url, invoice_id, self.payer.lower()])
        return f"0x{sha256(parts.encode()).hexdigest()}"

    def offers(self, answer: PayAnswer) -> Offers:
        """What a 402 offers; PaymentRefused when it cannot be read."""
        return read_offers(header(answer, REQUIRED_HEADER), header(answer, "WWW-Authenticate"))

    def settlement(self, answer: PayAnswer) -> Settlement:
        """What an answer says became of the payment; never fails."""
        refused = answer.status_code == HTTP_PAYMENT_REQUIRED
        said = read_settlement(
            header(answer, RESPONSE_HEADER), header(answer, REQUIRED_HEADER) if refused else None
        )
        why = plain(answer.body.get("error"))
        return said if said.reason or not why else said.model_copy(update={"reason": why[:RECEIPT_VALUE_MAX]})

    def credential(self, terms: Terms, *, nonce: str, valid_before: int) -> dict[str, str]:
        """The request header that pays, signed.

        Args:
            terms: accepted by the guard.
            nonce: from `nonce`.
            valid_before: end of the authorisation, in Unix seconds.

        Raises:
            PaymentRefused: the terms cannot be signed.
        """
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


def _address_of(private_key: SecretStr) -> str:
    account, _ = _eth_account()
    # The cause is dropped and not only hidden: its frames and text could carry the key.
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
