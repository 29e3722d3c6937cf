"""`AssayCredentials`: who orders, and where. Users bring their own scoped token (contract 5.6)."""

from typing import TYPE_CHECKING, Final

from prefect.blocks.abstract import CredentialsBlock
from pydantic import Field, SecretStr

from prefect_assay.blocks.base import DOCUMENTATION, StrictFields, link_logo
from prefect_assay.service.bounds import SECRET_MAX, Line

if TYPE_CHECKING:
    from prefect_assay.service.client import AssayClient

_GB: Final = 10**9


class AssayCredentials(StrictFields, CredentialsBlock):
    """The service's address and the user's own API token, chosen per run.

    Example:
        ```python
        from prefect_assay.blocks import AssayCredentials

        credentials = AssayCredentials.load("BLOCK_NAME")
        with credentials.get_client() as client:
            identity = client.tokens.whoami()
        ```
    """

    _block_type_name = "Assay Credentials"
    _block_type_slug = "assay-credentials"
    _description = "Address of the protein characterization service and your own scoped API token."
    _documentation_url = DOCUMENTATION
    _logo_url = link_logo("secret")

    base_url: Line = Field(
        title="Service address",
        description="Base address without /api/v1, for example https://lab.example.org. "
        "Plain http is accepted on loopback only.",
    )
    token: SecretStr = Field(
        max_length=SECRET_MAX,
        title="API token",
        description="Your own token from the service's portal (Organization, Settings, Tokens). "
        "Orders are placed in your name.",
    )
    provider_word: Line = Field(
        default="provider",
        title="Payment provider's word",
        description="How your service spells the payment provider in field names, "
        "as in <provider>_invoice_url.",
    )
    service_word: Line = Field(
        default="Service",
        title="Service's word",
        description="How your service spells itself in header names, as in X-<Service>-Signature.",
    )
    max_package_gb: float = Field(
        default=10,
        gt=0,
        le=1_000_000,
        title="Largest data package (GB)",
        description="A data package that is larger is not kept with the results.",
    )

    def get_client(self) -> "AssayClient":
        """A client; use it as a context manager. One for a flow run keeps to the rate that an operator has set.

        Raises:
            ConfigurationError: the address is not https and not loopback.
        """
        # blocks load at Prefect's start-up
        from prefect_assay.blocks.request_rate import get_request_limiter  # noqa: PLC0415
        from prefect_assay.service.client import AssayClient  # noqa: PLC0415
        from prefect_assay.service.models.service import WireWords  # noqa: PLC0415

        return AssayClient(
            self.base_url,
            self.token,
            words=WireWords(provider=self.provider_word, service=self.service_word),
            max_download=int(self.max_package_gb * _GB),
            pace=get_request_limiter(),
        )
