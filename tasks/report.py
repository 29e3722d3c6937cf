"""Make and archive the derived files of a campaign, and the plots of artifacts. No error here fails a run.

The results are archived before. An error is shown in the log and in the artifact, with the command that makes the report
again.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TypeVar

from prefect import task
from prefect.logging import get_run_logger

from prefect_assay.analysis.report.documents import archive_report, make_report
from prefect_assay.analysis.report.images import Image, campaign_images, experiment_images
from prefect_assay.analysis.results import DesignSummary
from prefect_assay.analysis.tables.files import write_newest_table
from prefect_assay.archive import Store
from prefect_assay.archive.archived import ArchiveRecord
from prefect_assay.archive.layout import REPORT_CODE, REPORT_PATH
from prefect_assay.blocks import Archive
from prefect_assay.blocks.block_references import name_of
from prefect_assay.errors import AssayError, ConfigurationError, shorten
from prefect_assay.service.models.base import Model
from prefect_assay.tasks.retry_policies import ONCE

T = TypeVar("T")


class ArchivedReport(Model):
    """`location` is that of the HTML page, None without one; `notes` say what is missing and how to get it.

    `reviews` has a design for each curve that a person should look at. `decision` are titles and lines of the page's summary;
    `link` is where a browser shows the page to who may see the bucket.
    """

    location: str | None = None
    record: ArchiveRecord | None = None
    reviews: tuple[str, ...] = ()
    designs: tuple[DesignSummary, ...] = ()
    decision: tuple[tuple[str, str], ...] = ()
    link: str | None = None
    images: tuple[Image, ...] = ()
    notes: tuple[str, ...] = ()


class ResultPlots(Model):
    """The designs of one experiment with their verdicts, plots of them, and notes on what is missing."""

    designs: tuple[DesignSummary, ...] = ()
    images: tuple[Image, ...] = ()
    notes: tuple[str, ...] = ()


@task(name="report-campaign", **ONCE)
def report_campaign(archive: Archive, campaign_id: str) -> ArchivedReport:
    """Archive report, tables, fits and plots as a version of `REPORT`; an unchanged report writes nothing. Never raises."""

    def make_and_archive() -> ArchivedReport:
        store = archive.get_store()
        made = make_report(store, archive.prefix, campaign_id)
        record = archive_report(store, archive.prefix, made, now=datetime.now(UTC))
        location = f"{record.location}/{REPORT_PATH}" if made.page else None
        table_notes = tuple(_table_notes(store, archive.prefix, campaign_id))
        return ArchivedReport(
            location=location,
            record=record,
            reviews=made.reviews,
            designs=made.summaries,
            decision=made.decision,
            link=archive.browser_url(location) if location else None,
            images=campaign_images(made.figures),
            notes=(*made.notes, *table_notes),
        )

    again = f"`prefect-assay report {campaign_id}` makes it again from the archive"
    made = _try_to_make(make_and_archive, f"the report of campaign {campaign_id}", again)
    if isinstance(made, str):
        return ArchivedReport(notes=(made,))
    for note in made.notes:
        get_run_logger().warning("%s", note)
    get_run_logger().info("Report: %s", made.location or "the tables only")
    return made


def _table_notes(store: Store, prefix: str, campaign_id: str) -> Iterator[str]:
    """Write the summary table to the table of all campaigns; a note if that fails, because the report is archived without it."""
    try:
        write_newest_table(store, prefix, campaign_id, REPORT_CODE)
    except ConfigurationError as error:
        get_run_logger().info("Not in the tables: %s", error)
    except Exception as error:  # noqa: BLE001  nothing that can be made again may cost the report
        yield f"the designs are not in the tables: {error}. `prefect-assay archive tables` adds them later"


def report_command(archive: Archive, campaign_id: str) -> str:
    """The command that makes and opens the report on the machine of who reads it."""
    name = name_of(archive)
    block = f" --archive {archive.get_block_type_slug()}/{name}" if name and name != "main" else ""
    return f"prefect-assay report {campaign_id} --open{block}"


@task(name="plot-results", task_run_name="plot-results-{experiment_code}", **ONCE)
def plot_results(archive: Archive, campaign_id: str, experiment_code: str) -> ResultPlots:
    """The plots of one archived experiment, few enough for an artifact. Never raises."""

    def make() -> ResultPlots:
        plots = experiment_images(archive.get_store(), archive.prefix, campaign_id, experiment_code)
        return ResultPlots(designs=plots[0], images=plots[1], notes=plots[2])

    made = _try_to_make(make, f"the plots of experiment {experiment_code}", "the results are archived")
    return ResultPlots(notes=(made,)) if isinstance(made, str) else made


def _try_to_make(make: Callable[[], T], what: str, otherwise: str) -> T | str:
    """What `make` returns, or why it could not: results that are archived must not look failed."""
    try:
        return make()
    except Exception as error:  # noqa: BLE001  see above
        shorten(error)
        reason = error.message if isinstance(error, AssayError) else f"{type(error).__name__}: {error}"
        line = f"{what[0].upper()}{what[1:]} could not be made: {reason}; {otherwise}"
        get_run_logger().warning("%s", line, exc_info=not isinstance(error, AssayError))
        return line
