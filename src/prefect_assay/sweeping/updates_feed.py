"""How the sweep reads one token's updates feed, and what it asks the service about those who wait.

It must not know how runs are woken. Times of the feed are the service's; when it was read is our time.
"""

import hashlib
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, Final, TypeVar
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.objects import FlowRun

from prefect_assay.client import AssayClient
from prefect_assay.client.filters import in_
from prefect_assay.errors import AssayError, NotFound, Unauthorized
from prefect_assay.models.experiment import ExperimentSummary
from prefect_assay.models.sweep import Watermark
from prefect_assay.runs.queries import read_run_pages, suspended_filter
from prefect_assay.runs.states import suspension_key, waits_for_input
from prefect_assay.runs.tags import EXPERIMENT_TAG, tag_values
from prefect_assay.runs.transient_failures import missing_block
from prefect_assay.waiting import WaitsFor, is_worth_waking, waits_for

T = TypeVar("T")

# Rows may get their place in the feed a little after their timestamp; those seen twice wake nobody wrongly.
_OVERLAP: Final = timedelta(minutes=10)
_SEEN_MAX: Final = 200  # a variable of Prefect holds 5,000 characters
_DIGEST: Final = 12
_BEGINNING: Final = datetime(2000, 1, 1, tzinfo=UTC)
_IDS_PER_REQUEST: Final = 40
_FAILURES_MAX: Final = (
    3  # in a row, by errors that pass: the service is away, and every further one costs its patience
)


@dataclass(frozen=True, slots=True)
class Waiting:
    """What the sweep keeps of a suspended run: ten thousand of them must not fill the memory."""

    run_id: UUID
    name: str
    kind: WaitsFor | None
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
    """Who is worth waking, and when the next deadline of the others passes.

    Attributes:
        wake: the runs.
        next_deadline: the earliest one that has not passed, of the experiments that could be read.
        complete: every experiment was looked for.
        problem: why the list, or an experiment, could not be read.
    """

    wake: tuple[UUID, ...]
    next_deadline: datetime | None
    complete: bool = True
    problem: AssayError | None = None


def waiting_of(run: FlowRun, default_days: int) -> Waiting | None:
    """A run that waits for an experiment, or None; one that waits for a person or a block can do nothing with news."""
    experiment_ids = tuple(tag_values(run.tags, EXPERIMENT_TAG))
    if not experiment_ids or waits_for_input(run) or missing_block(run):
        return None
    days = run.parameters.get("deadline_days")
    known = days if isinstance(days, int | float) and 0 < days <= 3650 else default_days  # noqa: PLR2004
    return Waiting(run.id, run.name, waits_for(suspension_key(run)), experiment_ids, timedelta(days=known))


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
    found: dict[UUID, Waiting] = {}
    for chunk in _chunks(sorted(experiment_ids)):
        tags = [EXPERIMENT_TAG + experiment_id for experiment_id in chunk]
        for page in read_run_pages(client, suspended_filter(any_tags=tags)):
            found.update((run.id, waiting) for run in page if (waiting := waiting_of(run, default_days)))
    return list(found.values())


def judge(client: AssayClient, waits: Sequence[Waiting], now: datetime, *, news: bool) -> Verdict:
    """Ask the service how the experiments of these runs stand, and say which runs may go on."""
    by_id: dict[str, list[Waiting]] = {}
    for waiting in waits:
        for experiment_id in waiting.experiment_ids:
            by_id.setdefault(experiment_id, []).append(waiting)
    looked = _look(client, sorted(by_id))
    wake: dict[UUID, None] = {}
    deadlines: list[datetime] = []
    for found in looked.found.values():
        for waiting in by_id.get(found.id, ()):
            deadlines.append(found.created_at + waiting.patience)
            if is_worth_waking(waiting.kind, found, patience=waiting.patience, now=now, news=news):
                wake[waiting.run_id] = None
    if news:
        # It has been told of and is not listed: the run itself finds out what that means.
        unlisted = by_id.keys() - looked.found.keys() - looked.unread
        wake |= {waiting.run_id: None for each in sorted(unlisted) for waiting in by_id[each]}
    next_deadline = min((d for d in deadlines if d > now), default=None)
    return Verdict(tuple(wake), next_deadline, complete=not looked.unread, problem=looked.problem)


@dataclass
class _Looked:
    """What the service says of some experiments, and which of them could not be read."""

    found: dict[str, ExperimentSummary]
    unread: set[str]
    problem: AssayError | None = None


def _look(client: AssayClient, experiment_ids: Sequence[str]) -> _Looked:
    """The experiments that there are: from the list, forty a request; where it cannot be read, each by itself."""
    looked = _Looked({}, set(experiment_ids))
    try:
        for chunk in _chunks(experiment_ids):
            looked.found |= {found.id: found for found in client.iter_experiments(filter=in_("id", chunk))}
            looked.unread -= set(chunk)
    except AssayError as error:
        looked.problem = error
        _look_at_each(client, looked)
    return looked


def _look_at_each(client: AssayClient, looked: _Looked) -> None:
    failures = 0
    # In any order, so that a few that cannot be read do not hide the same others at every sweep.
    for experiment_id in random.sample(sorted(looked.unread), len(looked.unread)):
        try:
            looked.found[experiment_id] = client.experiment(experiment_id)
        except NotFound:
            pass
        except AssayError as error:
            looked.problem = error
            failures = failures + 1 if error.retriable else 0
            if failures == _FAILURES_MAX or isinstance(error, Unauthorized):
                return
            continue
        failures = 0
        looked.unread.remove(experiment_id)


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
