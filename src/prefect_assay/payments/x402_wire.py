"""The x402 v2 headers: base64 JSON in and out. Reads anything without harm, judges nothing.

`PAYMENT-REQUIRED` comes from the other side before anything is allowed: it is limited in size, and whatever
is wrong with it is a PaymentRefused. `PAYMENT-RESPONSE` comes after the payment: reading it never fails.
"""

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import Field, ValidationError

from prefect_assay.errors import PaymentRefused
from prefect_assay.models.base import WireModel
from prefect_assay.payments.terms import Offers, Settlement, Terms, shown

REQUIRED_HEADER: Final = "PAYMENT-REQUIRED"
SIGNATURE_HEADER: Final = "PAYMENT-SIGNATURE"
RESPONSE_HEADER: Final = "PAYMENT-RESPONSE"
VERSION: Final = 2
SCHEME: Final = "exact"
TRANSFER_METHOD: Final = "eip3009"

HEADER_MAX: Final = 16_384
OFFERS_MAX: Final = 32
BRACKETS_MAX: Final = 256  # bounds the nesting, for every recursion over the content
RECEIPT_FIELDS: Final = ("success", "transaction", "network", "payer", "errorReason")
RECEIPT_VALUE_MAX: Final = 200

_PRINTABLE = re.compile(r"[\x20-\x7e]*")

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
    max_timeout_seconds: Annotated[int, Field(alias="maxTimeoutSeconds", ge=1, strict=True)]
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
        challenge = _decode(value)
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
        terms=tuple(item for item in read if isinstance(item, Terms)),
        ignored=tuple(item for item in read if isinstance(item, str)),
    )


def read_settlement(value: str | None) -> Settlement:
    """The `PAYMENT-RESPONSE` header; an unreadable one is the same as none."""
    if value is None:
        return Settlement()
    try:
        stated = _decode(value)
    except ValueError:
        return Settlement()
    success = stated.get("success")
    # Only known fields of plain text are kept: the receipt stands in results and artifacts.
    receipt = {
        name: text[:RECEIPT_VALUE_MAX]
        for name in RECEIPT_FIELDS
        if (text := _plain(stated.get(name))) is not None
    }
    return Settlement(
        success=success if isinstance(success, bool) else None,
        reason=receipt.get("errorReason"),
        receipt=receipt or None,
    )


def encode(content: Mapping[str, Any]) -> str:
    """A header value: standard base64 of compact JSON."""
    return b64encode(json.dumps(content, separators=(",", ":")).encode()).decode()


def _decode(value: str) -> dict[str, Any]:
    if len(value) > HEADER_MAX:
        raise ValueError(f"it has {len(value)} characters, more than {HEADER_MAX}")
    compact = (
        value.strip().rstrip("=").replace("-", "+").replace("_", "/")
    )  # unpadded and URL-safe forms, too
    try:
        raw = b64decode(compact + "=" * (-len(compact) % 4), validate=True)
        nested = raw.count(b"[") + raw.count(b"{") > BRACKETS_MAX
        content = None if nested else json.loads(raw, parse_constant=_no_constant)
    except ValueError:  # binascii.Error, UnicodeDecodeError and JSONDecodeError are all ValueErrors
        raise ValueError("it is not base64 of JSON") from None
    if not isinstance(content, dict):
        raise ValueError("it is not a JSON object, or one with too many parts")  # noqa: TRY004 - one error for every malformed header
    return content


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _read_entry(entry: object, resource: dict[str, Any] | None) -> Terms | str:
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


def _terms(read: _Entry, entry: dict[str, Any], resource: dict[str, Any] | None) -> Terms:
    url = resource.get("url") if resource else None
    return Terms(
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


def _plain(value: object) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) and _PRINTABLE.fullmatch(value) else None
