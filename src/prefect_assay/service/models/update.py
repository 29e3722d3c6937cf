"""Updates, as the feed lists them and as webhooks deliver them, and webhooks themselves (contract 2.9, 4.6 and 6)."""

from typing import Any

from pydantic import AliasChoices, Field, StrictStr

from prefect_assay.service.models.base import Moment, WireModel
from prefect_assay.service.models.identifiers import Identifier


class Update(WireModel):
    """One row of the updates feed. The last four fields are the earlier variant's (contract 9.4)."""

    id: Identifier
    experiment_id: Identifier
    experiment_code: str | None = None
    name: str | None = None
    timestamp: Moment | None = None  # one row without a readable time must not hide the others
    type: str | None = Field(default=None, validation_alias=AliasChoices("type", "update_type"))
    description: str | None = None
    eta: Moment | None = None
    is_resolved: bool | None = None
    status_change: Any = None


class DeliveryData(WireModel):
    """The `data` object of a webhook body. It carries no status: read the experiment again."""

    type: str | None = None
    experiment_id: Identifier
    experiment_code: str | None = None
    organization_id: Identifier | None = None
    update_id: Identifier
    name: str | None = None
    description: str | None = None
    update_type: str | None = None
    eta: Moment | None = None
    created_at: Moment | None = None


class Delivery(WireModel):
    """A webhook body. `delivery_id` names an attempt; deduplicate on `data.update_id`."""

    delivery_id: Identifier
    event: StrictStr  # a number is not a kind of event
    timestamp: Moment
    api_version: str | None = None
    data: DeliveryData


class Webhook(WireModel):
    """A delivery address. The secret is never returned; `secret_set` is True if one is set.

    `headers` may hold credentials of the receiver, so no repr shows them.
    """

    id: Identifier
    url: str
    secret_set: bool | None = None
    headers: dict[str, str] | None = Field(default=None, repr=False)
    enabled: bool | None = None
    created_at: Moment | None = None
    updated_at: Moment | None = None
