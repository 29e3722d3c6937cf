"""Strict schemas of the webhook calls (service shapes, Updates and webhooks).

The address and the headers have rules of their own, in `webhook_rules`.
"""

from typing import Annotated

from pydantic import Field

from prefect_assay.lab.schemas import Body, HttpsUrl
from prefect_assay.models.vocabulary import WEBHOOK_SECRET_MIN_LENGTH

Secret = Annotated[str, Field(min_length=WEBHOOK_SECRET_MIN_LENGTH)]


class CreateWebhook(Body):
    """POST /webhooks: a public HTTPS address, and the headers that every delivery to it carries."""

    url: HttpsUrl
    secret: Secret | None = None
    headers: dict[str, str] | None = None


class ModifyWebhook(Body):
    """PATCH /webhooks/{webhook_id}: every field is optional. Null clears the secret."""

    url: HttpsUrl | None = None
    headers: dict[str, str] | None = None
    enabled: bool | None = None
    secret: Secret | None = None
