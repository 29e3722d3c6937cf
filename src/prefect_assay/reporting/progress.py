"""Shows people where an experiment is in the laboratory: its stage, its updates, and when results are expected.

It must not know why a run waits, nor how an experiment is read.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.actions import ArtifactCreate, LogCreate
from prefect.client.schemas.objects import FlowRun
from prefect.types import DateTime

from prefect_assay.errors import shorten
from prefect_assay.models.experiment import ExperimentSummary
from prefect_assay.models.update import Update
from prefect_assay.models.vocabulary import ExperimentStatus, ResultsStatus
from prefect_assay.models.words import in_words
from prefect_assay.reporting.artifacts import label_of_run, verbatim
from prefect_assay.runs.tags import ETA_LABEL

_logger = logging.getLogger(__name__)

# How far a status is on the way to results (contract 3), in percent; the days between them differ.
_PERCENT: Final[dict[str, int]] = {
    ExperimentStatus.DRAFT: 0,
    ExperimentStatus.WAITING_FOR_CONFIRMATION: 5,
    ExperimentStatus.QUOTE_SENT: 10,
    ExperimentStatus.WAITING_FOR_MATERIALS: 20,
    ExperimentStatus.IN_QUEUE: 35,
    ExperimentStatus.IN_PRODUCTION: 50,
    ExperimentStatus.DATA_ANALYSIS: 75,
    ExperimentStatus.IN_REVIEW: 90,
    ExperimentStatus.DONE: 100,
    ExperimentStatus.CANCELED: 100,
}
_RESULTS: Final[dict[str, str]] = {
    ResultsStatus.PARTIAL: ", preliminary results are there",
    ResultsStatus.ALL: ", all results are there",
}
_UPDATES_SHOWN: Final = 30
_UNDATED: Final = datetime.min.replace(tzinfo=UTC)  # sorts first


@dataclass(frozen=True)
class Progress:
    """One look at an experiment.

    Attributes:
        percent: how far its status is on the way to results, 0 to 100; None for a status that this version does not know.
        message: one line, such as `in the laboratory: in production, results expected 2 Dec 2026`.
        markdown: the message, and the updates with their dates.
    """

    percent: int | None
    message: str
    markdown: str


def progress_of(found: ExperimentSummary, updates: Iterable[Update], eta: datetime | None = None) -> Progress:
    """Describe an experiment; `eta` is the one of the last update that has one."""
    rows = sorted(updates, key=lambda update: update.timestamp or _UNDATED)
    eta = next((update.eta for update in reversed(rows) if update.eta), eta)
    stage = in_words(found.status)
    ended = found.status in {ExperimentStatus.DONE, ExperimentStatus.CANCELED}
    expected = f", results expected {day(eta)}" if eta and not ended else ""
    message = f"in the laboratory: {stage}{_RESULTS.get(found.results_status, '')}{expected}"
    lines = [f"**{found.code}** {message}", ""]
    if rows:
        lines += ["| date | update |", "|---|---|"]
        lines += [
            f"| {day(row.timestamp) if row.timestamp else ''} | {_cell(row)} |"
            for row in rows[-_UPDATES_SHOWN:]
        ]
    return Progress(_PERCENT.get(found.status), message, "\n".join(lines))


def eta_of(run: FlowRun) -> datetime | None:
    """Return when results are expected, as the receiver noted it from the last delivery; None if it did not."""
    try:
        return datetime.fromisoformat(str(run.labels.get(ETA_LABEL)))
    except ValueError:
        return None


def show_progress(
    client: SyncPrefectClient,
    run: FlowRun,
    found: ExperimentSummary,
    updates: Iterable[Update],
) -> str | None:
    """Store the run's progress artifact and a log line, best effort; returns the message, or None after a failure."""
    try:
        progress = progress_of(found, updates, eta_of(run))
        _store(client, run, progress)
        client.create_logs([_log_line(run, f"Experiment {found.code} {progress.message}")])
    except Exception as error:
        _logger.warning("Could not show the progress of run %s", run.id, exc_info=shorten(error))
        return None
    return progress.message


def _store(client: SyncPrefectClient, run: FlowRun, progress: Progress) -> None:
    client.create_artifact(
        ArtifactCreate(
            key=f"assay-progress-{label_of_run(run)}",  # Prefect shows the newest one of a key
            type="progress",
            data=float(progress.percent or 0),
            description=progress.markdown,
            flow_run_id=run.id,
        )
    )


def _log_line(run: FlowRun, message: str) -> LogCreate:
    return LogCreate(
        name="prefect.flow_runs",
        level=logging.INFO,
        message=message,
        timestamp=DateTime.now(UTC),
        flow_run_id=run.id,
    )


def day(moment: datetime) -> str:
    """A date in a text for people."""
    return f"{moment.day} {moment:%b %Y}"


def _cell(update: Update) -> str:
    return verbatim(update.name or update.description or str(update.type or ""))
