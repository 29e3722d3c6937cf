"""The `x402-exact` rail: a stablecoin transfer that the payer authorises by signature (EIP-3009, x402 v2).

The payer chooses the nonce of an authorisation. Here it follows from the service's address, the invoice and the wallet.
So all authorisations for one invoice share it, and the token contract refuses to settle a second.
Before the payment, a malformed `PAYMENT-REQUIRED` raises PaymentRefused. After it, reading an answer never raises.
"""

import json
import re
from base64 import b64encode
from collections.abc import Collection, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from hashlib import sha256
from http import HTTPStatus
from types import ModuleType
from typing import Annotated, Any, ClassVar, Final
from urllib.parse import urljoin, urlparse, urlsplit

from pydantic import Field, SecretStr, ValidationError

from prefect_assay.errors import ConfigurationError, PaymentRefused
from prefect_assay.orders.payments.interfaces import normalize_origin, read_header
from prefect_assay.orders.payments.rails.headers import (
    RECEIPT_VALUE_MAX,
    clean_line,
    decode_header,
    dump_compact,
    list_wrong_fields,
    select_receipt,
)
from prefect_assay.orders.payments.rails.rail import Rail
from prefect_assay.orders.payments.terms import (
    Offers,
    SettlementNotice,
    Terms,
    ascii_quoted,
    list_allowed,
)
from prefect_assay.service.models.base import ExactModel, Model
from prefect_assay.service.models.billing import PayAnswer
from prefect_assay.service.models.vocabulary import PaymentMethod

REQUIRED_HEADER: Final = "PAYMENT-REQUIRED"
SIGNATURE_HEADER: Final = "PAYMENT-SIGNATURE"
RESPONSE_HEADER: Final = "PAYMENT-RESPONSE"
VERSION: Final = 2
SCHEME: Final = "exact"
TRANSFER_METHOD: Final = "eip3009"
UNITS_PER_CENT: Final = 10_000  # USDC has 6 decimals

OFFERS_MAX: Final = 32
RECEIPT_FIELDS: Final = ("success", "transaction", "network", "payer", "errorReason")

# The reason of a refusal is one word; a sentence is the text of the challenge.
_REASON = re.compile(r"\w{1,80}", re.ASCII)
# Reasons found before anything is broadcast. One about the nonce or a transaction may come from an earlier sending.
_NEVER_BROADCAST = re.compile(
    r"(?!\w*(nonce|transaction|transfer|settle))((insufficient|invalid|missing|unsupported)_\w+|\w+_(expired|mismatch))"
)

Address = Annotated[str, Field(pattern=r"^0x[0-9a-fA-F]{40}$")]


class X402Terms(Terms):
    """A stablecoin transfer; `accepted` and `resource` are sent back with the credential, verbatim."""

    kind: ClassVar[str] = "exact"
    units_per_cent: ClassVar[int] = UNITS_PER_CENT

    max_timeout_seconds: int  # the requested validity
    resource_url: str | None  # the pay path, as the service states it
    domain_name: str  # of the token's EIP-712 domain
    domain_version: str
    accepted: dict[str, Any]
    resource: dict[str, Any] | None = None

    @property
    def chain_id(self) -> int:
        """The number in `eip155:<chain id>`."""
        return int(self.network.partition(":")[2])

    def valid_seconds(self, now: datetime) -> int:  # noqa: ARG002 - a length, whenever it starts
        """See `Terms`."""
        return self.max_timeout_seconds

    def until(self, now: datetime) -> datetime:
        """See `Terms`."""
        return now + timedelta(seconds=self.max_timeout_seconds)

    def summary(self) -> str:
        """See `Terms`."""
        return (
            f"{self.amount} of {self.asset} on {self.network} to {self.pay_to}, "
            f"valid for {self.max_timeout_seconds} s, for {ascii_quoted(self.resource_url)}"
        )


class X402Limits(Model):
    """The only terms that a wallet may sign; an empty list allows nothing.

    `networks` are CAIP-2 ids (`eip155:<chain id>`). `assets` are US dollar tokens with 6 decimals in CAIP-19
    (`eip155:<chain id>/erc20:<address>`), or the address alone where one network is allowed. `pay_to` are addresses.
    """

    networks: tuple[str, ...] = ()
    assets: tuple[str, ...] = ()
    pay_to: tuple[str, ...] = ()

    def require_unambiguous(self) -> None:
        """Raise ConfigurationError for assets without a network where several networks are allowed.

        An address is a different token on each network: worthless on a test network, anything on another.
        """
        several = len({network.lower() for network in self.networks}) > 1
        vague = tuple(asset for asset in self.assets if several and "/" not in asset)
        if vague:
            raise ConfigurationError(
                "the X402Wallet block allows several networks, and its assets do not say which of them they are on: "
                f"{', '.join(vague)}. Write each as {_format_caip19('eip155:8453', '0x...')}"
            )


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


def read_offers(value: str | None) -> Offers:
    """The offers in the `PAYMENT-REQUIRED` of a 402, or PaymentRefused."""
    if value is None:
        raise PaymentRefused(f"the service asks for payment, but not by x402 ({REQUIRED_HEADER})")
    try:
        challenge = decode_header(value)
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
            reason = clean_line(decode_header(refusal or "").get("error")) or ""
            refused = False if _NEVER_BROADCAST.fullmatch(reason) else None
            return (
                SettlementNotice(success=refused, reason=reason)
                if _REASON.fullmatch(reason)
                else SettlementNotice()
            )
        stated = decode_header(value)
    except ValueError:
        return SettlementNotice()
    success = stated.get("success")
    kept = select_receipt(stated, RECEIPT_FIELDS)
    reason = kept.get("errorReason", "")
    if success is False and (kept.get("transaction") or not _NEVER_BROADCAST.fullmatch(reason)):
        success = None  # it was broadcast or may have been, so it may still be settled
    return SettlementNotice(
        success=success if isinstance(success, bool) else None, reason=reason or None, receipt=kept or None
    )


def encode_content(content: Mapping[str, Any]) -> str:
    """A header value: standard base64 of compact JSON."""
    return b64encode(dump_compact(content)).decode()


def _read_entry(entry: object, resource: dict[str, Any] | None) -> X402Terms | str:
    if not isinstance(entry, dict):
        return f"{ascii_quoted(entry)}: not an object"
    if entry.get("scheme") != SCHEME:
        return f"scheme {ascii_quoted(entry.get('scheme'))} on {ascii_quoted(entry.get('network'))}: not known here"
    try:
        read = _Entry.model_validate(entry)
        terms = _build_terms(read, entry, resource)
    except ValidationError as error:
        return (
            f"exact on {ascii_quoted(entry.get('network'))}: malformed or missing {list_wrong_fields(error)}"
        )
    if read.extra.transfer_method != TRANSFER_METHOD:
        return f"exact on {read.network} by {ascii_quoted(read.extra.transfer_method)}: only {TRANSFER_METHOD} is known"
    return terms


def _build_terms(read: _Entry, entry: dict[str, Any], resource: dict[str, Any] | None) -> X402Terms:
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


class X402Rail(Rail):
    """Signs with one wallet key, within the limits. `payer` is the address of the wallet."""

    method = PaymentMethod.X402_EXACT
    title = "stablecoin transfer"
    wallet_block = "X402Wallet"
    challenge_header = REQUIRED_HEADER
    is_repeatable = True

    def __init__(self, private_key: SecretStr, limits: X402Limits) -> None:
        """Take the wallet's key.

        Raises:
            ConfigurationError: the key is not a private key, the extra `x402` is missing, or an asset is ambiguous.
        """
        limits.require_unambiguous()
        self._key = private_key
        self._limits = limits
        self.payer = address_of(private_key)

    def __repr__(self) -> str:
        return f"X402Rail(payer={self.payer!r})"

    def make_nonce(self, base_url: str, invoice_id: str, terms: Terms | None = None) -> str:  # noqa: ARG002 - the same for all terms
        """The one nonce of this invoice and wallet, as 0x and 64 hex characters."""
        parts = json.dumps([_NONCE_DOMAIN, base_url, invoice_id, self.payer.lower()])
        return f"0x{sha256(parts.encode()).hexdigest()}"

    def read_offers(self, answer: PayAnswer) -> Offers:
        """See `Rail`."""
        return read_offers(read_header(answer, REQUIRED_HEADER))

    def find_problems(self, terms: Terms, *, invoice_id: str, pay_url: str) -> tuple[str, ...]:  # noqa: ARG002 - the pay path names the invoice
        """See `Rail`."""
        transfer, limits = _require_transfer(terms), self._limits
        problems = (
            _check_resource(transfer, pay_url),
            _check_listed("network", transfer.network, limits.networks, "networks of the X402Wallet block"),
            _check_asset(transfer, limits),
            _check_listed("payTo", transfer.pay_to, limits.pay_to, "pay_to of the X402Wallet block"),
        )
        return tuple(problem for problem in problems if problem)

    def read_settlement(self, answer: PayAnswer) -> SettlementNotice:
        """See `Rail`."""
        refused = answer.status_code == HTTPStatus.PAYMENT_REQUIRED
        notice = read_settlement(
            read_header(answer, RESPONSE_HEADER), read_header(answer, REQUIRED_HEADER) if refused else None
        )
        why = clean_line(answer.body.get("error"))
        return (
            notice
            if notice.reason or not why
            else notice.model_copy(update={"reason": why[:RECEIPT_VALUE_MAX]})
        )

    def make_credential(self, terms: Terms, *, nonce: str, valid_before: int) -> dict[str, str]:
        """See `Rail`; the header is signed."""
        transfer = _require_transfer(terms)
        authorization = {
            "from": self.payer,
            "to": transfer.pay_to,
            "value": str(transfer.amount_units),
            "validAfter": "0",
            "validBefore": str(valid_before),
            "nonce": nonce,
        }
        signature = _sign_authorization(self._key, transfer, authorization)
        payload: dict[str, Any] = {
            "x402Version": VERSION,
            "accepted": transfer.accepted,
            "payload": {"signature": signature, "authorization": authorization},
        }
        if transfer.resource is not None:
            payload["resource"] = transfer.resource
        return {SIGNATURE_HEADER: encode_content(payload)}


def _require_transfer(terms: Terms) -> X402Terms:
    if not isinstance(terms, X402Terms):
        raise PaymentRefused(f"these are not terms of {PaymentMethod.X402_EXACT.value}: {terms.summary()}")
    return terms


def _check_resource(terms: X402Terms, expected: str) -> str | None:
    try:
        stated = terms.resource_url or ""
        resolved_url = urljoin(expected, stated)
        parts = urlsplit(resolved_url)
        same = (
            urlparse(stated).path != ""  # without a path, urljoin gives back what is expected
            and f"{normalize_origin(resolved_url)}{parts.path}" == expected
            and not (parts.query or parts.fragment or parts.username or parts.password)
        )
    except ValueError:
        same = False
    return (
        None if same else f"resource.url is {ascii_quoted(terms.resource_url)}, this invoice's is {expected}"
    )


def _check_listed(name: str, value: str, allowed: Collection[str], setting: str) -> str | None:
    if value.lower() in {item.lower() for item in allowed}:
        return None
    return f"{name} {ascii_quoted(value)} is not in {setting} ({list_allowed(allowed)})"


def _format_caip19(network: str, asset: str) -> str:
    """A token contract with its network."""
    return f"{network}/erc20:{asset}"


def _check_asset(terms: X402Terms, limits: X402Limits) -> str | None:
    allowed = {asset.lower() for asset in limits.assets}
    if allowed & {terms.asset.lower(), _format_caip19(terms.network, terms.asset).lower()}:
        return None
    return (
        f"asset {ascii_quoted(terms.asset)} is not in assets of the X402Wallet block ({list_allowed(limits.assets)}) for "
        f"{ascii_quoted(terms.network)}"
    )


def _eth_account() -> tuple[type[Any], ModuleType]:
    try:
        from eth_account import Account, messages  # noqa: PLC0415 - an extra, and half a second of imports
    except ImportError:
        raise ConfigurationError.missing_extra("x402", "paying with x402-exact") from None
    return Account, messages


def address_of(private_key: SecretStr) -> str:
    """Return the wallet's address; ConfigurationError when it is not a private key, or without the extra `x402`."""
    account, _ = _eth_account()
    # The cause is dropped and not only hidden: its frames and text could contain the key.
    with suppress(Exception):
        return str(account.from_key(private_key.get_secret_value()).address)
    raise ConfigurationError("the wallet's private key is not 32 bytes in hex; check the wallet block")


def _sign_authorization(private_key: SecretStr, terms: X402Terms, authorization: Mapping[str, str]) -> str:
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
