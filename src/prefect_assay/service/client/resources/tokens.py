"""Tokens (contract 2.13, 4.6 and 5): identity, list, attenuate, revoke, mint as a partner.

A token's value is in no repr, no error and no log: it goes out as part of a body and comes back as `SecretStr`.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from pydantic import SecretStr

from prefect_assay.errors import InvalidRequest
from prefect_assay.service.client import checks
from prefect_assay.service.client.decoding import build_act, build_read
from prefect_assay.service.client.filters import Condition, Sorting
from prefect_assay.service.client.parameters import FieldTest
from prefect_assay.service.client.resources.resource import ListQuery, Resource
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
from prefect_assay.service.models.vocabulary import PAGE_LIMIT_MAX

_TOKENS: Final = ListQuery(path="/tokens", row=TokenRecord)
# service-shapes, Tokens and identity. Resources are not listed anywhere and are left to the service.
ACTIONS: Final = ("list", "read", "create", "update", "delete", "issue", "revoke", "mint_token")


class Tokens(Resource):
    """Who calls, and restricting and revoking tokens (contract 4.6 and 5)."""

    def whoami(self) -> Identity:
        """Read the user, the organizations and the permissions of the token: GET /whoami (published with contract 5).

        Example:
            ```python
            print(client.tokens.whoami().permissions)
            ```
        """
        return self._sender.run(build_read("/whoami", Identity))

    def list(
        self,
        *,
        filter: Condition | None = None,
        search: str | None = None,
        sort: Sorting | None = None,
        where: Sequence[FieldTest] = (),
        limit: int | None = None,
        offset: int | None = None,
    ) -> Page[TokenRecord]:
        """List one page of the organization's token records, never their values: GET /tokens (contract 4.6).

        The parameters are those of `experiments.list`.

        Example:
            ```python
            print([row.name for row in client.tokens.list(limit=10).items])
            ```
        """
        query = _TOKENS.select(filter, search, sort, where)
        return self._sender.run(query.build_page(limit, offset))

    def iterate(
        self,
        *,
        filter: Condition | None = None,
        search: str | None = None,
        sort: Sorting | None = None,
        where: Sequence[FieldTest] = (),
        page_size: int = PAGE_LIMIT_MAX,
    ) -> Iterator[TokenRecord]:
        """Yield all matching records, page by page; parameters as in `list` (contract 4.6).

        Example:
            ```python
            for row in client.tokens.iterate():
                print(row.id, row.name)
            ```
        """
        query = _TOKENS.select(filter, search, sort, where)
        return query.iterate(self._sender, page_size)

    def attenuate(
        self,
        token: SecretStr | str,
        attenuation: Attenuation,
        name: str,
        *,
        attenuated_parent_token_id: str | None = None,
    ) -> AttenuatedToken:
        """Make a token that may do less, sent once: POST /tokens/attenuate (contract 2.13 and 4.6).

        The service keeps a record of it. `attenuated_parent_token_id` is the record of `token` when that is an attenuated
        token itself.

        Raises:
            InvalidRequest: an unknown action, an expiry in the past, malformed ids; nothing was sent.
            Forbidden: the calling token lacks `token:read`.
            OutcomeUnknown: the answer was lost, and with it the token's value: revoke it by its record.

        Example:
            ```python
            reading = client.tokens.attenuate(token, Attenuation(read_only=True), "dashboard")
            print(reading.id)  # reading.token is a SecretStr
            ```
        """
        value = token.get_secret_value() if isinstance(token, SecretStr) else token
        findings = [
            *checks.text("token", value),
            *checks.text("name", name),
            *_check_restrictions(attenuation),
        ]
        body: dict[str, object] = {
            "token": value,
            "name": name,
            "attenuation": attenuation.model_dump(mode="json", exclude_none=True),
        }
        if attenuated_parent_token_id is not None:
            findings += checks.uuid("attenuated_parent_token_id", attenuated_parent_token_id)
            body["attenuated_parent_token_id"] = attenuated_parent_token_id
        InvalidRequest.check(findings)
        operation = build_act(
            "POST",
            "/tokens/attenuate",
            AttenuatedToken,
            "A token may exist whose value is lost: list the tokens before asking again",
            body,
            secrets=(value,),
            secret=True,
        )
        return self._sender.run(operation)

    def revoke(self) -> Revocation:
        """End the calling token, its root and every token derived from it, sent once: POST /tokens/revoke.

        Published with contract 5.4. A repeat would do no harm, but after a success this token gets a 401, as one that was
        never valid does. After `OutcomeUnknown`, `whoami` answers 401 once it is revoked.

        Example:
            ```python
            client.tokens.revoke()
            ```
        """
        after_loss = "Ask whoami: 401 means that the token is revoked"
        return self._sender.run(build_act("POST", "/tokens/revoke", Revocation, after_loss))

    def mint(self, request: MintRequest) -> MintedToken:
        """Make a token for a customer's new user, sent once: POST /partners/mint-token (contract 4.6).

        Needs the partner role.

        Raises:
            InvalidRequest: with every finding; nothing was sent.
            Conflict: the user exists already.
            OutcomeUnknown: the answer was lost: the user may exist, and minting for it again is a conflict.

        Example:
            ```python
            request = MintRequest(org=NewOrg(name="Customer"), email="ada@customer.example")
            token = client.tokens.mint(request).token
            ```
        """
        InvalidRequest.check([*_check_mint(request)])
        operation = build_act(
            "POST",
            "/partners/mint-token",
            MintedToken,
            "The user may exist already, in which case minting again is a conflict",
            request.wire(),
            secret=True,
        )
        return self._sender.run(operation)


def _check_restrictions(attenuation: Attenuation) -> Iterator[str]:
    for action in attenuation.allowed_actions or ():
        yield from checks.one_of("attenuation.allowed_actions", action, ACTIONS)
    for org_id in attenuation.allowed_org_ids or ():
        yield from checks.uuid("attenuation.allowed_org_ids", org_id)
    for resource in attenuation.allowed_resources or ():
        yield from checks.text("attenuation.allowed_resources", resource)
    yield from _check_expiry("attenuation.expires_at", attenuation.expires_at)


def _check_mint(request: MintRequest) -> Iterator[str]:
    if isinstance(request.org, ExistingOrg):
        yield from checks.uuid("org.id", request.org.id)
    else:
        yield from checks.text("org.name", request.org.name)
    user, sign, domain = request.email.partition("@")
    if not (user and sign and domain) or any(letter.isspace() for letter in request.email):
        yield "email: must be an e-mail address"
    yield from _check_expiry("expires_at", request.expires_at)


def _check_expiry(field: str, moment: datetime | None) -> Iterator[str]:
    if moment is not None and moment <= datetime.now(UTC):
        yield f"{field}: {moment.isoformat()} has passed"
