"""The organisation's webhooks (contract 4.6, service shapes)."""

from typing import Final

from prefect_assay.lab.requests.schemas import CreateWebhook, ModifyWebhook
from prefect_assay.lab.routing.route import Route
from prefect_assay.lab.shapes.errors import Error
from prefect_assay.lab.shapes.webhooks import Webhook, Webhooks
from prefect_assay.lab.webhooks import handlers as webhooks

_ONE: Final = "/webhooks/{webhook_id}"

WEBHOOKS: Final = (
    Route("GET", "/webhooks", webhooks.listing, "List webhooks", "list", "webhook", answers={200: Webhooks}),
    Route(
        "POST",
        "/webhooks",
        webhooks.create,
        "Add a webhook",
        "create",
        "webhook",
        CreateWebhook,
        answers={201: Webhook},
        refuses={422: Error},
        description="Gets every update of the organisation's experiments that have no webhook of their own. The"
        " secret is write-only. A header may not be one of the service's own.",
    ),
    Route(
        "PATCH",
        _ONE,
        webhooks.modify,
        "Change a webhook",
        "update",
        "webhook",
        ModifyWebhook,
        answers={200: Webhook},
        refuses={422: Error},
        description="Changes what is named, from the next attempt on. A null clears the secret.",
    ),
    Route(
        "DELETE",
        _ONE,
        webhooks.delete,
        "Remove a webhook",
        "delete",
        "webhook",
        answers={204: None},
        destructive=True,
    ),
)
