"""What the flows need on a Prefect server, created once and safe to repeat: block types, limits, a work pool."""

import subprocess
import sys
from importlib.resources import as_file, files
from typing import Final

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.actions import GlobalConcurrencyLimitCreate
from prefect.exceptions import ObjectNotFound

from prefect_assay import blocks
from prefect_assay.errors import ConfigurationError
from prefect_assay.tasks.ledger import PAYMENT_LIMIT

WORK_POOL: Final = "assay"
_BLOCKS: Final = (
    blocks.AssayCredentials,
    blocks.SpendingPolicy,
    blocks.X402Wallet,
    blocks.SharedPaymentTokens,
    blocks.WebhookEndpoint,
    blocks.LocalArchive,
    blocks.S3Archive,
)


def register() -> tuple[str, ...]:
    """Register the block types and create the concurrency limit of payments; returns the block types' names."""
    for block in _BLOCKS:
        block.register_type_and_schema()
    with get_client(sync_client=True) as client:
        _ensure_limit(client, PAYMENT_LIMIT)
    return tuple(block.get_block_type_slug() for block in _BLOCKS)


def deploy() -> None:
    """Register everything, create the work pool and deploy what `prefect.yaml` lists.

    Raises:
        ConfigurationError: Prefect refused; the message holds its own words.
    """
    register()
    with get_client(sync_client=True) as client:
        _ensure_work_pool(client)
    with as_file(files("prefect_assay.deployments") / "prefect.yaml") as path:
        _prefect("--no-prompt", "deploy", "--all", "--prefect-file", str(path))


def _ensure_limit(client: SyncPrefectClient, name: str) -> None:
    """A limit of one. One that exists stays as it is, also if an operator has changed it."""
    try:
        client.read_global_concurrency_limit_by_name(name)
    except ObjectNotFound:
        client.create_global_concurrency_limit(GlobalConcurrencyLimitCreate(name=name, limit=1))


def _ensure_work_pool(client: SyncPrefectClient) -> None:
    """A process pool. One that exists stays as it is: operators adapt its job template."""
    try:
        client.read_work_pool(WORK_POOL)
    except ObjectNotFound:
        _prefect("work-pool", "create", WORK_POOL, "--type", "process")


def _prefect(*arguments: str) -> None:
    """Prefect's own command: its file format and its rules are Prefect's to read."""
    done = subprocess.run(  # noqa: S603 - this interpreter, our own arguments
        [sys.executable, "-m", "prefect", *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ConfigurationError(
            f"prefect {' '.join(arguments)} failed:\n{done.stdout.strip()}\n{done.stderr.strip()}"
        )
