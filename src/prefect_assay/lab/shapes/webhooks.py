"""What the webhook calls answer (service shapes, Updates and webhooks)."""

from datetime import datetime
from uuid import UUID

from pydantic import RootModel

from prefect_assay.lab.shapes.base import Shape


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
