"""The saved blocks that a campaign's log names, and every saved archive: for whatever acts without a run's parameters."""

from collections.abc import Iterator
from typing import TypeVar

from prefect.blocks.core import Block
from prefect.client.orchestration import SyncPrefectClient
from prefect.exceptions import ObjectNotFound

from prefect_assay.blocks import Archive, AssayCredentials, LocalArchive, S3Archive, SpendingPolicy
from prefect_assay.books.campaign_log import CampaignState
from prefect_assay.campaigns.setup import BLOCK_KEY
from prefect_assay.errors import ConfigurationError
from prefect_assay.runs.block_references import UNUSABLE, fault_of

B = TypeVar("B", bound=Block)


def credentials_of(client: SyncPrefectClient, state: CampaignState) -> AssayCredentials:
    """The account block that a campaign was started with, by its name; raises as `load_named` does."""
    return load_named(client, _recorded(state, "credentials"), AssayCredentials)


def policy_of(client: SyncPrefectClient, state: CampaignState) -> SpendingPolicy:
    """The policy block that a campaign was started with, by its name; raises as `load_named` does."""
    return load_named(client, _recorded(state, "policy"), SpendingPolicy)


def load_named(client: SyncPrefectClient, named: str, kind: type[B]) -> B:
    """The block saved as `type/name`, of this type.

    Raises:
        ConfigurationError: there is no such block, or it is not valid.
    """
    slug, _, name = named.partition("/")
    if slug != kind.get_block_type_slug():
        raise ConfigurationError(f"{named} is not an {kind.__name__} block")
    try:
        document = client.read_block_document_by_name(name, slug)
        return kind._load_from_block_document(document)  # noqa: SLF001 - `load` hides whether it is missing or not valid
    except ObjectNotFound:
        raise ConfigurationError(
            f"the block {named}, which the campaign was started with, was deleted; save a block of this type under this "
            "name again"
        ) from None
    except UNUSABLE as error:
        raise ConfigurationError(f"the block {named} {fault_of(error)}; correct it") from None


def missing_blocks(client: SyncPrefectClient, state: CampaignState) -> list[str]:
    """The `type/name` of the blocks that a campaign was started with and that are not saved here."""
    parameters = state.started.parameters if state.started else {}
    names = [
        value[BLOCK_KEY] for value in parameters.values() if isinstance(value, dict) and BLOCK_KEY in value
    ]
    missing = []
    for name in names:
        slug, _, block = str(name).partition("/")
        try:
            client.read_block_document_by_name(block, slug, include_secrets=False)
        except ObjectNotFound:
            missing.append(str(name))
    return missing


def saved_archives(client: SyncPrefectClient) -> Iterator[tuple[str, Archive]]:
    """Every saved archive block that can be loaded, by its `type/name`; `check` names the others."""
    for kind in (LocalArchive, S3Archive):
        slug = kind.get_block_type_slug()
        try:
            documents = client.read_block_documents_by_type(slug, include_secrets=True)
        except ObjectNotFound:  # never registered
            continue
        for document in documents:
            try:
                yield f"{slug}/{document.name}", kind._load_from_block_document(document)  # noqa: SLF001 - as above
            except UNUSABLE:
                continue


def _recorded(state: CampaignState, parameter: str) -> str:
    value = state.started.parameters.get(parameter) if state.started else None
    named = value.get(BLOCK_KEY) if isinstance(value, dict) else None
    if not isinstance(named, str):
        raise ConfigurationError(
            f"the campaign's log names no saved block for its {parameter}; choose the block where you cancel or answer"
        )
    return named
