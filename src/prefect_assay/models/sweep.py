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
    """The watermark of one credentials block's feed, and its waiting runs.

    Attributes:
        reference: the credentials block, as JSON text.
        feed: the newest update read, in the service's time.
        moved: when `feed` last changed, in this machine's time.
        floor: no further update can appear before this time.
        seen: digests of updates shortly before `feed`, which are read again until the floor passes them.
        full_check: when the experiments of all waiting runs were last read.
        next_deadline: the earliest deadline of these runs.
        used: when a run that waits with this block was last seen.
        name: the block's name, for people, and to find a block that was deleted and saved again.
        behind: names of the first few runs that wait with this block.
        waiting: number of these runs.
    """

    reference: Maybe[str] = None
    feed: Maybe[datetime] = None
    moved: Maybe[datetime] = None
    floor: Maybe[datetime] = None
    seen: Annotated[tuple[str, ...], BeforeValidator(_words)] = ()
    full_check: Maybe[datetime] = None
    next_deadline: Maybe[datetime] = None
    used: Maybe[datetime] = None
    name: Maybe[str] = None
    behind: Annotated[tuple[str, ...], BeforeValidator(_words)] = ()
    waiting: Maybe[int] = None


class Silence(StoredModel):
    """Runs without heartbeats.

    Attributes:
        since: when the sweep noticed them.
        runs: their ids.
    """

    since: Maybe[datetime] = None
    runs: Annotated[tuple[str, ...], BeforeValidator(_words)] = ()


def _silence(value: Any) -> Any:
    return value if isinstance(value, Silence | dict) else {}


class SweepMemory(StoredModel):
    """The state of the whole sweep.

    Attributes:
        swept: when the last complete sweep began.
        walked: when all suspended runs were last read.
        canceled: when the earliest canceled run ended that may still need a report.
        told: a digest of the list in the newest artifact.
        silence: the runs without heartbeats.
    """

    swept: Maybe[datetime] = None
    walked: Maybe[datetime] = None
    canceled: Maybe[datetime] = None
    told: Maybe[str] = None
    silence: Annotated[Silence, BeforeValidator(_silence)] = Silence()
