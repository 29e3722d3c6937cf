"""The verdict on one payment credential, and reading one. Shared by all rails."""

import base64
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from pydantic_core import from_json

HEADER_BYTES_MAX: Final = 16_384


@dataclass(frozen=True, slots=True)
class CredentialVerdict:
    """The outcome of checking, and settling, one credential."""

    ok: bool
    detail: str  # why it is refused
    status: int = HTTPStatus.OK  # 200, 402 for another try, 403 for a credential that was used before
    reason: str | None = None  # an x402 error code when refused
    payer: str | None = None  # once proved: the signer's checksum address, or the fingerprint of a token
    nonce: str | None = None  # what makes the credential unique: record (payer, nonce) with the invoice
    reference: str | None = None  # the invented transaction or charge
    amount_cents: int | None = None  # what was settled: a fault may have asked for more than the invoice
    header: str | None = None  # the value of PAYMENT-RESPONSE or Payment-Receipt


class CredentialError(Exception):
    """A credential that fails a check. Never leaves the rails."""

    def __init__(
        self, detail: str, *, reason: str | None = None, status: int = HTTPStatus.PAYMENT_REQUIRED
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.reason = reason
        self.status = status


def decode_credential(
    text: str, what: str, *, url_safe: bool = False, reason: str | None = None
) -> dict[str, Any]:
    """The JSON object in base64 text; the URL-safe form has no padding. CredentialError for other text."""
    if url_safe:
        text = text.rstrip("=")
        text += "=" * (-len(text) % 4)
    try:
        credential = from_json(base64.b64decode(text, altchars=b"-_" if url_safe else None, validate=True))
    except ValueError:
        form = "base64url" if url_safe else "base64"
        raise CredentialError(f"the {what} is not {form} of JSON", reason=reason) from None
    if not isinstance(credential, dict):
        raise CredentialError(f"the {what} is not a JSON object", reason=reason)
    return credential
