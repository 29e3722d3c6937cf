"""Webhooks of an organization (contract 4.6 and 6). An experiment's own webhook takes precedence."""

from datetime import datetime

from pydantic import Field

from prefect_assay.models.base import Maybe, WireModel


class Webhook(WireModel):
    """A delivery address. The secret never comes back: `secret_set` says whether there is one.

    `headers` may hold credentials of the receiver, so no repr shows them.
    """

    id: str
    url: str
    secret_set: Maybe[bool] = None
    headers: dict[str, str] | None = Field(default=None, repr=False)
    enabled: Maybe[bool] = None
    created_at: Maybe[datetime] = None
    updated_at: Maybe[datetime] = None
