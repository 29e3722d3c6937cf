"""Operations on tokens (contract 2.13, 4.6 and 5): identity, list, attenuate, revoke, mint as a partner.

A token's value is in no repr, no error and no log: it goes out as part of a body and comes back as `SecretStr`.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final, Unpack

from pydantic import SecretStr

from prefect_assay.errors import ConfigurationError, InvalidRequest
from prefect_assay.service.client import checks
from prefect_assay.service.client.decoding import get, once
from prefect_assay.service.client.http.pagination import Pager
from prefect_assay.service.client.http.request import Operation
from prefect_assay.service.client.lists import Listing, PageOptions, WalkOptions
from prefect_assay.service.models.base import Page
from prefect_assay.service.models.tokens import (
    AttenuatedToken,
    Attenuation,
    ExistingOrg,
    Identity,
    MintedToken,
    MintRequest,
    Revocation,
    TokenRecord,
)

# service-shapes, Tokens and identity. Resources are not listed anywhere and are left to the service.
ACTIONS: Final = ("list", "read", "create", "update", "delete", "issue", "revoke", "mint_token")
_TOKENS: Final = Listing("/tokens", TokenRecord)
_CHECKS: Final = {
    "allowed_actions": "check if action($action), {allowed_actions}.contains($action);",
    "allowed_org_ids": "check if org($org), {allowed_org_ids}.contains($org);",
    "allowed_resources": "check if resource($resource), {allowed_resources}.contains($resource);",
    "expires_at": "check if time($time), $time < {expires_at};",
    "non_destructive": "check if destructive(false);",
    "payment_policy": (
        "check if payment(false) or payment_method($method), {payment_policy}.contains($method);"
    ),
    "read_only": "check if action($action), {reading}.contains($action);",
}
# The encoded token follows prefix and slug without a separator. A Biscuit starts with one of two field numbers,
# which are C and E in base64.
_STARTS: Final = re.compile(r"(?<=[A-Za-z0-9_-])[CE]")
_STARTS_MAX: Final = 100


def whoami() -> Operation[Identity]:
    """GET /whoami: the user, the organizations and the permissions of the token."""
    return get("/whoami", Identity)


def tokens(**options: Unpack[PageOptions]) -> Operation[Page[TokenRecord]]:
    """GET /tokens: one page of the organization's token records, never their values."""
    return _TOKENS.page(options)


def iter_tokens(**options: Unpack[WalkOptions]) -> Pager[TokenRecord]:
    """All matching records."""
    return _TOKENS.rows(options)


def attenuate_token(
    token: SecretStr | str,
    attenuation: Attenuation,
    name: str,
    *,
    attenuated_parent_token_id: str | None = None,
) -> Operation[AttenuatedToken]:
    """POST /tokens/attenuate, once: a token that may do less. The service keeps a record of it.

    `attenuated_parent_token_id` is the record of `token` when that is an attenuated token itself.

    Raises:
        InvalidRequest: an unknown action, an expiry in the past, malformed ids; nothing was sent.
        Forbidden: the calling token lacks `token:read`.
        OutcomeUnknown: the answer was lost, and with it the token's value: revoke it by its record.
    """
    value = token.get_secret_value() if isinstance(token, SecretStr) else token
    found = [*checks.text("token", value), *checks.text("name", name), *_restrictions(attenuation)]
    body: dict[str, object] = {
        "token": value,
        "name": name,
        "attenuation": attenuation.model_dump(mode="json", exclude_none=True),
    }
    if attenuated_parent_token_id is not None:
        found += checks.uuid("attenuated_parent_token_id", attenuated_parent_token_id)
        body["attenuated_parent_token_id"] = attenuated_parent_token_id
    InvalidRequest.check(found)
    return once(
        "POST",
        "/tokens/attenuate",
        AttenuatedToken,
        "A token may exist whose value is lost: list the tokens before asking again",
        body,
        secrets=(value,),
        secret=True,
    )


def revoke_token() -> Operation[Revocation]:
    """POST /tokens/revoke, once: end the calling token, its root and every token derived from it.

    A repeat would do no harm, but after a success this token gets a 401, as one that was never valid does. After
    `OutcomeUnknown`, `whoami` answers 401 once it is revoked.
    """
    return once("POST", "/tokens/revoke", Revocation, "Ask whoami: 401 means that the token is revoked")


def mint_token(request: MintRequest) -> Operation[MintedToken]:
    """POST /partners/mint-token, once: a token for a customer's new user. Needs the partner role.

    Raises:
        InvalidRequest: with every finding; nothing was sent.
        Conflict: the user exists already.
        OutcomeUnknown: the answer was lost: the user may exist, and minting for it again is a conflict.
    """
    InvalidRequest.check(list(_mint(request)))
    return once(
        "POST",
        "/partners/mint-token",
        MintedToken,
        "The user may exist already, in which case minting again is a conflict",
        request.wire(),
        secret=True,
    )


def attenuate_offline(token: SecretStr | str, attenuation: Attenuation, public_key: str) -> SecretStr:
    """A token that may do less, made by appending checks to a Biscuit token without the service.

    The service does not know the result, which works within its checks and dies with its parent. Its checks have the
    text of the service's own. `public_key` is the service's, `ed25519/<hex>` or the hex digits alone; the token,
    `<prefix>_<slug><encoded>`, is verified with it first. Resources are in the singular.

    Raises:
        InvalidRequest: the key is malformed, or the token is not signed with it.
        ConfigurationError: the extra is not installed.
    """
    try:
        import biscuit_auth  # noqa: PLC0415 - an extra that only this function needs
    except ImportError:
        raise ConfigurationError.missing_extra("tokens", "attenuating tokens offline") from None
    text = token.get_secret_value() if isinstance(token, SecretStr) else token
    try:
        key = biscuit_auth.PublicKey(public_key if "/" in public_key else f"ed25519/{public_key}")
    except ValueError:
        raise InvalidRequest(["public_key: must be ed25519/ and 64 hexadecimal digits"]) from None
    for outside, body in _splits(text):
        try:
            biscuit = biscuit_auth.Biscuit.from_base64(body, key)
        except biscuit_auth.BiscuitValidationError:
            continue
        checks = "\n".join(check for name, check in _CHECKS.items() if getattr(attenuation, name))
        child = biscuit.append(biscuit_auth.BlockBuilder(checks, _check_values(attenuation)))
        return SecretStr(outside + child.to_base64())
    # The cause is left out: the library's message may quote the token.
    raise InvalidRequest(["token: it is no token that was signed with this public key"])


def _restrictions(attenuation: Attenuation) -> Iterator[str]:
    for action in attenuation.allowed_actions or ():
        yield from checks.one_of("attenuation.allowed_actions", action, ACTIONS)
    for org_id in attenuation.allowed_org_ids or ():
        yield from checks.uuid("attenuation.allowed_org_ids", org_id)
    for resource in attenuation.allowed_resources or ():
        yield from checks.text("attenuation.allowed_resources", resource)
    yield from _expiry("attenuation.expires_at", attenuation.expires_at)


def _mint(request: MintRequest) -> Iterator[str]:
    if isinstance(request.org, ExistingOrg):
        yield from checks.uuid("org.id", request.org.id)
    else:
        yield from checks.text("org.name", request.org.name)
    before, at, after = request.email.partition("@")
    if not (before and at and after) or any(letter.isspace() for letter in request.email):
        yield "email: must be an e-mail address"
    yield from _expiry("expires_at", request.expires_at)


def _expiry(field: str, moment: datetime | None) -> Iterator[str]:
    if moment is not None and moment <= datetime.now(UTC):
        yield f"{field}: {moment.isoformat()} has passed"


def _splits(text: str) -> Iterator[tuple[str, str]]:
    first = text.find("_") + 1
    for start in list(_STARTS.finditer(text, first or len(text)))[:_STARTS_MAX]:
        yield text[: start.start()], text[start.start() :]


def _check_values(attenuation: Attenuation) -> dict[str, Any]:
    values = {
        "allowed_actions": set(attenuation.allowed_actions or ()),
        "allowed_resources": set(attenuation.allowed_resources or ()),
        "allowed_org_ids": {org_id.lower() for org_id in attenuation.allowed_org_ids or ()},
        "expires_at": attenuation.expires_at and attenuation.expires_at.replace(microsecond=0),
        "payment_policy": list(attenuation.payment_policy or ()),  # an array: its order is the preference
        "reading": {"list", "read"} if attenuation.read_only else None,
    }
    return {name: value for name, value in values.items() if value}
