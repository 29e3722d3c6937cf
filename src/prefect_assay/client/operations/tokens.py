"""Operations on tokens (contract 2.13, 4.6 and 5): whom one speaks for, list, narrow, revoke, mint as a partner.

A token's value is in no repr, no error and no log: it goes out as part of a body and comes back as `SecretStr`.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final, Unpack

from pydantic import SecretStr

from prefect_assay.client import checks
from prefect_assay.client.decoding import get, once
from prefect_assay.client.http.pagination import Pager
from prefect_assay.client.http.request import Operation
from prefect_assay.client.lists import PageOptions, WalkOptions, listed, walked
from prefect_assay.errors import InvalidRequest
from prefect_assay.models.identity import Identity
from prefect_assay.models.page import Page
from prefect_assay.models.partner import ExistingOrg, MintedToken, MintRequest
from prefect_assay.models.tokens import AttenuatedToken, Attenuation, Revocation, TokenRecord

# service-shapes, Tokens and identity. Resources are not listed anywhere and are left to the service.
ACTIONS: Final = ("list", "read", "create", "update", "delete", "issue", "revoke", "mint_token")


def whoami() -> Operation[Identity]:
    """GET /whoami: the user, the organizations and the permissions behind the token.

    Raises:
        Unauthorized: the token is missing, unknown, expired or revoked.
    """
    return get("/whoami", Identity)


def tokens(
    **chosen: Unpack[PageOptions],
) -> Operation[Page[TokenRecord]]:
    """GET /tokens: one page of the records of the organization's tokens, never their values."""
    return listed("/tokens", TokenRecord, **chosen)


def iter_tokens(
    **chosen: Unpack[WalkOptions],
) -> Pager[TokenRecord]:
    """All matching records, page by page as they are asked for."""
    return walked(tokens, **chosen)


def attenuate_token(
    token: SecretStr | str,
    attenuation: Attenuation,
    name: str,
    *,
    attenuated_parent_token_id: str | None = None,
) -> Operation[AttenuatedToken]:
    """POST /tokens/attenuate, once: a token that may do less. The service keeps a record of it.

    Args:
        token: the token to narrow, which is not changed.
        attenuation: what the new one may not do, besides what the old one may not.
        name: label of the new token; need not be unique.
        attenuated_parent_token_id: id of the old token's record, when the old one is an attenuated token itself.

    Raises:
        InvalidRequest: an unknown action, an expiry that has passed, ids that are none; nothing was sent.
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
        "A token may exist that nobody holds: list the tokens before asking again",
        body,
        secrets=(value,),
    )


def revoke_token() -> Operation[Revocation]:
    """POST /tokens/revoke, once: end the calling token, its root and every token made of it.

    The service may be told twice, but after a success this token is answered with 401, so that a repeat could not
    tell success from a token that was never valid.

    Raises:
        OutcomeUnknown: the answer was lost: `whoami` answers 401 once it is revoked.
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
    )


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
