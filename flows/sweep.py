"""`sweep`: find the runs that should have been woken, and wake them. Scheduled; cheap when nothing happened.

Reads the updates feed from a watermark, so its cost follows the updates and not the number of waiting runs.
Every so often it also asks for the state of every waiting experiment, which finds what a lost watermark or a
failed wake-up left behind. A wake-up is a hint, so waking too often does no harm.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final, cast

from prefect import flow
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import FlowRun, State
from prefect.logging import get_run_logger
from prefect.states import Completed
from prefect.variables import Variable
from prefect_assay.blocks import AssayCredentials
from pydantic import Field, ValidationError

from prefect_assay.client import AssayClient
from prefect_assay.client.filters import in_
from prefect_assay.errors import AssayError
from prefect_assay.models.base import Model
from prefect_assay.models.report import SweepReport
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
_WORTH_WAKING: Final = (ExperimentStatus.DONE, ExperimentStatus.CANCELED, ExperimentStatus.QUOTE_SENT)


class Watermark(Model):
    """How far one token's feed has been read, in the service's time, and when all its waits were looked at."""

    feed: datetime | None = None
    full_check: datetime | None = None


@flow(name="sweep")
def sweep(
    full_check_minutes: Annotated[int, Field(ge=0)] = 60,
) -> State[SweepReport]:
    """Wake every suspended run whose experiment has news, and every parent whose children have all ended.

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
        waiting = [run for run in runs_with(prefect, suspended_filter()) if not waits_for_input(run)]
        for block_id, runs in sorted(_by_credentials(waiting).items()):
            try:
                updates, due = _look(block_id, runs, full_check_minutes)
            except AssayError as error:
                # One revoked token must not keep the others' runs asleep.
                problems.append(f"credentials {block_id}: {error}")
                continue
            seen += updates
            woken += _wake(prefect, runs, due)
    groups = {group for run in waiting for group in tag_values(run, WAITS_TAG)}
    woken += [str(run_id) for run_id in wake_finished_groups(sorted(groups))]
    message = f"{seen} updates, {len(waiting)} suspended runs, {len(woken)} woken"
    get_run_logger().info(message)
    report = SweepReport(
        updates_seen=seen, suspended_runs=len(waiting), woken=tuple(woken), problems=tuple(problems)
    )
    name = "CompletedWithGaps" if problems else "Completed"
    return Completed(name=name, message="; ".join([message, *problems]), data=report)


def _by_credentials(waiting: list[FlowRun]) -> dict[str, list[FlowRun]]:
    """The runs that wait for an experiment, by the id of the credentials block in their parameters."""
    groups: dict[str, list[FlowRun]] = {}
    for run in waiting:
        reference = run.parameters.get("credentials")
        block = reference.get("$ref") if isinstance(reference, dict) else None
        block_id = block.get("block_document_id") if isinstance(block, dict) else block
        if block_id and tag_values(run, EXPERIMENT_TAG):
            groups.setdefault(str(block_id), []).append(run)
    return groups


def _look(block_id: str, runs: list[FlowRun], full_check_minutes: int) -> tuple[int, set[str]]:
    """Read one token's news, and from time to time the state of all its waits; returns what is worth waking."""
    mark = _read_watermark(block_id)
    now = datetime.now(UTC)
    full = mark.full_check is None or now - mark.full_check >= timedelta(minutes=full_check_minutes)
    credentials = cast("AssayCredentials", AssayCredentials.load_from_ref({"block_document_id": block_id}))
    with credentials.get_client() as client:
        seen, feed, due = _news(client, mark)
        if full:
            due |= _settled(client, {e for run in runs for e in tag_values(run, EXPERIMENT_TAG)})
    _write_watermark(block_id, Watermark(feed=feed, full_check=now if full else mark.full_check))
    return seen, due


def _news(client: AssayClient, mark: Watermark) -> tuple[int, datetime | None, set[str]]:
    """Experiments with updates since the watermark. The feed is newest first, so reading stops at the mark.

    Without a watermark nothing is read but the newest row: the full check covers everything before.
    """
    newest = mark.feed
    experiments: set[str] = set()
    seen = 0
    for update in client.iter_updates():
        newest = max(newest, update.timestamp) if newest else update.timestamp
        if mark.feed is None or update.timestamp < mark.feed - _OVERLAP:
            break
        experiments.add(update.experiment_id)
        seen += 1
    return seen, newest, experiments


def _settled(client: AssayClient, experiment_ids: Iterable[str]) -> set[str]:
    """Those of the experiments that have ended, or whose quote waits for a decision."""
    ids = sorted(experiment_ids)
    found: set[str] = set()
    for start in range(0, len(ids), _IDS_PER_REQUEST):
        chunk = in_("id", ids[start : start + _IDS_PER_REQUEST])
        found |= {e.id for e in client.iter_experiments(filter=chunk) if e.status in _WORTH_WAKING}
    return found


def _wake(prefect: SyncPrefectClient, runs: list[FlowRun], due: set[str]) -> list[str]:
    chosen = [run for run in runs if due.intersection(tag_values(run, EXPERIMENT_TAG))]
    # One by one: SQLite refuses some of many writers at once.
    return [str(run.id) for run in chosen if resume(prefect, run.id)]


def _variable(block_id: str) -> str:
    return f"assay_sweep_{block_id.replace('-', '_')}"


def _read_watermark(block_id: str) -> Watermark:
    stored = Variable.get(_variable(block_id))
    try:
        return Watermark.model_validate_json(str(stored)) if stored else Watermark()
    except ValidationError:
        # Written by another version: starting anew is safe, the full check comes first.
        return Watermark()


def _write_watermark(block_id: str, mark: Watermark) -> None:
    Variable.set(_variable(block_id), mark.model_dump_json(), overwrite=True)
