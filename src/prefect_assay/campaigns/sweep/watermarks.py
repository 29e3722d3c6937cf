"""The stored state of the sweep, and the accounts that its watermarks name.

The state is kept in Prefect variables: `assay_sweep`, and `assay_sweep_<digest>` for each account and each archive
block. Only changed ones are written. What cannot be read counts as absent: the sweep then reads and wakes more, and misses nothing.
"""

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, cast

from prefect.client.orchestration import SyncPrefectClient

from prefect_assay.blocks import AssayAccount
from prefect_assay.campaigns.runs.variables import (
    delete_variable,
    parse_variable,
    read_variables,
    variable_name,
    write_variable,
)
from prefect_assay.errors import ConfigurationError
from prefect_assay.service.models.base import StoredModel

_NAME: Final = "assay_sweep"
# A block without a waiting run for this long is not used any more.
_UNUSED: Final = timedelta(days=7)


class Watermark(StoredModel):
    """The watermark of one account's feed of updates."""

    reference: str = ""  # to the account, as JSON text
    read: bool = False  # the feed was read, also if it was empty
    seen: tuple[str, ...] = ()  # digests of the newest updates
    used: datetime | None = None  # when a run that waits with this account was last seen
    name: str | None = None  # to find a block that was deleted and saved again, and for people


class SeenArchive(StoredModel):
    """An archive that a saved block has led to: if it is not there any more, it is unreachable and not empty."""

    block: str  # `type/name`
    archive_id: str


class OpenSum(StoredModel):
    """Open money of one kind: how many orders, and their sum in US cents."""

    orders: int
    cents: int


class SweepMemory(StoredModel):
    """The state of the whole sweep."""

    swept: datetime | None = None  # when the last complete sweep began
    checked: datetime | None = None  # when orders, tokens and obstacles were last looked at
    canceled: datetime | None = None  # until when canceled runs are known
    unread: tuple[
        str, ...
    ] = ()  # keys of orders whose results were released and not archived at the last check
    told: str | None = None  # a digest of the list in the newest artifact
    open_money: dict[str, OpenSum] | None = None  # by kind, as the last check found it


@dataclass
class SweepState:
    """The variables as they were read; `save` writes what has changed."""

    client: SyncPrefectClient
    stored: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, client: SyncPrefectClient) -> "SweepState":
        """Read all variables of the sweep."""
        return cls(client, dict(read_variables(client, _NAME)))

    @property
    def overall(self) -> SweepMemory:
        """What concerns all runs."""
        return parse_variable(SweepMemory, self.stored.get(_NAME)) or SweepMemory()

    def watermarks(self) -> dict[str, Watermark]:
        """Return the watermarks by the reference of their account, as JSON text."""
        marks = (parse_variable(Watermark, text) for name, text in self.stored.items() if name != _NAME)
        return {mark.reference: mark for mark in marks if mark and _is_reference(mark.reference)}

    def watermark(self, reference: str) -> Watermark:
        """Return one watermark, new where there is none yet."""
        return parse_variable(Watermark, self.stored.get(_name_variable(reference))) or Watermark(
            reference=reference
        )

    def seen_archive(self, block: str) -> SeenArchive | None:
        """The archive that a block, `type/name`, has led to; None if it has led to none yet."""
        seen = parse_variable(SeenArchive, self.stored.get(_name_variable(block)))
        return seen if seen is not None and seen.block == block else None

    def save(self, changed: SweepMemory | Watermark | SeenArchive) -> None:
        """Write it, if it differs from what was read."""
        match changed:
            case Watermark():
                name = _name_variable(changed.reference)
            case SeenArchive():
                name = _name_variable(changed.block)
            case SweepMemory():
                name = _NAME
        text = changed.model_dump_json(exclude_defaults=True)
        if self.stored.get(name) == text:
            return
        write_variable(self.client, name, text, known=name in self.stored)
        self.stored[name] = text

    def forget_unused(self, used: set[str], now: datetime) -> list[str]:
        """Delete the watermarks of blocks without a waiting run for a week; returns the blocks' references."""
        gone = [
            reference
            for reference, mark in self.watermarks().items()
            if reference not in used and (mark.used is None or now - mark.used > _UNUSED)
        ]
        for reference in gone:
            delete_variable(self.client, _name_variable(reference))
            self.stored.pop(_name_variable(reference), None)
        return gone


def as_text(reference: dict[str, Any]) -> str:
    """Return the canonical text of a reference."""
    return json.dumps(reference, sort_keys=True)


def read_account(mark: Watermark) -> AssayAccount:
    """Read the account of a watermark, by its name if it was saved again.

    Raises:
        ConfigurationError: it was deleted.
    """
    try:
        return cast("AssayAccount", AssayAccount.load_from_ref(json.loads(mark.reference)))
    except ValueError as error:  # Prefect's error for a 404
        if mark.name is None:
            raise ConfigurationError(
                "the block was deleted, and its name is not known: start the campaigns of its runs again"
            ) from error
        try:
            return AssayAccount.load(mark.name)
        except ValueError:
            raise ConfigurationError(
                "the block was deleted: save it again under this name, and its runs are checked again"
            ) from error


def _is_reference(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _name_variable(reference: str) -> str:
    """The variable of a block, by its reference or its name."""
    return variable_name(f"{_NAME}_", reference)
