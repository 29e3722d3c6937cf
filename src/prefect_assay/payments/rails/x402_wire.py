"""The x402 v2 headers: base64 JSON in and out. Reads anything without harm, judges nothing.

`PAYMENT-REQUIRED` comes from the other side before anything is allowed: it is limited in size, and whatever
is wrong with it is a PaymentRefused. What comes after the payment is read without failing.
"""

import re
from base64 import b64encode
from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import Field, ValidationError

from prefect_assay.errors import PaymentRefused
from prefect_assay.models.base import WireModel
from prefect_assay.payments.rails.wire import compact, decode, plain, receipt
from prefect_assay.payments.terms import Offers, Settlement, X402Terms, shown

REQUIRED_HEADER: Final = "PAYMENT-REQUIRED"
SIGNATURE_HEADER: Final = "PAYMENT-SIGNATURE"
RESPONSE_HEADER: Final = "PAYMENT-RESPONSE"
VERSION: Final = 2
SCHEME: Final = "exact"
TRANSFER_METHOD: Final = "eip3009"

OFFERS_MAX: Final = 32
RECEIPT_FIELDS: Final = ("success", "transaction", "network", "payer", "errorReason")

# A reason for a refusal is one word; a sentence is the challenge's own text.
_REASON = re.compile(r"\w{1,80}", re.ASCII)
# Reasons found before anything is broadcast. One about the nonce or a transaction may come of an earlier sending.
_NEVER_BROADCAST = re.compile(
    r"(?!\w*(nonce|transaction|transfer|settle))((insufficient|invalid|missing|unsupported)_\w+|\w+_(expired|mismatch))"
)

Address = Annotated[str, Field(pattern=r"^0x[0-9a-fA-F]{40}$")]


class _Extra(WireModel):
    name: Annotated[str, Field(min_length=1, max_length=100)]
    version: Annotated[str, Field(min_length=1, max_length=20)]
    transfer_method: str = Field(default=TRANSFER_METHOD, alias="assetTransferMethod")


class _Entry(WireModel):
    network: Annotated[str, Field(pattern=r"^eip155:[1-9][0-9]{0,17}$")]
    asset: Address
    amount: Annotated[str, Field(pattern=r"^[0-9]{1,30}$")]
    pay_to: Address = Field(alias="payTo")
    max_timeout_seconds: Annotated[int, Field(alias="maxTimeoutSeconds", ge=0, strict=True)]
    extra: _Extra


def read_offers(value: str | None, authenticate: str | None = None) -> Offers:
    """The `PAYMENT-REQUIRED` header of a 402.

    Args:
        value: the header, None when there is none.
        authenticate: the answer's `WWW-Authenticate`, only to name what is offered instead.

    Raises:
        PaymentRefused: it is absent, too large, malformed, or of another version.
    """
    if value is None:
        instead = f"; it offers {shown(authenticate)}" if authenticate else ""
        raise PaymentRefused(f"the service asks for payment, but not by x402 ({REQUIRED_HEADER}){instead}")
    try:
        challenge = decode(value)
    except ValueError as error:
        raise PaymentRefused(f"the {REQUIRED_HEADER} header cannot be read: {error}") from None
    if challenge.get("x402Version") != VERSION:
        raise PaymentRefused(
            f"the challenge is x402 version {shown(challenge.get('x402Version'))}; only {VERSION} is spoken here"
        )
    accepts = challenge.get("accepts")
    if not isinstance(accepts, list) or len(accepts) > OFFERS_MAX:
        raise PaymentRefused(f"the challenge's `accepts` is not a list of at most {OFFERS_MAX} entries")
    resource = challenge.get("resource")
    read = [_read_entry(entry, resource if isinstance(resource, dict) else None) for entry in accepts]
    return Offers(
        terms=tuple(item for item in read if isinstance(item, X402Terms)),
        ignored=tuple(item for item in read if isinstance(item, str)),
    )


def read_settlement(value: str | None, refusal: str | None = None) -> Settlement:
    """The `PAYMENT-RESPONSE` header; without one, the `PAYMENT-REQUIRED` of a 402. An unreadable one says nothing."""
    try:
        if value is None:
            reason = plain(decode(refusal or "").get("error")) or ""
            refused = False if _NEVER_BROADCAST.fullmatch(reason) else None
            return Settlement(success=refused, reason=reason) if _REASON.fullmatch(reason) else Settlement()
        stated = decode(value)
    except ValueError:
        return Settlement()
    success = stated.get("success")
    kept = receipt(stated, RECEIPT_FIELDS)
    reason = kept.get("errorReason", "")
    if success is False and (kept.get("transaction") or not _NEVER_BROADCAST.fullmatch(reason)):
        success = None  # it was broadcast or may have been, so it may still be settled
    return Settlement(
        success=success if isinstance(success, bool) else None, reason=reason or None, receipt=kept or None
    )


def encode(content: Mapping[str, Any]) -> str:
    """A header value: standard base64 of compact JSON."""
    return b64encode(compact(content)).decode()


def _read_entry(entry: object, resource: dict[str, Any] | None) -> X402Terms | str:
    if not isinstance(entry, dict):
        return f"{shown(entry)}: not an object"
    if entry.get("scheme") != SCHEME:
        return f"scheme {shown(entry.get('scheme'))} on {shown(entry.get('network'))}: not known here"
    try:
        read = _Entry.model_validate(entry)
        terms = _terms(read, entry, resource)
    except ValidationError as error:
        places = {".".join(str(part) for part in item["loc"]) for item in error.errors(include_input=False)}
        return f"exact on {shown(entry.get('network'))}: malformed or missing {', '.join(sorted(places))}"
    if read.extra.transfer_method != TRANSFER_METHOD:
        return (
            f"exact on {read.network} by {shown(read.extra.transfer_method)}: only {TRANSFER_METHOD} is known"
        )
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
