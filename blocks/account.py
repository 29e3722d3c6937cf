"""`AssayAccount`: everything that a campaign needs to order, pay and archive, under one name."""

from typing import Self

from prefect.blocks.core import Block
from pydantic import Field, model_validator

from prefect_assay.blocks.archives import Archive
from prefect_assay.blocks.base import DOCUMENTATION, StrictFields, link_logo
from prefect_assay.blocks.credentials import AssayCredentials
from prefect_assay.blocks.spending import SpendingPolicy
from prefect_assay.blocks.wallets import WALLETS, Wallet
from prefect_assay.blocks.webhook import WebhookEndpoint
from prefect_assay.service.bounds import Line
from prefect_assay.service.models.vocabulary import PaymentMethod


def _describe_wallets() -> str:
    return ", ".join(f"{kind.get_block_type_name()} for {kind.rail}" for kind in WALLETS)


class AssayAccount(StrictFields, Block):
    """Who orders, where, under which caps, and where the results go. An account is personal: it holds its owner's token.

    Example:
        ```python
        from prefect_assay.blocks import AssayAccount, AssayCredentials, LocalArchive, SpendingPolicy

        AssayAccount(
            credentials=AssayCredentials.load("BLOCK_NAME"),
            policy=SpendingPolicy.load("BLOCK_NAME"),
            archive=LocalArchive.load("BLOCK_NAME"),
        ).save("BLOCK_NAME")
        account = AssayAccount.load("BLOCK_NAME")
        ```
    """

    _block_type_name = "Assay Account"
    _block_type_slug = "assay-account"
    _description = "Your account at the laboratory: service and token, caps, archive, webhook, wallet."
    _documentation_url = DOCUMENTATION
    _logo_url = link_logo("secret")

    credentials: AssayCredentials = Field(
        title="Service and token", description="The service's address and your own API token."
    )
    policy: SpendingPolicy = Field(title="Spending policy", description="Caps, and who approves what.")
    archive: Archive = Field(title="Archive", description="Where results and ledgers are archived.")
    webhook: WebhookEndpoint | None = Field(
        default=None,
        title="Webhook",
        description="Where the service delivers updates. Empty: the sweep or polling finds them.",
    )
    wallet: Wallet | None = Field(
        default=None,
        title="Wallet",
        description=f"For a machine rail: {_describe_wallets()}.",
    )
    payment_method: PaymentMethod = Field(
        default=PaymentMethod.ASYNC_INVOICE,
        title="Payment method",
        description="How this account usually pays. async_invoice: a person pays the hosted invoices.",
    )
    owner: Line | None = Field(
        default=None, title="Owner", description="Whose account this is; recorded with what it orders."
    )
    purchase_order: Line | None = Field(
        default=None, title="Purchase order number", description="Recorded with each order, for your finance."
    )
    cost_center: Line | None = Field(
        default=None, title="Cost center", description="Recorded with each order, for your finance."
    )

    @property
    def name(self) -> str | None:
        """The name under which the account is saved; None if it is not saved."""
        return self._block_document_name

    @model_validator(mode="after")
    def _check_wallet(self) -> Self:
        if self.payment_method is PaymentMethod.ASYNC_INVOICE:
            return self
        if self.wallet is None or self.wallet.rail is not self.payment_method:
            raise ValueError(
                f"the payment method {self.payment_method} needs a wallet of its kind: {_describe_wallets()}"
            )
        return self
