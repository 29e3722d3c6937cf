"""The end of a campaign: one table, one report page, an artifact, and the end in its log."""

from collections.abc import Mapping, Sequence

from prefect_assay.analysis.results import DesignSummary, describe_outcomes, summarize
from prefect_assay.archive.campaign_plan import Plan
from prefect_assay.campaigns import artifacts
from prefect_assay.campaigns.approval.terms import account_in
from prefect_assay.campaigns.events import facts
from prefect_assay.campaigns.flow_results import CampaignExperiment, CampaignReport
from prefect_assay.campaigns.orders import PlannedOrder
from prefect_assay.campaigns.setup import CampaignSetup
from prefect_assay.errors import shortened
from prefect_assay.orders.ledger.campaign_log import CampaignLog
from prefect_assay.orders.stages import Stage, count_stages
from prefect_assay.tasks.archive import kept_location
from prefect_assay.tasks.collate import collate_campaign
from prefect_assay.tasks.report import report_campaign, report_command

_PROBLEM_MAX = 600


def report_campaign_end(
    setup: CampaignSetup,
    plan: Plan,
    log: CampaignLog,
    orders: Sequence[PlannedOrder],
    stages: Mapping[str, Stage],
    problems: Mapping[str, str],
) -> CampaignReport:
    """Collate the archived results and close the campaign; the archive decides what exists."""
    lines = tuple(_make_line(order, stages[order.key], problems.get(order.key), log) for order in orders)
    codes = [line.experiment_code for line in lines if line.location and line.experiment_code]
    table = collate_campaign(setup.archive, plan.campaign_id, codes)
    page = report_campaign(setup.archive, plan.campaign_id)
    report = CampaignReport(
        campaign_id=plan.campaign_id,
        experiments=lines,
        rows=len(table.rows),
        table=table.location,
        page=page.location,
    )
    designs = page.designs or summarize(table.rows, campaign_id=plan.campaign_id)
    command = report_command(setup.archive, plan.campaign_id)
    artifacts.show_campaign(
        plan,
        report,
        designs,
        account_in(log),
        decision=page.decision,
        opening=f"[open it in the S3 console]({page.link}), or run `{command}`"
        if page.link
        else f"`{command}`",
        images=page.images,
        notes=page.notes,
    )
    facts.report_curve_reviews(page.record, page.reviews, news=True)
    if log.read().stopped is None:
        log.finish(
            describe_end(designs, list(stages.values()), report.problems),
            complete=not report.problems and bool(table.rows),
            report=page.location,
        )
    return report


def describe_end(designs: Sequence[DesignSummary], stages: Sequence[Stage], problems: Sequence[str]) -> str:
    """How a campaign ended, for its log and `status`: the outcome as its report has it, the stages, the problems."""
    outcome = [describe_outcomes(designs)] if designs else []
    return shortened("; ".join([*outcome, count_stages(stages), *problems]))


def _make_line(
    order: PlannedOrder, stage: Stage, problem: str | None, log: CampaignLog
) -> CampaignExperiment:
    """One experiment of the report; complete results have no problem."""
    state = order.ledger.state
    shown = log.state.shown.get(order.key)
    code = state.delivered.experiment_code if state.delivered else shown.experiment_code if shown else None
    location = kept_location(order.setup.archive, order.plan.campaign_id, code) if code else None
    if stage is not Stage.MEASURED:
        problem = shortened(problem or stage, _PROBLEM_MAX)
    elif location is None:
        problem = "its results are not in this archive"
    else:
        problem = None
    return CampaignExperiment(
        order_key=order.key,
        batch_index=order.planned.batch_index,
        experiment_id=state.ordered.experiment_id if state.ordered else None,
        experiment_code=code,
        location=location,
        problem=f"experiment {code or order.planned.batch_index + 1}: {problem}" if problem else None,
    )
