"""Loads, changes and saves the blocks of one name; makes those for a lab.

A block holds more than a command asks for, and its user may have set the rest in the Prefect UI.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from prefect_assay.cli.prefect_api import api_errors, find_block

if TYPE_CHECKING:
    from prefect.blocks.core import Block

    from prefect_assay.blocks import Archive, AssayCredentials, SpendingPolicy, WebhookEndpoint, X402Wallet

B = TypeVar("B", bound="Block")


@dataclass(frozen=True)
class SavedBlocks:
    """The blocks of one name; two archives can have it, one of each kind."""

    credentials: "AssayCredentials | None"
    policy: "SpendingPolicy | None"
    archives: "Sequence[Archive]"
    webhook: "WebhookEndpoint | None"


def saved_blocks(name: str) -> SavedBlocks:
    """Everything that a campaign takes, as far as it is saved under this name."""
    with api_errors():
        from prefect_assay.blocks import (
            AssayCredentials,
            LocalArchive,
            S3Archive,
            SpendingPolicy,
            WebhookEndpoint,
        )

        archives: tuple[Archive | None, ...] = (find_block(LocalArchive, name), find_block(S3Archive, name))
        return SavedBlocks(
            find_block(AssayCredentials, name),
            find_block(SpendingPolicy, name),
            [archive for archive in archives if archive],
            find_block(WebhookEndpoint, name),
        )


def changed(kind: type[B], saved: B | None, **given: object) -> B:
    """The saved block with these fields in place of its own; a new one without it."""
    return kind(**{**(_fields(saved) if saved else {}), **given})


def save_block(block: "Block", name: str) -> str:
    """Save a block; says whether it is `new`, `replaced` or `unchanged`."""
    before = find_block(type(block), name)
    if before is not None and _fields(before) == _fields(block):
        return "unchanged"
    block.save(name, overwrite=True)
    return "new" if before is None else "replaced"


def reference(block: "Block", name: str) -> str:
    """`<slug>/<name>`, as Prefect's commands and `--archive` take it."""
    return f"{type(block).get_block_type_slug()}/{name}"


def lab_policy(cap_cents: int) -> "SpendingPolicy":
    """A policy for a lab: machine payments, and one amount as each cap."""
    from prefect_assay.blocks import SpendingPolicy

    return SpendingPolicy(
        per_experiment_cents=cap_cents,
        per_campaign_cents=cap_cents,
        rolling_cents=cap_cents,
        machine_payments=True,
    )


def new_lab_wallet() -> "X402Wallet":
    """A wallet with a fresh key that a lab takes; ImportError without the extra."""
    from eth_account import Account
    from pydantic import SecretStr

    from prefect_assay.blocks import X402Wallet
    from prefect_assay.lab.kernel.settings import X402Settings

    offer, key = X402Settings(), SecretStr(Account.create().key.hex())
    return X402Wallet(private_key=key, networks=[offer.network], assets=[offer.asset], pay_to=[offer.pay_to])


def _fields(block: "Block") -> dict[str, object]:
    # equal secrets are equal; the id and the name of the saved block do not count
    return {name: getattr(block, name) for name in type(block).model_fields}
