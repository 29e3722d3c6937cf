"""Blocks: what a user configures once, in the Prefect UI or in code. Secrets are kept in blocks and nowhere else.

A block holds settings and builds clients and stores from them; it must not know any workflow. `AssayExperiment` starts
a deployment by its name. This package is the entry point of a Prefect collection, so every process
that imports Prefect imports it. Heavy packages (httpx, boto3, eth-account) are imported on first use.
"""

from prefect_assay.blocks.account import AssayAccount
from prefect_assay.blocks.archives import Archive, LocalArchive, S3Archive
from prefect_assay.blocks.credentials import AssayCredentials
from prefect_assay.blocks.experiment_job import AssayExperiment
from prefect_assay.blocks.spending import SpendingPolicy
from prefect_assay.blocks.wallets import SharedPaymentTokens, Wallet, X402Wallet
from prefect_assay.blocks.webhook import WebhookEndpoint

__all__ = [
    "Archive",
    "AssayAccount",
    "AssayCredentials",
    "AssayExperiment",
    "LocalArchive",
    "S3Archive",
    "SharedPaymentTokens",
    "SpendingPolicy",
    "Wallet",
    "WebhookEndpoint",
    "X402Wallet",
]
