"""What the machine rails pay with, a block for each: `X402Wallet`, `SharedPaymentTokens`."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Final, get_args

from prefect.blocks.core import Block
from pydantic import Field, SecretStr

from prefect_assay.blocks.base import DOCUMENTATION, StrictFields, link_logo
from prefect_assay.service.bounds import LIST_MAX, SECRET_MAX, Line
from prefect_assay.service.models.vocabulary import PaymentMethod

if TYPE_CHECKING:
    from prefect_assay.orders.payments.rails import Rail
    from prefect_assay.orders.payments.rails.mpp import TokenIssuer


class PaymentWallet(StrictFields, Block, ABC):
    """What every wallet answers; each pays by one rail."""

    rail: ClassVar[PaymentMethod]

    @abstractmethod
    def get_rail(self) -> "Rail":
        """The rail, ready to pay from this wallet within its limits.

        Raises:
            ConfigurationError: the wallet is unusable, or an extra is missing.
        """

    @abstractmethod
    def get_identity(self) -> str:
        """What tells this wallet from another one of its kind; never a secret."""

    @abstractmethod
    def get_payees(self) -> tuple[str, ...]:
        """Who may be paid, in one spelling and order."""


class X402Wallet(PaymentWallet):
    """The wallet of the `x402-exact` rail, with the only terms that it may sign. Keep little in it.

    Example:
        ```python
        from prefect_assay.blocks import X402Wallet

        X402Wallet(
            private_key="0x" + "11" * 32,
            networks=["eip155:84532"],
            assets=["eip155:84532/erc20:0x036CbD53842c5426634e7929541eC2318f3dCF7e"],
            pay_to=["0x209693Bc6afc0C5328bA36FaF03C514EF312287C"],
        ).save("BLOCK_NAME")
        wallet = X402Wallet.load("BLOCK_NAME")
        ```
    """

    rail = PaymentMethod.X402_EXACT
    _block_type_name = "Assay x402 Wallet"
    _block_type_slug = "assay-x402-wallet"
    _description = "Wallet key for paying assay invoices by machine (x402-exact), with its allow-lists."
    _documentation_url = DOCUMENTATION
    _logo_url = link_logo("secret")

    private_key: SecretStr = Field(
        max_length=SECRET_MAX,
        title="Private key",
        description="Hex private key of a wallet that holds only what may be spent.",
    )
    networks: list[Line] = Field(
        max_length=LIST_MAX,
        title="Networks",
        description="Networks that may be used, as CAIP-2 ids: eip155:8453 is Base, eip155:84532 its test network.",
    )
    assets: list[Line] = Field(
        max_length=LIST_MAX,
        title="Assets",
        description="Tokens that may be spent, each with its network (CAIP-19): "
        "eip155:8453/erc20:0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913 is USDC on Base. With a single network, the "
        "contract's address alone will do.",
    )
    pay_to: list[Line] = Field(
        max_length=LIST_MAX,
        title="Payees",
        description="Addresses that may be paid. Everything else is refused unsigned.",
    )

    def get_rail(self) -> "Rail":
        """The `x402-exact` rail with this key.

        Raises:
            ConfigurationError: the key is not a private key, an asset is ambiguous, or the extra `x402` is missing.
        """
        from prefect_assay.orders.payments.rails.x402 import X402Limits, X402Rail  # noqa: PLC0415 - blocks load at Prefect's start-up

        limits = X402Limits(
            networks=tuple(self.networks), assets=tuple(self.assets), pay_to=tuple(self.pay_to)
        )
        return X402Rail(self.private_key, limits)

    def get_identity(self) -> str:
        """The wallet's address, in lower case."""
        from prefect_assay.orders.payments.rails.x402 import address_of  # noqa: PLC0415 - as above

        return address_of(self.private_key).lower()

    def get_payees(self) -> tuple[str, ...]:
        """The addresses that may be paid."""
        return tuple(sorted({address.lower() for address in self.pay_to}))


class SharedPaymentTokens(PaymentWallet):
    """The means of the `mpp-spt` rail. The issuer holds the card; a run only sees a limited token.

    Example:
        ```python
        from prefect_assay.blocks import SharedPaymentTokens

        SharedPaymentTokens(
            issuer_url="https://issuer.example.org/tokens",
            issuer_key="key-of-this-installation",
            network_ids=["profile_of_the_laboratory"],
        ).save("BLOCK_NAME")
        tokens = SharedPaymentTokens.load("BLOCK_NAME")
        issue = tokens.get_issuer()
        ```
    """

    rail = PaymentMethod.MPP_SPT
    _block_type_name = "Assay Shared Payment Tokens"
    _block_type_slug = "assay-shared-payment-tokens"
    _description = "Your issuer of shared payment tokens, for paying assay invoices by machine (mpp-spt)."
    _documentation_url = DOCUMENTATION
    _logo_url = link_logo("secret")

    issuer_url: Line = Field(
        title="Issuer address",
        description="Your own service, asked once for each payment: POST with the limits currency, max_amount (cents), "
        'expires_at (Unix seconds) and network_id as JSON; it answers {"spt": "spt_..."}. '
        "Plain http is accepted on loopback only.",
    )
    issuer_key: SecretStr = Field(
        max_length=SECRET_MAX,
        title="Issuer key",
        description="Secret that the issuer knows this installation by, sent as Authorization: Bearer.",
    )
    network_ids: list[Line] = Field(
        max_length=LIST_MAX,
        title="Payees",
        description="Profile ids (networkId) that may be paid. Everything else is refused before a token is issued.",
    )

    def get_rail(self) -> "Rail":
        """The `mpp-spt` rail with this issuer.

        Raises:
            ConfigurationError: the address is neither https nor loopback, or the key is not a valid header value.
        """
        from prefect_assay.orders.payments.rails.mpp import MppRail  # noqa: PLC0415 - blocks load at Prefect's start-up

        return MppRail(self.get_issuer(), self.network_ids)

    def get_identity(self) -> str:
        """The issuer's address."""
        return self.issuer_url

    def get_payees(self) -> tuple[str, ...]:
        """The profile ids that may be paid."""
        return tuple(sorted(set(self.network_ids)))

    def get_issuer(self) -> "TokenIssuer":
        """The callable that requests a token from the issuer.

        Raises:
            ConfigurationError: the address is neither https nor loopback, or the key is not a valid header value.
        """
        from prefect_assay.orders.payments.rails.mpp_issuer import HttpTokenIssuer  # noqa: PLC0415 - as above

        return HttpTokenIssuer(self.issuer_url, self.issuer_key)


# Where a wallet is registered: everything else asks `WALLETS`.
Wallet = X402Wallet | SharedPaymentTokens
WALLETS: Final[tuple[type[PaymentWallet], ...]] = get_args(Wallet)
