"""How the sweep reads one token's updates feed, and what it asks the service about those who wait.

It must not know how runs are woken. Times of the feed are the service's; when it was read is our time.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, Final, TypeVar
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterState,
    FlowRunFilterStateType,
    FlowRunFilterTags,
)
from prefect.client.schemas.objects import FlowRun, StateType

from prefect_assay.client import AssayClient
from prefect_assay.client.filters import in_
from prefect_assay.models.sweep import Watermark
from prefect_assay.waiting.runs import EXPERIMENT_TAG, pages_with, tag_values, waits_for_input
from prefect_assay.waiting.worth import is_worth_waking, waits_for

T = TypeVar("T")

# Rows may get their place in the feed a little after their timestamp; those seen twice wake nobody wrongly.
_OVERLAP: Final = timedelta(minutes=10)
_SEEN_MAX: Final = 200  # a variable of Prefect holds 5,000 characters
_DIGEST: Final = 12
_BEGINNING: Final = datetime(2000, 1, 1, tzinfo=UTC)
_IDS_PER_REQUEST: Final = 40


@dataclass(frozen=True, slots=True)
class Waiting:
    """What the sweep keeps of a suspended run: ten thousand of them must not fill the memory."""

    run_id: UUID
    kind: str
    experiment_ids: tuple[str, ...]
    patience: timedelta


@dataclass(frozen=True)
class News:
    """What a look at a token's feed has found."""

    updates: int
    experiment_ids: frozenset[str]
    mark: Watermark


@dataclass(frozen=True)
class Verdict:
    """Who is worth waking, and when the next deadline of the others passes."""

    wake: tuple[UUID, ...]
    next_deadline: datetime | None


def waiting_of(run: FlowRun, default_days: int) -> Waiting | None:
    """A run that waits for an experiment, or None."""
    experiment_ids = tuple(tag_values(run, EXPERIMENT_TAG))
    if not experiment_ids or waits_for_input(run):
        return None
    days = run.parameters.get("deadline_days")
    known = days if isinstance(days, int | float) and 0 < days <= 3650 else default_days  # noqa: PLR2004
    key = run.state.state_details.pause_key if run.state else None
    return Waiting(run.id, waits_for(key), experiment_ids, timedelta(days=known))


def read_feed(client: AssayClient, mark: Watermark, now: datetime) -> News:
    """Experiments with updates since the watermark. The feed is newest first, so reading stops at the mark.

    Rows that come while pages are read lie in front of them and are read next time; rows that were pushed onto the
    next page are told once. Without a watermark nothing is read but the newest row: the full check covers
    everything before.
    """
    known = set(mark.seen)
    newest: datetime | None = None
    seen: list[str] = []
    fresh = 0
    experiment_ids: set[str] = set()
    for update in client.iter_updates():
        newest = newest or update.timestamp
        digest = hashlib.sha256(update.id.encode()).hexdigest()[:_DIGEST]
        if update.timestamp >= newest - _OVERLAP and len(seen) < _SEEN_MAX:
            seen.append(digest)
        if mark.feed is None or update.timestamp < mark.feed - _OVERLAP:
            break
        if mark.floor is not None and update.timestamp <= mark.floor:
            break
        if digest not in known and update.id not in known:  # an earlier version kept whole ids
            fresh += 1
            experiment_ids.add(update.experiment_id)
    return News(fresh, frozenset(experiment_ids), _moved(mark, newest, seen, now))


def _moved(mark: Watermark, newest: datetime | None, seen: list[str], now: datetime) -> Watermark:
    """The mark after a reading. The floor rises when a reading has come late enough for every late row."""
    if newest is None:
        # Nothing has happened yet, so everything that comes is news.
        return mark.model_copy(update={"feed": mark.feed or _BEGINNING})
    if mark.feed == mark.floor == newest:
        return mark
    if mark.feed is None or newest > mark.feed:
        return mark.model_copy(update={"feed": newest, "moved": now, "seen": tuple(seen)})
    moved = mark.moved or now
    if now - moved >= _OVERLAP:
        return mark.model_copy(update={"moved": moved, "floor": mark.feed, "seen": ()})
    return mark.model_copy(update={"moved": moved, "seen": tuple(seen)})


def those_waiting(
    client: SyncPrefectClient, experiment_ids: Iterable[str], default_days: int
) -> list[Waiting]:
    """The suspended runs that wait for one of these experiments."""
    suspended = FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.PAUSED]))
    found: dict[UUID, Waiting] = {}
    for chunk in _chunks(sorted(experiment_ids)):
        tags = FlowRunFilterTags(any_=[EXPERIMENT_TAG + experiment_id for experiment_id in chunk])
        for page in pages_with(client, FlowRunFilter(tags=tags, state=suspended)):
            found.update((run.id, waiting) for run in page if (waiting := waiting_of(run, default_days)))
    return list(found.values())


def judge(client: AssayClient, waits: Sequence[Waiting], now: datetime, *, news: bool) -> Verdict:
    """Ask the service how the experiments of these runs stand, and say which runs may go on."""
    by_id: dict[str, list[Waiting]] = {}
    for waiting in waits:
        for experiment_id in waiting.experiment_ids:
            by_id.setdefault(experiment_id, []).append(waiting)
    wake: dict[UUID, None] = {}
    deadlines: list[datetime] = []
    listed: set[str] = set()
    for chunk in _chunks(sorted(by_id)):
        for found in client.iter_experiments(filter=in_("id", chunk)):
            listed.add(found.id)
            for waiting in by_id.get(found.id, ()):
                deadlines.append(found.created_at + waiting.patience)
                if is_worth_waking(waiting.kind, found, patience=waiting.patience, now=now, news=news):
                    wake[waiting.run_id] = None
    if news:
        # It has been told of and is not listed: the run itself finds out what that means.
        unlisted = by_id.keys() - listed
        wake |= {waiting.run_id: None for each in sorted(unlisted) for waiting in by_id[each]}
    return Verdict(tuple(wake), min((d for d in deadlines if d > now), default=None))


def _chunks(items: Sequence[str]) -> Iterator[list[str]]:
    rest = iter(items)
    while chunk := list(islice(rest, _IDS_PER_REQUEST)):
        yield chunk


def reference_of(run: FlowRun) -> dict[str, Any] | None:
    """The reference to a run's credentials block; None when they are no saved block."""
    given = run.parameters.get("credentials")
    reference = given.get("$ref") if isinstance(given, dict) else None
    if reference is None:
        return None
    return reference if isinstance(reference, dict) else {"block_document_id": str(reference)}


__all__ = [
    "News",
    "Verdict",
    "Waiting",
    "judge",
    "read_feed",
    "reference_of",
    "those_waiting",
    "waiting_of",
]
