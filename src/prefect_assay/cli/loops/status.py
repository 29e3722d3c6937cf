"""The rounds of a loop for `prefect-assay status LOOP`, read from the loop's log in its archive."""

from collections.abc import Sequence
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient
from rich.table import Table
from rich.text import Text

from prefect_assay.blocks.of_runs import archive_of
from prefect_assay.cli.output import plain_table
from prefect_assay.looping import LoopBook, loop_report, objective_of, with_newest_tables
from prefect_assay.models.billing import usd
from prefect_assay.models.report import LoopReport
from prefect_assay.models.spec import Assay


def loop_rounds(client: SyncPrefectClient, run_ids: Sequence[str]) -> LoopReport | None:
    """The rounds of the newest of these loop runs, as the archive has them; None without a run.

    Raises:
        ConfigurationError: the loop's archive block cannot be loaded.
        ArchiveError: the archive cannot be read here.
    """
    if not run_ids:
        return None
    run = client.read_flow_run(UUID(run_ids[-1]))
    archive = archive_of(run)
    log = LoopBook(archive.get_store(), archive.prefix, run.parameters["loop_id"])
    ended = bool(run.state and run.state.is_final())
    words = (run.state.message if run.state else None) or "without a message"
    assay = Assay.model_validate(run.parameters.get("assay") or {})
    objective = objective_of(assay.experiment_type)
    rounds = with_newest_tables(archive, log.read().rounds, objective)
    return loop_report(log.loop_id, rounds, objective, stopped=words if ended else "it goes on")


def rounds_table(report: LoopReport) -> Table:
    """One line per round, and the loop's best and spending below."""
    built = plain_table(show_footer=True)
    footer = ("", "", "", report.best or "", usd(report.spent_cents), "")
    headings = ("Round", "Campaign", "Designs", "Best", "Spent", "Table")
    for heading, below in zip(headings, footer, strict=True):
        built.add_column(heading, footer=Text(below), overflow="fold")
    for line in report.rounds:
        cells = (
            line.name,
            line.campaign_id,
            str(line.designs or ""),
            line.best or ("failed" if line.problem else "not measured yet"),
            "" if line.spent_cents is None else usd(line.spent_cents),
            line.table or line.problem or "",
        )
        built.add_row(*map(Text, cells))
    return built
