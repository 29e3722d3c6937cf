"""The artifact of a campaign that is under way: one row per experiment, and a timeline of each."""

from collections.abc import Iterator, Sequence
from typing import Final

from prefect.artifacts import create_markdown_artifact

from prefect_assay.books.campaign_log import CampaignLog, Looked, ShownExperiment
from prefect_assay.campaigns.orders import PlannedOrder
from prefect_assay.models.billing import usd
from prefect_assay.models.spec import Plan
from prefect_assay.models.words import in_words
from prefect_assay.reporting.artifacts import label_of, verbatim
from prefect_assay.reporting.progress import day

_LINES_MAX: Final = 200


def show_progress(plan: Plan, orders: Sequence[PlannedOrder], log: CampaignLog, account: str) -> None:
    """Show where each experiment is; called when something has changed."""
    lines = [
        f"# Campaign {verbatim(plan.campaign_id)}",
        "",
        f"Account: {verbatim(account)}",
        "",
        "| experiment | designs | stage | laboratory | price | results expected |",
        "|---|---:|---|---|---:|---|",
        *(_row(order, log.state.shown.get(order.key)) for order in orders),
    ]
    problems = [shown.problem for shown in log.state.shown.values() if shown.problem]
    lines += ["", *(f"- {verbatim(problem)}" for problem in problems)]
    for order in orders:
        timeline = list(_timeline(log, order.key))
        if timeline:
            lines += ["", f"## {verbatim(order.name)}", "", *timeline[-_LINES_MAX:]]
    create_markdown_artifact(
        key=f"assay-progress-{label_of(plan.campaign_id)}",
        markdown="\n".join(lines),
        description=f"Where the experiments of campaign {verbatim(plan.campaign_id)} are",
    )


def _row(order: PlannedOrder, shown: ShownExperiment | None) -> str:
    cells = (
        verbatim((shown and shown.experiment_code) or order.name),
        str(len(order.spec.sequences)),
        shown.stage if shown else "",
        in_words(shown.status) if shown and shown.status else "",
        usd(order.book.state.amount_cents) if order.book.state.amount_cents is not None else "",
        day(shown.expected) if shown and shown.expected else "",
    )
    return f"| {' | '.join(cells)} |"


def _timeline(log: CampaignLog, order_key: str) -> Iterator[str]:
    """What an experiment has gone through, one line per change, by the service's clock."""
    for record in log.records():
        if isinstance(record, Looked) and (shown := record.experiments.get(order_key)) is not None:
            words = f": {in_words(shown.status)}" if shown.status else ""
            yield f"- {record.read_at:%Y-%m-%d %H:%M} UTC: {shown.stage}{words}"
