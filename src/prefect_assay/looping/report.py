"""A loop's log as a report, for its flow, its artifact and the command line."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from prefect_assay.looping.book import LoopState, Round
from prefect_assay.looping.rules import Stop, best_of, shown
from prefect_assay.models.report import LoopReport, RoundReport
from prefect_assay.models.selection import Objective

_NONE: Final[Mapping[int, str]] = MappingProxyType({})


def loop_report(
    loop_id: str,
    state: LoopState,
    objective: Objective | None,
    *,
    stopped: str,
    stop: Stop | None = None,
    problems: Mapping[int, str] = _NONE,
    unreadable: Iterable[RoundReport] = (),
) -> LoopReport:
    """The rounds in their order; `problems` are those of rounds without an end, by number."""
    ended = [entry.ended for entry in state.rounds if entry.ended]
    return LoopReport(
        loop_id=loop_id,
        rounds=(*(round_line(entry, objective, problems) for entry in state.rounds), *unreadable),
        stopped=stopped,
        stop=stop,
        best=shown(best_of([end.best for end in ended], objective), objective),
        spent_cents=sum(end.spent_cents for end in ended),
    )


def round_line(entry: Round, objective: Objective | None, problems: Mapping[int, str] = _NONE) -> RoundReport:
    """One round as a line; `problems` are those of rounds without an end, by number."""
    fixed, ended = entry.fixed, entry.ended
    return RoundReport(
        name=fixed.name,
        campaign_id=fixed.campaign_id,
        table=ended.table if ended else None,
        best_kd_M=ended.best_kd_M if ended else None,
        problem=ended.problem if ended else problems.get(fixed.number),
        number=fixed.number,
        designs=fixed.designs,
        best=shown(ended.best, objective) if ended else None,
        spent_cents=ended.spent_cents if ended else None,
    )
