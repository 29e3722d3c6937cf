"""Makes the saved blocks of one name the defaults of the deployed forms. A person then fills in only what to measure."""

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from prefect.blocks.core import Block
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.actions import DeploymentUpdate
from prefect.client.schemas.objects import BlockDocument
from prefect.exceptions import ObjectNotFound

from prefect_assay import blocks
from prefect_assay.runs.block_references import references
from prefect_assay.runs.deployments import deployment_of

NAME: Final = "main"  # of the blocks that `prefect-assay init` saves
# The flows that people start; `decide` takes the blocks that the campaign's log names.
_FORMS: Final = (deployment_of("campaign"), deployment_of("design-build-test"))
_BLOCKS: Final[Mapping[str, tuple[type[Block], ...]]] = {
    "credentials": (blocks.AssayCredentials,),
    "policy": (blocks.SpendingPolicy,),
    "archive": (blocks.LocalArchive, blocks.S3Archive),
    "webhook": (blocks.WebhookEndpoint,),
}


def preset_blocks(
    client: SyncPrefectClient, name: str = NAME, *, dry_run: bool = False
) -> dict[str, tuple[str, ...]]:
    """Fill the blocks of this name into the forms; the parameters that were filled in, by deployment.

    What somebody has chosen stays, unless its block was deleted. Of two archives of one name none is chosen.
    """
    named = {parameter: found for parameter in _BLOCKS if (found := _named(client, parameter, name))}
    filled = {}
    for deployment in _FORMS:
        try:
            present = client.read_deployment_by_name(deployment)
        except ObjectNotFound:
            continue
        chosen = present.parameters or {}
        missing = {key: named[key] for key in named.keys() - _kept(client, chosen)}
        if missing and not dry_run:
            client.update_deployment(present.id, DeploymentUpdate(parameters={**chosen, **missing}))
        if missing:
            filled[deployment] = tuple(key for key in _BLOCKS if key in missing)
    return filled


def _named(client: SyncPrefectClient, parameter: str, name: str) -> dict[str, Any] | None:
    found: list[BlockDocument] = []
    for kind in _BLOCKS[parameter]:
        try:
            slug = kind.get_block_type_slug()
            found.append(client.read_block_document_by_name(name, slug, include_secrets=False))
        except ObjectNotFound:
            continue
    return {"$ref": {"block_document_id": str(found[0].id)}} if len(found) == 1 else None


def _kept(client: SyncPrefectClient, chosen: Mapping[str, Any]) -> set[str]:
    """The parameters that have a value, and no reference to a block that is gone."""
    return set(chosen) - {key for key, reference in references(chosen).items() if _is_gone(client, reference)}


def _is_gone(client: SyncPrefectClient, reference: Any) -> bool:
    document_id = reference["block_document_id"] if isinstance(reference, dict) else reference
    try:
        client.read_block_document(UUID(str(document_id)), include_secrets=False)
    except ObjectNotFound:
        return True
    return False
