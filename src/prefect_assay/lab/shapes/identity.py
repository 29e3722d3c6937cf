"""Who calls (service shapes, Tokens and identity)."""

from typing import Literal
from uuid import UUID

from prefect_assay.lab.shapes.base import Moment, Shape
from prefect_assay.lab.shapes.errors import Error


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
