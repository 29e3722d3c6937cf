"""`sweep`: find the runs that should have been woken, and wake them. Scheduled; cheap when nothing happened.

Reads the updates feed from a watermark, so its cost follows the updates and not the number of waiting runs.
Every so often it also asks for the state of every waiting experiment, which finds what a lost watermark or a
failed wake-up left behind. A wake-up is a hint, so waking too often does no harm.
"""

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final, cast

from prefect import flow
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import FlowRun, State
from prefect.logging import get_run_logger
from prefect.states import Completed
from prefect.variables import Variable
from pydantic import Field, ValidationError

from prefect_assay.blocks import AssayCredentials
from prefect_assay.client import AssayClient
from prefect_assay.client.filters import in_
from prefect_assay.flows.attempts import take_up_crashed
from prefect_assay.flows.canceled import tell_canceled
from prefect_assay.flows.experiment import DEADLINE_DAYS
from prefect_assay.flows.questions import answer_overdue
from prefect_assay.models.base import Model
from prefect_assay.models.report import SweepReport
from prefect_assay.models.update import Update
from prefect_assay.models.vocabulary import ExperimentStatus
from prefect_assay.waiting.runs import (
    EXPERIMENT_TAG,
    WAITS_TAG,
    resume,
    runs_with,
    suspended_filter,
    tag_values,
    waits_for_input,
)
from prefect_assay.waiting.wake import wake_finished_groups

# Rows may get their place in the feed a little after their timestamp; those seen twice wake nobody wrongly.
_OVERLAP: Final = timedelta(minutes=10)
_IDS_PER_REQUEST: Final = 40
_WORTH_WAKING: Final = frozenset(
    {ExperimentStatus.DONE, ExperimentStatus.CANCELED, ExperimentStatus.QUOTE_SENT, ExperimentStatus.DRAFT}
)


class Watermark(Model):
    """How far one token's feed has been read, in the service's time, and when all its waits were looked at.

    `seen` are the updates within the overlap before `feed`: they are read again, and are no news.
    """

    feed: datetime | None = None
    seen: tuple[str, ...] = ()
    full_check: datetime | None = None


@dataclass(frozen=True)
class _News:
    """What one look at a token's feed and waits has found."""

    updates: int
    due: set[str]
    mark: Watermark


@flow(name="sweep")
def sweep(
    full_check_minutes: Annotated[int, Field(ge=0)] = 60,
) -> State[SweepReport]:
    """Wake every suspended run whose experiment has news, and every parent whose children have all ended.

    Also ends the questions that nobody has answered in time, and says of canceled runs what remains of them.

    Needs no token of its own: each waiting run is looked up with the credentials block it was started with.

    Args:
        full_check_minutes: how often the state of every waiting experiment is asked for; 0 means every time.

    Returns:
        SweepReport: what was looked at, which runs were woken, and which tokens could not be used.
    """
    woken: list[str] = []
    problems: list[str] = []
    seen = 0
    with get_client(sync_client=True) as prefect:
        now = datetime.now(UTC)
        suspended = runs_with(prefect, suspended_filter())
        waiting = [run for run in suspended if not waits_for_input(run)]
        woken += answer_overdue(prefect, [run for run in suspended if waits_for_input(run)], now)
        for reference, runs in sorted(_by_credentials(waiting, problems).items()):
            try:
                news = _look(reference, runs, full_check_minutes)
                woken += _wake(prefect, runs, news.due)
                # Written after the waking: a sweep that dies in between wakes them again, which does no harm.
                _write_watermark(reference, news.mark)
            except Exception as error:  # noqa: BLE001 - one revoked token, one deleted block must not stop the others
                problems.append(f"credentials {reference}: {error}")
                continue
            seen += news.updates
        canceled = tell_canceled(prefect, now, problems)
        woken += take_up_crashed(prefect, now, problems)
    groups = {group for run in waiting for group in tag_values(run, WAITS_TAG)}
    woken += [str(run_id) for run_id in wake_finished_groups(sorted(groups))]
    message = f"{seen} updates, {len(waiting)} suspended runs, {len(woken)} woken"
    get_run_logger().info(message)
    report = SweepReport(
        updates_seen=seen,
        suspended_runs=len(waiting),
        canceled_runs=canceled,
        woken=tuple(woken),
        problems=tuple(problems),
    )
    name = "CompletedWithGaps" if problems else "Completed"
    return Completed(name=name, message="; ".join([message, *problems]), data=report)


def _by_credentials(waiting: list[FlowRun], problems: list[str]) -> dict[str, list[FlowRun]]:
    """The runs that wait for an experiment, by the reference to their credentials block, as JSON."""
    groups: dict[str, list[FlowRun]] = {}
    for run in waiting:
        if not tag_values(run, EXPERIMENT_TAG):
            continue
        given = run.parameters.get("credentials")
        reference = given.get("$ref") if isinstance(given, dict) else None
        if reference is None:
            problems.append(f"run {run.name}: its credentials are no saved block, so nobody can look for it")
            continue
        whole = reference if isinstance(reference, dict) else {"block_document_id": str(reference)}
        groups.setdefault(json.dumps(whole, sort_keys=True), []).append(run)
    return groups


def _look(reference: str, runs: list[FlowRun], full_check_minutes: int) -> _News:
    """Read one token's news, and from time to time the state of all its waits."""
    mark = _read_watermark(reference)
    now = datetime.now(UTC)
    full = mark.full_check is None or now - mark.full_check >= timedelta(minutes=full_check_minutes)
    credentials = cast("AssayCredentials", AssayCredentials.load_from_ref(json.loads(reference)))
    with credentials.get_client() as client:
        news = _read_feed(client, mark)
        due = news.due | (_settled(client, runs, now) if full else set())
    return _News(
        news.updates, due, news.mark.model_copy(update={"full_check": now if full else mark.full_check})
    )


def _read_feed(client: AssayClient, mark: Watermark) -> _News:
    """Experiments with updates since the watermark. The feed is newest first, so reading stops at the mark.

    Without a watermark nothing is read but the newest row: the full check covers everything before.
    """
    recent: list[Update] = []
    for update in client.iter_updates():
        recent.append(update)
        if mark.feed is None or update.timestamp < mark.feed - _OVERLAP:
            break
    if not recent:
        return _News(0, set(), mark)
    known = set(mark.seen)
    fresh = [u for u in recent if mark.feed and u.timestamp >= mark.feed - _OVERLAP and u.id not in known]
    newest = max(u.timestamp for u in recent)
    newest = max(newest, mark.feed) if mark.feed else newest
    seen = tuple(u.id for u in recent if u.timestamp >= newest - _OVERLAP)
    return _News(len(fresh), {u.experiment_id for u in fresh}, Watermark(feed=newest, seen=seen))


def _settled(client: AssayClient, runs: list[FlowRun], now: datetime) -> set[str]:
    """The experiments that are worth a look: ended, quoted, drafts again, or past their run's deadline."""
    deadlines = {
        experiment_id: timedelta(days=run.parameters.get("deadline_days", DEADLINE_DAYS))
        for run in runs
        for experiment_id in tag_values(run, EXPERIMENT_TAG)
    }
    ids = sorted(deadlines)
    found: set[str] = set()
    for start in range(0, len(ids), _IDS_PER_REQUEST):
        chunk = in_("id", ids[start : start + _IDS_PER_REQUEST])
        for experiment in client.iter_experiments(filter=chunk):
            late = now >= experiment.created_at + deadlines.get(experiment.id, timedelta.max)
            if late or experiment.status in _WORTH_WAKING:
                found.add(experiment.id)
    return found


def _wake(prefect: SyncPrefectClient, runs: list[FlowRun], due: set[str]) -> list[str]:
    chosen = [run for run in runs if due.intersection(tag_values(run, EXPERIMENT_TAG))]
    # One by one: SQLite refuses some of many writers at once.
    return [str(run.id) for run in chosen if resume(prefect, run.id)]


def _variable(reference: str) -> str:
    return f"assay_sweep_{hashlib.sha256(reference.encode()).hexdigest()[:20]}"


def _read_watermark(reference: str) -> Watermark:
    stored = Variable.get(_variable(reference))
    try:
        return Watermark.model_validate_json(str(stored)) if stored else Watermark()
    except ValidationError:
        # Written by another version: starting anew is safe, the full check comes first.
        return Watermark()


def _write_watermark(reference: str, mark: Watermark) -> None:
    Variable.set(_variable(reference), mark.model_dump_json(), overwrite=True)
