"""The sweep's state between two runs, in Prefect variables.

What cannot be read counts as absent: the sweep then reads and wakes more, and misses nothing.
"""

from datetime import datetime

from prefect_assay.models.base import StoredModel


class Watermark(StoredModel):
    """The watermark of one credentials block's feed, and its waiting runs."""

    reference: str = ""  # the credentials block, as JSON text
    read: bool = False  # the feed was read, also if it was empty
    seen: tuple[str, ...] = ()  # digests of the newest updates
    full_check: datetime | None = None  # when the experiments of all waiting runs were last read
    next_deadline: datetime | None = None  # the earliest deadline of these runs
    used: datetime | None = None  # when a run that waits with this block was last seen
    # The block's name, for people, and to find a block that was deleted and saved again
    name: str | None = None
    # Names of the first few runs that wait with this block
    behind: tuple[str, ...] = ()
    waiting: int | None = None  # number of these runs


class OpenSum(StoredModel):
    """Open money of one kind: how many orders, and their sum in US cents."""

    orders: int
    cents: int


class SweepMemory(StoredModel):
    """The state of the whole sweep."""

    swept: datetime | None = None  # when the last complete sweep began
    walked: datetime | None = None  # when all suspended runs were last read
    canceled: datetime | None = None  # when the earliest canceled run ended that may still need a report
    told: str | None = None  # a digest of the list in the newest artifact
    open_money: dict[str, OpenSum] | None = None  # by kind, as the last full check found it
