"""What the sweep remembers between two runs, in Prefect variables: small, and read tolerantly.

An older or a newer version may have written it. Unknown fields are dropped and unreadable ones count as absent:
the sweep then reads a little more and wakes a little more often, and misses nothing.
"""

from datetime import datetime
from typing import Annotated, Any

from pydantic import BeforeValidator

from prefect_assay.models.base import Maybe, StoredModel


def _words(value: Any) -> tuple[str, ...]:
    return tuple(word for word in value if isinstance(word, str)) if isinstance(value, list | tuple) else ()


class Watermark(StoredModel):
    """How far one credentials block's feed has been read, and what is known of the waits behind it.

    Attributes:
        reference: the credentials block, as JSON text.
        feed: the newest update read, in the service's time.
        moved: when `feed` last changed, in our time.
        floor: up to here no update can appear any more.
        seen: digests of updates shortly before `feed`: they are read again until the floor is there, and are no news.
        full_check: when all waits behind the block were last looked at.
        next_deadline: the earliest deadline among them.
        used: when a run that waits with this block was last seen.
        name: the block's name, for people, and for finding it when it was deleted and saved again.
        behind: names of runs that wait with this block; the first few.
        waiting: how many there are.
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
    """Which runs said nothing any more when a sweep looked.

    Attributes:
        since: when it looked.
        runs: their ids.
    """

    since: Maybe[datetime] = None
    runs: Annotated[tuple[str, ...], BeforeValidator(_words)] = ()


def _silence(value: Any) -> Any:
    return value if isinstance(value, Silence | dict) else {}


class SweepMemory(StoredModel):
    """What concerns all runs.

    Attributes:
        swept: when the last complete sweep began.
        walked: when all suspended runs were last read.
        canceled: when the earliest canceled run ended of which more may still have to be said.
        told: a digest of the list that was last left as an artifact.
        silence: the runs without heartbeats.
    """

    swept: Maybe[datetime] = None
    walked: Maybe[datetime] = None
    canceled: Maybe[datetime] = None
    told: Maybe[str] = None
    silence: Annotated[Silence, BeforeValidator(_silence)] = Silence()
