"""Reads one token's updates feed, and selects the waiting runs that may go on. Nothing here wakes a run."""

import hashlib
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Final
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.objects import FlowRun

from prefect_assay.alerts.find import Due
from prefect_assay.client import AssayClient
from prefect_assay.client.filters import in_
from prefect_assay.errors import AssayError, NotFound, Unauthorized
from prefect_assay.events import RunReference
from prefect_assay.models.experiment import ExperimentSummary
from prefect_assay.models.sweep import Watermark
from prefect_assay.models.vocabulary import MACHINE_RAILS, PAGE_LIMIT_MAX
from prefect_assay.runs.queries import read_run_pages, suspended_filter
from prefect_assay.runs.states import event_reference, suspension_key, waits_for_input
from prefect_assay.runs.tags import EXPERIMENT_TAG, INVOICE_LABEL, PRICE_LABEL, tag_values
from prefect_assay.runs.transient_failures import needed_block
from prefect_assay.waiting import PARTIAL_WAIT, WaitsFor, deadline_of, is_worth_waking, patience_of, waits_for

# Rows that are recognized by their ids: one page of the list.
_DEPTH: Final = PAGE_LIMIT_MAX
_ROWS_MAX: Final = 10_000  # of one reading, where none of them is known
_DIGEST: Final = 12
_SHOWN: Final = 3  # experiments in a message
_IDS_PER_REQUEST: Final = 40
# After so many temporary errors in a row the service counts as away: each further request would be retried for long.
_FAILURES_MAX: Final = 3
# A delivery may be under way, or be repeated after a failure.
_DELIVERED_WITHIN: Final = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class WaitingRun:
    """The part of a suspended run that the sweep keeps: ten thousand of them must not fill the memory."""

    reference: RunReference
    kind: WaitsFor | None
    experiment_ids: tuple[str, ...]
    patience: timedelta
    since: datetime | None = None  # when it was suspended
    webhook: bool = False  # updates of its experiment are delivered
    unpaid: bool = False  # a person may pay, or have paid, its invoice


@dataclass(frozen=True)
class FeedPage:
    """The new updates of a token's feed, and the watermark behind them."""

    updates: int
    newest: Mapping[str, datetime]  # the time of the newest new update, by experiment
    mark: Watermark


@dataclass(frozen=True)
class WakeSelection:
    """The runs to wake, and the next deadline of the others; not `complete` where an experiment could not be read.

    `asleep` has the runs that stay suspended although their experiment has news, with the experiment as read;
    `deadlines` those of all runs that stay suspended.
    """

    wake: tuple[UUID, ...]
    next_deadline: datetime | None
    complete: bool = True
    problem: AssayError | None = None
    asleep: tuple[tuple[RunReference, ExperimentSummary], ...] = ()
    deadlines: tuple[Due, ...] = ()


def waiting_run(run: FlowRun) -> WaitingRun | None:
    """Return the run if it waits for an experiment, and neither for a person nor for a block."""
    experiment_ids = tuple(tag_values(run.tags, EXPERIMENT_TAG))
    if not experiment_ids or waits_for_input(run) or needed_block(run):
        return None
    return WaitingRun(
        event_reference(run),
        waits_for(suspension_key(run)),
        experiment_ids,
        patience_of(run.parameters),
        since=run.state.timestamp if run.state else None,
        webhook=run.parameters.get("webhook") is not None,
        unpaid=_may_have_been_paid(run),
    )


def missed_delivery(
    waiting: WaitingRun, updated: datetime, swept: datetime | None, now: datetime
) -> bool | None:
    """Return True if no delivery of an update has woken the run, False if one has; None if that is unknown.

    The update is news since the last sweep, and the service's clock may be another one than Prefect's.
    """
    if (
        not waiting.webhook
        or waiting.since is None
        or swept is None
        or abs(now - updated) < _DELIVERED_WITHIN
    ):
        return None
    return waiting.since < min(swept, updated)


def read_feed(client: AssayClient, mark: Watermark, now: datetime) -> FeedPage:
    """Read the new updates, newest first. In the first reading nothing is new.

    A row is new if it is not among those that the watermark knows: a wrong time, or a row that comes a little late, hides
    no other. Reading goes on until all known rows are passed.
    """
    unmet = set(mark.seen)
    fresh = last = 0
    news: dict[str, datetime] = {}
    seen: list[str] = []
    for rows, update in enumerate(client.iter_updates(), start=1):
        digest = hashlib.sha256(update.id.encode()).hexdigest()[:_DIGEST]
        if len(seen) < _DEPTH:
            seen.append(digest)
        if digest in mark.seen:
            unmet.discard(digest)
            last = rows
        elif mark.read:
            fresh += 1
            news.setdefault(update.experiment_id, update.timestamp or now)
        passed = last and (not unmet or rows - last >= _DEPTH)
        if rows >= _DEPTH and (not mark.read or passed or rows >= _ROWS_MAX):
            break
    return FeedPage(fresh, news, mark.model_copy(update={"read": True, "seen": tuple(seen) or mark.seen}))


def waiting_runs(client: SyncPrefectClient, experiment_ids: Iterable[str]) -> list[WaitingRun]:
    """Read the suspended runs that wait for one of these experiments."""
    found: dict[UUID, WaitingRun] = {}
    for chunk in _chunks(sorted(experiment_ids)):
        tags = [EXPERIMENT_TAG + experiment_id for experiment_id in chunk]
        for page in read_run_pages(client, suspended_filter(any_tags=tags)):
            found.update((run.id, waiting) for run in page if (waiting := waiting_run(run)))
    return list(found.values())


def _may_have_been_paid(run: FlowRun) -> bool:
    """Return True for a hosted invoice, unless the run's labels say that its payment is recorded."""
    if run.parameters.get("payment_method") in MACHINE_RAILS:
        return False
    return not run.labels.get(PRICE_LABEL) or bool(run.labels.get(INVOICE_LABEL))


def select_runs_to_wake(
    client: AssayClient, waits: Sequence[WaitingRun], now: datetime, *, news: bool
) -> WakeSelection:
    """Read the experiments of these runs, and select the runs that may go on; `news`: the feed has updates of all."""
    by_id: dict[str, list[WaitingRun]] = {}
    for waiting in waits:
        for experiment_id in waiting.experiment_ids:
            by_id.setdefault(experiment_id, []).append(waiting)
    looked = _look(client, sorted(by_id))
    local, now = now, client.service_time or now  # deadlines count from the service's times
    wake: dict[UUID, None] = {}
    deadlines: list[datetime] = []
    for found in looked.found.values():
        for waiting in by_id.get(found.id, ()):
            deadlines.append(deadline_of(found.created_at, waiting.patience))
            if waiting.kind is WaitsFor.MORE_RESULTS and waiting.since is not None:
                deadlines.append(deadline_of(waiting.since, PARTIAL_WAIT))
            # A run with an unpaid hosted invoice records its payment, and suspends again.
            if (news and waiting.unpaid) or is_worth_waking(
                waiting.kind, found, patience=waiting.patience, now=now, news=news, since=waiting.since
            ):
                wake[waiting.reference.run_id] = None
    unlisted = sorted(by_id.keys() - looked.found.keys() - looked.unread)
    for waiting in (waiting for experiment_id in unlisted for waiting in by_id[experiment_id]):
        # The run itself finds out what it means. A gap in the list ends no run that waits for a laboratory in time.
        if news or (waiting.since is not None and local - waiting.since > waiting.patience):
            wake[waiting.reference.run_id] = None
    next_deadline = min((d for d in deadlines if d > now), default=None)
    asleep = tuple(
        (waiting.reference, found)
        for found in (looked.found.values() if news else ())
        for waiting in by_id.get(found.id, ())
        if waiting.reference.run_id not in wake
    )
    return WakeSelection(
        tuple(wake),
        next_deadline,
        complete=not looked.unread,
        problem=looked.problem or (_not_seen(unlisted) if unlisted and not news else None),
        asleep=asleep,
        deadlines=tuple(
            Due(found.code, waiting.reference.name, deadline_of(found.created_at, waiting.patience))
            for found in looked.found.values()
            for waiting in by_id.get(found.id, ())
            if waiting.reference.run_id not in wake
        ),
    )


def _not_seen(experiment_ids: Sequence[str]) -> NotFound:
    shown = ", ".join(experiment_ids[:_SHOWN]) + (", ..." if len(experiment_ids) > _SHOWN else "")
    return NotFound(
        f"its token does not see {len(experiment_ids)} of the experiments that runs wait for ({shown}). Is it of another "
        "organisation, or restricted? Save the block with a token that sees them"
    )


@dataclass
class _Looked:
    found: dict[str, ExperimentSummary]
    unread: set[str]
    problem: AssayError | None = None


def _look(client: AssayClient, experiment_ids: Sequence[str]) -> _Looked:
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
    # In random order, so that a few unreadable ones do not hide the same others at every sweep.
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
