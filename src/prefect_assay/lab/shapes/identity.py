"""Who calls (service shapes, Tokens and identity)."""

from typing import Literal
from uuid import UUID

from prefect_assay.lab.shapes.base import Moment, Shape


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
    """The service, or its database, answers."""

    status: Literal["ok"]
