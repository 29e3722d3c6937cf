"""The sweep's state between two runs, in Prefect variables.

What cannot be read counts as absent: the sweep then reads and wakes more, and misses nothing.
"""

from datetime import datetime

from prefect_assay.service.models.base import StoredModel


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
    checked: datetime | None = None  # when orders, tokens, wallets and obstacles were last looked at
    canceled: datetime | None = None  # until when canceled runs are known
    unread: tuple[
        str, ...
    ] = ()  # keys of orders whose results were released and not archived at the last check
    told: str | None = None  # a digest of the list in the newest artifact
    open_money: dict[str, OpenSum] | None = None  # by kind, as the last check found it
