"""The rounds of a loop for `prefect-assay status LOOP`, read from the loop's log in its archive."""

from rich.table import Table
from rich.text import Text

from prefect_assay.blocks import Archive
from prefect_assay.campaigns.flow_results import LoopReport
from prefect_assay.campaigns.loops.history import with_newest_tables
from prefect_assay.campaigns.loops.loop_log import LoopLog
from prefect_assay.campaigns.loops.report import loop_report
from prefect_assay.cli.output import plain_table
from prefect_assay.orders.ledger import Ledgers
from prefect_assay.orders.ledger.budget import BudgetState
from prefect_assay.orders.ledger.campaign_log import CampaignLog
from prefect_assay.service.assays import ASSAY_TYPES
from prefect_assay.service.models.billing import usd
from prefect_assay.service.models.spec import Assay


def read_rounds(archive: Archive, log: CampaignLog) -> LoopReport:
    """The rounds of a loop whose log is read, as its archive has them.

    Raises:
        ArchiveError: the archive cannot be read here.
    """
    state = log.state
    parameters = state.started.parameters if state.started else {}
    assay = Assay.model_validate(parameters.get("assay") or {})
    objective = ASSAY_TYPES[assay.experiment_type].objective
    loop_log = LoopLog(log.store, log.prefix, log.name)
    rounds = with_newest_tables(archive, loop_log.read().rounds, objective)
    if state.stopped is not None:
        message = f"canceled by {state.stopped.person}"
    else:
        message = state.over.words if state.over else "still running"
    ledgers = Ledgers.find_recorded(log.store, log.prefix, state.terms.service) if state.terms else None
    budget = ledgers.budget.read() if ledgers else BudgetState()
    return loop_report(
        log.name, rounds, objective, campaign_cents=budget.campaign_cents, stop_message=message
    )


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
