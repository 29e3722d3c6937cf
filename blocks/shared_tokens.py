"""`SharedPaymentTokens`: the user's own service that issues a payment token for one invoice at a time."""

from typing import TYPE_CHECKING

from prefect.blocks.core import Block
from pydantic import Field, SecretStr

from prefect_assay.blocks.strict import StrictFields

if TYPE_CHECKING:
    from prefect_assay.payments import TokenIssuer


class SharedPaymentTokens(StrictFields, Block):
    """The means of the `mpp-spt` rail. The issuer holds the card; no run ever sees more than a limited token."""

    _block_type_name = "Assay Shared Payment Tokens"
    _block_type_slug = "assay-shared-payment-tokens"
    _description = "Your issuer of shared payment tokens, for paying assay invoices by machine (mpp-spt)."

    issuer_url: str = Field(
        title="Issuer address",
        description="Your own service, asked once for each payment: POST with the limits currency, max_amount (cents), "
        'expires_at (Unix seconds) and network_id as JSON; it answers {"spt": "spt_..."}. '
        "Plain http is accepted on loopback only.",
    )
    issuer_key: SecretStr = Field(
        title="Issuer key",
        description="Secret that the issuer knows this installation by, sent as Authorization: Bearer.",
    )

    def get_issuer(self) -> "TokenIssuer":
        """What asks the issuer for a token.

        Raises:
            ConfigurationError: the address is not https and not loopback, or the key cannot stand in a header.
        """
        from prefect_assay.payments.issuer import HttpTokenIssuer  # noqa: PLC0415 - blocks load at Prefect's start-up

        return HttpTokenIssuer(self.issuer_url, self.issuer_key)
