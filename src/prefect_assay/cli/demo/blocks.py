"""The blocks of the demo, as a user would save them. The wallet's key is made here and shown nowhere."""

from pathlib import Path
from typing import Final

from pydantic import SecretStr

from prefect_assay.blocks import (
    AssayCredentials,
    LocalArchive,
    SpendingPolicy,
    WebhookEndpoint,
    X402Wallet,
)
from prefect_assay.lab.kernel.settings import X402Settings
from prefect_assay.localstack.stack import LocalStack

NAME: Final = "demo"
CAP_CENTS: Final = 500_000


def save_blocks(stack: LocalStack, archive: Path) -> dict[str, object]:
    """Save one block of each kind; returns them by the campaign's parameter they are for."""
    import eth_account

    offer = X402Settings()
    blocks = {
        "credentials": AssayCredentials(base_url=stack.lab.base_url, token=SecretStr(stack.lab.token)),
        "policy": SpendingPolicy(
            per_experiment_cents=CAP_CENTS,
            per_campaign_cents=CAP_CENTS,
            rolling_cents=CAP_CENTS,
            machine_payments=True,
        ),
        "archive": LocalArchive(root=str(archive)),
        "wallet": X402Wallet(
            private_key=SecretStr(eth_account.Account.create().key.hex()),
            networks=[offer.network],
            assets=[offer.asset],
            pay_to=[offer.pay_to],
        ),
        "webhook": WebhookEndpoint(url=stack.receiver_url, signing_key=SecretStr(stack.signing_key)),
    }
    for block in blocks.values():
        block.save(NAME, overwrite=True)
    return dict(blocks)
