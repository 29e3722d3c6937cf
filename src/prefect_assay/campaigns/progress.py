"""The artifact of a campaign that is under way: one row per experiment, and a timeline."""

from collections.abc import Mapping, Sequence

from prefect_assay.archive.campaign_plan import Plan
from prefect_assay.campaigns.orders import PlannedOrder
from prefect_assay.campaigns.progress_artifact import progress_row, show_campaign_progress, timeline_of_log
from prefect_assay.orders.ledger.campaign_log import CampaignLog
from prefect_assay.service.models.experiment import ExperimentSummary


def show_progress(
    plan: Plan,
    orders: Sequence[PlannedOrder],
    log: CampaignLog,
    account: str,
    rows: Mapping[str, ExperimentSummary],
) -> None:
    """Show where each experiment is; `rows` are those of the service's list, by experiment id."""
    shown = log.state.shown
    lines = [
        progress_row(
            order.name,
            len(order.spec.sequences),
            order.ledger.state,
            shown.get(order.key),
            rows.get(ordered.experiment_id) if (ordered := order.ledger.state.ordered) is not None else None,
            log.state.terms,
        )
        for order in orders
    ]
    show_campaign_progress(plan.campaign_id, account, lines, timeline_of_log(log.records()))
