"""What a user configures, once, in the Prefect UI or in code. Secrets live here and nowhere else.

A block holds settings and builds clients, stores and policies from them; no workflow stands in here. This
package is Prefect's collection entry point, so it is imported by `import prefect` users at start-up: everything
heavy (httpx clients, boto3, eth-account) is imported when it is used.
"""

from prefect_assay.blocks.archives import Archive, LocalArchive, S3Archive
from prefect_assay.blocks.credentials import AssayCredentials
from prefect_assay.blocks.shared_tokens import SharedPaymentTokens
from prefect_assay.blocks.spending import SpendingPolicy
from prefect_assay.blocks.wallet import X402Wallet
from prefect_assay.blocks.webhook import WebhookEndpoint

Wallet = X402Wallet | SharedPaymentTokens

__all__ = [
    "Archive",
    "AssayCredentials",
    "LocalArchive",
    "S3Archive",
    "SharedPaymentTokens",
    "SpendingPolicy",
    "Wallet",
    "WebhookEndpoint",
    "X402Wallet",
]
