"""The archives that this Prefect home knows, and the campaigns and loops that their indexes have as open.

An archive that cannot be read is a problem, and never an empty one.
"""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from prefect.client.schemas.objects import FlowRun

from prefect_assay.archive.store import Store
from prefect_assay.blocks import Archive, AssayAccount
from prefect_assay.blocks.block_references import block_reference
from prefect_assay.campaigns.runs.tags import CAMPAIGN_TAG, LOOP_TAG
from prefect_assay.campaigns.setup import ACCOUNT
from prefect_assay.campaigns.sweep.saved_blocks import is_same_archive, recorded_account
from prefect_assay.campaigns.sweep.watermarks import SeenArchive, SweepState
from prefect_assay.errors import ArchiveUnavailable
from prefect_assay.orders.ledger import known_archive_id
from prefect_assay.orders.ledger.campaign_log import (
    CampaignLog,
    CampaignState,
    StartedKind,
    list_open,
)

_READERS: Final = 16  # logs are read at once: each record is a request where the archive is a bucket


@dataclass(frozen=True)
class SavedArchive:
    """An archive block that leads to an archive in which something was begun."""

    name: str  # of the block, as `type/name`
    block: Archive
    store: Store
    archive_id: str
    accounts: frozenset[str] = frozenset()  # the ids of the saved accounts whose archive it is


def open_archive(
    name: str, block: Archive, state: SweepState, accounts: Iterable[AssayAccount] = ()
) -> SavedArchive | None:
    """The archive of a block; None if nothing was ever begun in it.

    Raises:
        ArchiveUnavailable: it cannot be reached, or what is there is not the archive that was there before.
        AssayError: its block does not lead to a store.
    """
    store = block.get_store()
    archive_id = known_archive_id(store, block.prefix)
    seen = state.seen_archive(name)
    if archive_id is None:
        if seen is not None:
            raise ArchiveUnavailable(
                f"{store.location(block.prefix)} was an archive, and is empty now; is its folder mounted? Nothing of it is "
                "looked after meanwhile"
            )
        return None
    if seen is None or seen.archive_id != archive_id:
        state.save(SeenArchive(block=name, archive_id=archive_id))
    ids = [
        str(account._block_document_id)  # noqa: SLF001 - Prefect has no public name for it
        for account in accounts
        if is_same_archive(account.archive, block)
    ]
    return SavedArchive(name, block, store, archive_id, frozenset(ids))


@dataclass
class OpenCampaign:
    """A campaign or a loop that its archive's index has as open, or whose cancellation is not settled.

    `runs` are those of this server that are known to carry it, the newest last.
    """

    archive: SavedArchive
    log: CampaignLog
    runs: list[FlowRun] = field(default_factory=list)

    @property
    def state(self) -> CampaignState:
        """The log's state as last read."""
        return self.log.state

    @property
    def tag(self) -> str:
        """The tag of the runs that carry it."""
        return (LOOP_TAG if self.log.what is StartedKind.LOOP else CAMPAIGN_TAG) + self.log.name

    @property
    def name(self) -> str:
        """What it is and its id, for people."""
        return f"{self.log.what} {self.log.name}"

    @property
    def identity(self) -> str:
        """Identifies it among all archives."""
        return f"{self.archive.archive_id}/{self.log.what}/{self.log.name}"

    def is_carried_by(self, run: FlowRun) -> bool:
        """Return True if a run has its tag, and an account with its archive."""
        reference = block_reference(run, ACCOUNT) if self.tag in run.tags else None
        return reference is not None and reference.get("block_document_id") in self.archive.accounts

    @property
    def account(self) -> str | None:
        """The account that it was started with, as `type/name`."""
        return recorded_account(self.state)


@dataclass(frozen=True)
class OpenCampaigns:
    """What the index of an archive names; `unread` has the logs that cannot be read, with the reason."""

    campaigns: tuple[OpenCampaign, ...]
    unread: tuple[tuple[CampaignLog, Exception], ...]


def read_open_campaigns(archive: SavedArchive) -> OpenCampaigns:
    """Read the logs of all open campaigns and loops of an archive, of every home; entries of ended ones are removed.

    Raises:
        ArchiveUnavailable: the archive cannot be listed.
    """
    logs = list(list_open(archive.store, archive.block.prefix))
    with ThreadPoolExecutor(_READERS) as pool:
        failures = list(pool.map(_read_log, logs))
    unread = tuple((log, error) for log, error in zip(logs, failures, strict=True) if error is not None)
    read = [log for log, error in zip(logs, failures, strict=True) if error is None]
    return OpenCampaigns(tuple(OpenCampaign(archive, log) for log in read if log.state.needs_sweep), unread)


def _read_log(log: CampaignLog) -> Exception | None:
    try:
        if not log.read().needs_sweep:
            log.close_index()
    except Exception as error:  # noqa: BLE001 - one damaged log must not hide the others
        return error
    return None


def began_last(state: CampaignState) -> datetime | None:
    """When the last run was recorded, or without any when it was started."""
    last = max((run.at for run in state.runs.values()), default=None)
    return last or (state.started.at if state.started else None)
