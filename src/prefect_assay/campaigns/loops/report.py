"""A loop's log as a report, for its flow, its artifact and the command line."""

from collections.abc import Callable, Iterable

from prefect_assay.campaigns.flow_results import LoopReport, RoundReport
from prefect_assay.campaigns.loops.loop_log import Round
from prefect_assay.campaigns.loops.rules import Stop, best_of, format_value
from prefect_assay.service.assays import Objective


def loop_report(
    loop_id: str,
    rounds: Iterable[Round],
    objective: Objective | None,
    *,
    campaign_cents: Callable[[str], int],
    stop_message: str,
    stop_reason: Stop | None = None,
    left_out: Iterable[RoundReport] = (),
) -> LoopReport:
    """The rounds in their order, and the files that were left out.

    `campaign_cents` is what a campaign costs by the ledgers: a round that has failed, or is still running, may cost as well.
    """
    rounds = tuple(rounds)
    ended = [entry.ended for entry in rounds if entry.ended]
    lines = [
        round_line(entry, objective, campaign_cents(entry.fixed.campaign_id) or None) for entry in rounds
    ]
    return LoopReport(
        loop_id=loop_id,
        rounds=(*lines, *left_out),
        stop_message=stop_message,
        stop_reason=stop_reason,
        best=format_value(best_of([end.best for end in ended], objective), objective),
        spent_cents=sum(line.spent_cents or 0 for line in lines),
    )


def round_line(entry: Round, objective: Objective | None, cost_cents: int | None = None) -> RoundReport:
    """One round as a line; `cost_cents` is what it costs until it has ended."""
    fixed, ended = entry.fixed, entry.ended
    return RoundReport(
        name=fixed.name,
        campaign_id=fixed.campaign_id,
        table=ended.table if ended else None,
        best_kd_M=ended.best_kd_M if ended else None,
        problem=entry.problem,
        number=fixed.number,
        designs=fixed.designs,
        best=format_value(ended.best, objective) if ended else None,
        spent_cents=ended.spent_cents if ended else cost_cents,
    )
