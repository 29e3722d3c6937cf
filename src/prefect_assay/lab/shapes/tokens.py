"""Tokens and minted users (contract 4.6, service shapes, Tokens and identity)."""

from typing import Literal
from uuid import UUID

from prefect_assay.lab.shapes.base import Count, Moment, Page, Shape


class AttenuationSpec(Shape):
    """`attenuation_spec`: the restrictions that one attenuation asked for (contract 2.13)."""

    allowed_actions: list[str] | None = None
    allowed_org_ids: list[UUID] | None = None
    allowed_resources: list[str] | None = None
    expires_at: Moment | None = None
    non_destructive: bool | None = None
    payment_policy: list[str] | None = None
    read_only: bool | None = None


class TokenRecord(Shape):
    """What is kept of a token. Root and parent are null of a root token."""

    id: UUID
    name: str
    kind: Literal["portal", "oauth", "minted", "start", "attenuated"]
    parent_token_id: UUID | None
    root_token_id: UUID | None
    attenuation_spec: AttenuationSpec | None
    created_at: Moment
    expires_at: Moment


class TokenPage(Page[TokenRecord]):
    """Tokens of an organisation."""


class AttenuatedToken(Shape):
    """The restricted token, shown this once."""

    id: UUID
    token: str


class Revocation(Shape):
    """A family of tokens that is dead from now on."""

    token_id: UUID
    revoked_at: Moment
    children_revoked: Count


class MintedToken(Shape):
    """A new user's token, shown this once."""

    id: UUID
    token: str
    user_id: UUID
    organization_id: UUID
    role: Literal["member", "viewer"]
    expires_at: Moment
