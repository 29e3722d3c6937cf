"""`X402Wallet`: a key that may sign stablecoin payments, and the only terms it may sign."""

from prefect.blocks.core import Block
from pydantic import Field, SecretStr

from prefect_assay.blocks.strict import StrictFields


class X402Wallet(StrictFields, Block):
    """The wallet of the `x402-exact` rail. Keep little in it: it is a purse, not a vault."""

    _block_type_name = "Assay x402 Wallet"
    _block_type_slug = "assay-x402-wallet"
    _description = "Wallet key for paying assay invoices by machine (x402-exact), with its allow-lists."

    private_key: SecretStr = Field(
        title="Private key",
        description="Hex private key of a wallet that holds only what may be spent.",
    )
    networks: list[str] = Field(
        title="Networks",
        description="Networks that may be used, as CAIP-2 ids: eip155:8453 is Base, eip155:84532 its test network.",
    )
    assets: list[str] = Field(
        title="Assets",
        description="Tokens that may be spent, each with its network (CAIP-19): "
        "eip155:8453/erc20:0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913 is USDC on Base. With a single network, the "
        "contract's address alone will do.",
    )
    pay_to: list[str] = Field(
        title="Payees", description="Addresses that may be paid. Everything else is refused unsigned."
    )
