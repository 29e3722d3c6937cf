"""The account that a campaign's log names, and every saved account and archive: for whatever acts without a run's parameters."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

from prefect.blocks.core import Block
from prefect.client.orchestration import SyncPrefectClient
from prefect.exceptions import ObjectNotFound

from prefect_assay.blocks import Archive, AssayAccount
from prefect_assay.blocks.archives import ARCHIVES
from prefect_assay.blocks.block_references import UNUSABLE, fault_of, list_documents
from prefect_assay.campaigns.setup import ACCOUNT, BLOCK_KEY
from prefect_assay.errors import ConfigurationError
from prefect_assay.orders.ledger.campaign_log import CampaignState

B = TypeVar("B", bound=Block)


def account_of(client: SyncPrefectClient, state: CampaignState) -> AssayAccount:
    """The account that a campaign was started with; raises as `load_account` does."""
    named = recorded_account(state)
    if named is None:
        raise ConfigurationError(
            "the campaign's log names no saved account; choose the account where you cancel or answer"
        )
    return load_account(client, named)


def recorded_account(state: CampaignState) -> str | None:
    """The account that a campaign was started with, as `type/name`; None if it was not saved."""
    value = state.started.parameters.get(ACCOUNT) if state.started else None
    named = value.get(BLOCK_KEY) if isinstance(value, dict) else None
    return named if isinstance(named, str) else None


def load_account(client: SyncPrefectClient, named: str) -> AssayAccount:
    """The account saved as `type/name`.

    Raises:
        ConfigurationError: there is no such block, or it is not valid.
    """
    slug, _, name = named.partition("/")
    if slug != AssayAccount.get_block_type_slug():
        raise ConfigurationError(f"{named} is not an AssayAccount block")
    try:
        document = client.read_block_document_by_name(name, slug)
        return AssayAccount._load_from_block_document(document)  # noqa: SLF001 - `load` hides whether it is missing or not valid
    except ObjectNotFound:
        raise ConfigurationError(
            f"the block {named}, which the campaign was started with, was deleted; save an account under this name again"
        ) from None
    except UNUSABLE as error:
        raise ConfigurationError(f"the block {named} {fault_of(error)}; correct it") from None


def missing_account(client: SyncPrefectClient, state: CampaignState) -> str | None:
    """The account that a campaign was started with, as `type/name`, if it is not saved here."""
    named = recorded_account(state)
    if named is None:
        return None
    slug, _, name = named.partition("/")
    try:
        client.read_block_document_by_name(name, slug, include_secrets=False)
    except ObjectNotFound:
        return named
    return None


def saved_accounts(client: SyncPrefectClient) -> list[AssayAccount]:
    """Every saved account that can be loaded; `check` names the others."""
    return [account for _, account in _list_saved(client, AssayAccount)]


def saved_archives(
    client: SyncPrefectClient, accounts: Sequence[AssayAccount] | None = None
) -> Iterator[tuple[str, Archive]]:
    """Every saved archive that can be loaded, by its `type/name`, then those that only an account holds."""
    saved: list[tuple[str, Archive]] = [archive for kind in ARCHIVES for archive in _list_saved(client, kind)]
    yield from saved
    known = [archive for _, archive in saved]
    for account in saved_accounts(client) if accounts is None else accounts:
        if not any(is_same_archive(account.archive, archive) for archive in known):
            known.append(account.archive)
            yield f"{account.get_block_type_slug()}/{account.name}", account.archive


def is_same_archive(one: Archive, other: Archive) -> bool:
    """Whether two blocks have the same fields, under whatever names they are saved."""
    return type(one) is type(other) and one.model_dump() == other.model_dump()


def _list_saved(client: SyncPrefectClient, kind: type[B]) -> Iterator[tuple[str, B]]:
    slug = kind.get_block_type_slug()
    for document in list_documents(client, slug, include_secrets=True):
        try:
            yield f"{slug}/{document.name}", kind._load_from_block_document(document)  # noqa: SLF001 - Prefect's only way
        except UNUSABLE:
            continue
