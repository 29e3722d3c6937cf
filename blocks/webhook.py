"""`WebhookEndpoint`: where the service's signed updates reach this installation."""

from prefect.blocks.core import Block
from pydantic import Field, SecretStr

from prefect_assay.blocks.base import DOCUMENTATION, StrictFields, link_logo
from prefect_assay.service.bounds import SECRET_MAX, Line


class WebhookEndpoint(StrictFields, Block):
    """The receiver's public address and the key from which every experiment's secret is derived.

    Example:
        ```python
        from prefect_assay.blocks import WebhookEndpoint

        WebhookEndpoint(
            url="https://hooks.example.org/assay", signing_key="at-least-thirty-two-random-characters"
        ).save("BLOCK_NAME")
        webhook = WebhookEndpoint.load("BLOCK_NAME")
        url, secret = webhook.derive_for_order("0123456789abcdef0123")
        ```
    """

    _block_type_name = "Assay Webhook Endpoint"
    _block_type_slug = "assay-webhook-endpoint"
    _description = "Public address of the assay webhook receiver, and its signing key."
    _documentation_url = DOCUMENTATION
    _logo_url = link_logo("webhook")

    url: Line = Field(
        title="Receiver address",
        description="Public https address of the receiver, for example https://hooks.example.org/assay.",
    )
    signing_key: SecretStr = Field(
        min_length=32,
        max_length=SECRET_MAX,
        title="Signing key",
        description="At least 32 characters. The receiver is started with the same key; "
        "each experiment's webhook secret is derived from it.",
    )

    def derive_for_order(self, order_key: str) -> tuple[str, SecretStr]:
        """Derive the delivery address and the secret of one experiment (contract 4.2, 6)."""
        from prefect_assay.service.webhook_signature import delivery_url, derive_secret  # noqa: PLC0415 - blocks load at Prefect's start-up

        secret = derive_secret(self.signing_key.get_secret_value(), order_key)
        return delivery_url(self.url, order_key), SecretStr(secret)
