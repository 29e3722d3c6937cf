"""Who the token speaks for (service-shapes, tokens and identity)."""

from datetime import datetime

from prefect_assay.models.base import WireModel


class Organization(WireModel):
    """An organization the token may act for."""

    id: str
    name: str | None = None
    role: str | None = None
    active: bool | None = None


class Identity(WireModel):
    """The answer of GET /whoami."""

    user_id: str | None = None
    organizations: tuple[Organization, ...] = ()
    active_organization_id: str | None = None
    permissions: tuple[str, ...] = ()
    token_expires_at: datetime | None = None
