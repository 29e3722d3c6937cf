"""Tokens: what one may be restricted to, and what the service keeps about it (contract 2.13 and 4.6).

A token's text is a secret and stays inside `SecretStr`; records carry ids only.
"""

from datetime import datetime
from typing import Annotated

from pydantic import AwareDatetime, Field, SecretStr

from prefect_assay.models.base import Model, WireModel

# An empty list would allow nothing at all; to leave something unrestricted, the field is left out.
_Names = Annotated[tuple[str, ...], Field(min_length=1)]


class Attenuation(Model):
    """Restrictions to add to a token (contract 2.13). A field left out restricts nothing.

    Attributes:
        allowed_actions: of `list`, `read`, `create`, `update`, `delete`, `issue`, `revoke`, `mint_token`.
        allowed_org_ids: organizations, by UUID.
        allowed_resources: such as `experiment` or `result`, in the singular.
        expires_at: with a time zone. A later one than the token's own changes nothing.
        non_destructive: refuses what takes something away for good.
        payment_policy: payment methods (contract 10), the preferred one first.
        read_only: only `list` and `read`.
    """

    allowed_actions: _Names | None = None
    allowed_org_ids: _Names | None = None
    allowed_resources: _Names | None = None
    expires_at: AwareDatetime | None = None
    non_destructive: bool | None = None
    payment_policy: _Names | None = None
    read_only: bool | None = None


class AttenuatedToken(WireModel):
    """The answer of POST /tokens/attenuate: the record's id, and the restricted token, shown this once."""

    id: str
    token: SecretStr


class TokenRecord(WireModel):
    """One row of GET /tokens. `attenuation_spec` stays as the service spells it."""

    id: str
    name: str | None = None
    kind: str | None = None
    parent_token_id: str | None = None
    root_token_id: str | None = None
    attenuation_spec: dict[str, object] | None = None
    created_at: datetime | None = None
    expires_at: datetime | None = None


class Revocation(WireModel):
    """The answer of POST /tokens/revoke: the root token whose family is dead."""

    token_id: str | None = None
    revoked_at: datetime | None = None
    children_revoked: int | None = None
