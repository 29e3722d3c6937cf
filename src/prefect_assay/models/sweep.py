"""The sweep's state between two runs, in Prefect variables.

An older or a newer version may have written it. Unknown fields are dropped and unreadable fields count as absent: the
sweep then reads and wakes more, and misses nothing.
"""

from datetime import datetime
from typing import Annotated, Any

from pydantic import BeforeValidator

from prefect_assay.models.base import Maybe, StoredModel


def _words(value: Any) -> tuple[str, ...]:
    return tuple(word for word in value if isinstance(word, str)) if isinstance(value, list | tuple) else ()


class Watermark(StoredModel):
    """The watermark of one credentials block's feed, and its waiting runs."""

    reference: Maybe[str] = None  # the credentials block, as JSON text
    feed: Maybe[datetime] = None  # the newest update read, in the service's time
    moved: Maybe[datetime] = None  # when `feed` last changed, in this machine's time
    floor: Maybe[datetime] = None  # no further update can appear before this time
    # Digests of updates shortly before `feed`, which are read again until the floor passes them
    seen: Annotated[tuple[str, ...], BeforeValidator(_words)] = ()
    full_check: Maybe[datetime] = None  # when the experiments of all waiting runs were last read
    next_deadline: Maybe[datetime] = None  # the earliest deadline of these runs
    used: Maybe[datetime] = None  # when a run that waits with this block was last seen
    # The block's name, for people, and to find a block that was deleted and saved again
    name: Maybe[str] = None
    # Names of the first few runs that wait with this block
    behind: Annotated[tuple[str, ...], BeforeValidator(_words)] = ()
    waiting: Maybe[int] = None  # number of these runs


class SweepMemory(StoredModel):
    """The state of the whole sweep."""

    swept: Maybe[datetime] = None  # when the last complete sweep began
    walked: Maybe[datetime] = None  # when all suspended runs were last read
    canceled: Maybe[datetime] = None  # when the earliest canceled run ended that may still need a report
    told: Maybe[str] = None  # a digest of the list in the newest artifact
