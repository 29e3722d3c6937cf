"""Accounts of the tests, and the parameters of flows that use them. All worlds make theirs here."""

import hashlib
from collections.abc import Mapping
from typing import Any

from prefect.blocks.core import Block

from prefect_assay.blocks import AssayAccount, AssayCredentials, LocalArchive, SpendingPolicy
from prefect_assay.designs.options import CampaignOptions, LoopOptions

PARTS = ("credentials", "policy", "archive", "webhook", "wallet")
CAPS = {"per_experiment_usd": 20_000, "per_campaign_usd": 50_000}
AMOUNT_USD = (
    50_000.0  # what runs of tests may spend without asking, where a test says nothing else: the caps decide
)


def make_account(
    *,
    base_url: str = "https://lab.example",
    token: str = "t",
    archive: Any = "/nowhere",
    policy: Any = None,
    credentials: AssayCredentials | None = None,
    **fields: Any,
) -> AssayAccount:
    """An account, not saved; an archive may be a folder, and a policy the fields that differ from generous caps."""
    return AssayAccount(
        credentials=credentials or AssayCredentials(base_url=base_url, token=token),
        policy=policy if isinstance(policy, SpendingPolicy) else SpendingPolicy(**CAPS | (policy or {})),
        archive=archive if isinstance(archive, Block) else LocalArchive(root=str(archive)),
        **{name: value for name, value in fields.items() if value is not None},
    )


def make_options(**flat: Any) -> CampaignOptions:
    """Options by their names alone, each in its group."""
    return CampaignOptions.model_validate(flow_parameters(flat).get("options", {}))


def flow_parameters(flat: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a flow: the parts of an account become one, options go into their groups, None is left out."""
    left = {name: value for name, value in flat.items() if value is not None}
    parts = {name: left.pop(name) for name in PARTS if name in left}
    account = left.get("account")
    if parts:
        left["account"] = account.model_copy(update=parts) if account else AssayAccount(**parts)
    for name in left.keys() & LoopOptions.model_fields.keys():
        left.setdefault("rounds", {})[name] = left.pop(name)
    options: dict[str, Any] = left.pop("options", {})
    for group, field in CampaignOptions.model_fields.items():
        for name in left.keys() & getattr(field.annotation, "model_fields", {}).keys():
            options.setdefault(group, {})[name] = left.pop(name)
    if "loop_id" in left and "spend_up_to_usd" in left:
        left["budget_usd"] = left.pop("spend_up_to_usd")
    return left | ({"options": options} if options else {})


def save_account(account: AssayAccount, name: str | None = None) -> AssayAccount:
    """Save an account; without a name, under one that its parts give it."""
    parts = repr([(part, _identity(getattr(account, part))) for part in PARTS])
    account = account.model_copy()
    account.save(name or f"test-{hashlib.sha256(parts.encode()).hexdigest()[:12]}", overwrite=True)
    return account


def reference(block: Block) -> dict[str, Any]:
    """A saved block as a parameter of a run."""
    return {"$ref": {"block_document_id": str(block._block_document_id)}}


def _identity(part: Block | None) -> Any:
    return part and (part._block_document_id or part.model_dump_json())
