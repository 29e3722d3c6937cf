"""Shapes of identity, health, feedback, tokens and webhooks (contract 4.6; service shapes)."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field, RootModel

from prefect_assay.lab.api.shapes import Count, Error, Moment, Page, Shape


class Membership(Shape):
    """An organisation that the token belongs to."""

    id: UUID
    name: str
    role: str | None = None
    active: bool


class Identity(Shape):
    """Who a token is."""

    user_id: UUID | None = None
    organizations: list[Membership]
    active_organization_id: UUID | None = None
    permissions: list[str]
    token_expires_at: Moment | None = None


class Health(Shape):
    """The service answers."""

    status: Literal["ok"]


class DatabaseHealth(Health):
    """The service and its database answer."""

    db: Literal["ok"]


class DatabaseAway(Error):
    """503: the database does not answer."""

    db: Literal["unavailable"]


class FeedbackReceipt(Shape):
    """Feedback has arrived."""

    reference: Annotated[str, Field(pattern="^fb_", description="Names this submission.")]
    message: str


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


class Webhook(Shape):
    """An organisation's webhook. The secret is write-only: `secret_set` says whether there is one."""

    id: UUID
    url: str
    secret_set: bool
    headers: dict[str, str]
    enabled: bool
    created_at: datetime
    updated_at: datetime


class Webhooks(RootModel[list[Webhook]]):
    """All of them, oldest first: a plain array without paging."""
