"""The rounds of a loop: reads from the log what comes next, asks a person, runs the campaign, records the end.

Every step may be repeated: a campaign is found by its id, and the log keeps one end of each round.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from prefect.client.schemas.objects import State

from prefect_assay.approvals.rounds import approve_round
from prefect_assay.errors import AssayError
from prefect_assay.events import is_news
from prefect_assay.flows.campaign import campaign
from prefect_assay.flows.run_options import LoopRun
from prefect_assay.looping import (
    Round,
    RoundEnded,
    RoundFailed,
    RoundFixed,
    RoundValue,
    Stop,
    UnreadableDesigns,
    next_round,
    round_line,
    stop_reason,
    summary_of,
    with_newest_tables,
)
from prefect_assay.looping.candidates import try_to_add_round
from prefect_assay.models.billing import usd
from prefect_assay.models.report import RoundReport
from prefect_assay.models.words import many
from prefect_assay.reporting import facts
from prefect_assay.runs import can_suspend, is_temporary
from prefect_assay.runs.children import attempt_began, call_children, start_child, wait_for_children
from prefect_assay.runs.suspend import this_run
from prefect_assay.tasks.archive import check_archive
from prefect_assay.tasks.collate import kept_plan, kept_table

# More rounds cannot have ended between two executions; a run remembers only its last events.
_REPORTED_MAX: Final = 50


@dataclass(frozen=True)
class Tried:
    """The rounds after a look at the log, and what only this execution knows: what it has tried in vain."""

    rounds: tuple[Round, ...] = ()
    failed: frozenset[int] = frozenset()  # numbers of rounds
    unreadable: Mapping[str, RoundReport] = field(default_factory=dict)  # files, by campaign id

    def values(self) -> list[RoundValue]:
        """The rounds that were tried, in their order; one without a table has no value."""
        return [
            RoundValue(entry.fixed.name, entry.ended.best if entry.ended else None)
            for entry in self.rounds
            if entry.ended or entry.fixed.number in self.failed
        ]

    def without(self, error: UnreadableDesigns) -> "Tried":
        """One more file that cannot be read."""
        line = RoundReport(
            name=error.name, campaign_id=error.campaign_id, table=None, best_kd_M=None, problem=str(error)
        )
        return replace(self, unreadable={**self.unreadable, error.campaign_id: line})


def measured(run: LoopRun, tried: Tried) -> Tried:
    """Return all rounds of the log, once each has ended or has failed in this run. A designer's loop ends at the first."""
    while True:
        rounds = run.loop.book.read().rounds
        waiting = [r.fixed for r in rounds if r.ended is None and r.fixed.number not in tried.failed]
        if not waiting or (tried.failed and run.loop.designer):
            _report_rounds(run)
            return replace(tried, rounds=run.outlasting("tables", partial(_newest, run, rounds)))
        for fixed in waiting:
            if not run.outlasting(f"round-{fixed.campaign_id}", partial(_measure, run, fixed)):
                tried = replace(tried, failed=tried.failed | {fixed.number})
                break


def _newest(run: LoopRun, rounds: tuple[Round, ...]) -> tuple[Round, ...]:
    return with_newest_tables(run.options.archive, rounds, run.rules.objective)


def reread(run: LoopRun, tried: Tried) -> Tried:
    """With the rounds that the log has by now."""
    rounds = run.outlasting("tables", lambda: _newest(run, run.loop.book.read().rounds))
    return replace(tried, rounds=rounds)


def reason_to_stop(run: LoopRun, tried: Tried) -> tuple[Stop, str] | None:
    """The stop rules. A designer's loop also stops before it buys more of what failed; a Retry goes on."""
    if run.loop.designer:
        for entry in tried.rounds:
            if entry.fixed.number in tried.failed:
                return Stop.FAILED, f"round {entry.fixed.number} has no results: {entry.problem}"
    reason = stop_reason(run.rules, tried.values(), run.outlasting("budget", run.spent_cents))
    last = tried.rounds[-1] if tried.rounds else None
    if reason or not run.loop.designer or last is None or last.ended is None or last.ended.measured:
        return reason
    began = attempt_began(this_run())
    if began is not None and last.ended.at < began:
        return None
    return Stop.FAILED, (
        f"round {last.fixed.number}: none of its {many(last.fixed.designs, 'design')} could be measured, see "
        f"{last.ended.table}. To go on nevertheless, press Retry or start the loop again"
    )


def fix_next(run: LoopRun, tried: Tried) -> RoundFixed | None:
    """Propose the round after these and write it to the log; one that another run has fixed meanwhile counts."""
    check_archive(run.options.archive)
    last = tried.rounds[-1].ended if tried.rounds else None
    found = next_round(
        run.loop,
        len(tried.rounds) + 1,
        None if run.rules.budget_cents is None else run.rules.budget_cents - run.spent_cents(),
        since=last.at if last else attempt_began(this_run()) or datetime.now(UTC),
        skip=frozenset(tried.unreadable),
    )
    return None if found is None else run.loop.book.fix(found)


def _measure(run: LoopRun, fixed: RoundFixed) -> bool:
    """Run the round's campaign, or find it, and note its end in the log; False if it left no table.

    Raises:
        ApprovalRejected: a person ended the loop before this round.
        ApprovalExpired: the question was not answered in time.
    """
    archive = run.options.archive
    try_to_add_round(run.loop.book.store, archive.prefix, fixed)
    if run.ask_each_round and kept_plan(archive, fixed.campaign_id) is None:
        _ask(run, fixed)
    try:
        problem = _deployed(run, fixed) if can_suspend() else _here(run, fixed)
    except AssayError as error:
        if is_temporary(error):
            raise
        problem = str(error)
    table = kept_table(archive, fixed.campaign_id)
    if table is None or table.location is None:
        problem = problem or "its campaign left no table in the archive"
        run.loop.book.fail(RoundFailed(number=fixed.number, problem=problem))
        return False
    run.loop.book.end(
        RoundEnded(
            number=fixed.number,
            spent_cents=run.options.books.budget.read().campaign_cents(fixed.campaign_id),
            problem=problem,
            **summary_of(table, run.rules.objective),
        )
    )
    return True


def _report_rounds(run: LoopRun) -> None:
    """Report the rounds that have ended or failed, by the log: also one that ended right before a kill."""
    rounds = run.loop.book.read().rounds
    previous = None
    for position, entry in enumerate(rounds):
        last = entry.ended or entry.failed
        if last is not None and position >= len(rounds) - _REPORTED_MAX:
            line = round_line(entry, run.rules.objective)
            facts.round_completed(run.loop.loop_id, line, previous, news=is_news(last.at))
        if entry.ended is not None:
            previous = entry.fixed.name


def _ask(run: LoopRun, fixed: RoundFixed) -> None:
    left = "no budget is set" if fixed.limit_cents is None else usd(fixed.limit_cents)
    approve_round(
        key=f"{run.loop.loop_id}/{fixed.number}",
        what=f"Round {fixed.number} of loop {run.loop.loop_id}, {many(fixed.designs, 'design')}",
        figures={"designs from": fixed.origin, "campaign": fixed.campaign_id, "budget left": left},
        hours=run.options.policy.approval_hours,
    )


def _deployed(run: LoopRun, fixed: RoundFixed) -> str | None:
    group = f"round-{fixed.campaign_id}@{run.options.scope}"
    child = start_child(
        "campaign",
        f"assay-{group}",
        run.campaign_parameters(fixed),
        run_name=fixed.campaign_id,
        groups=[group],
        is_done=lambda _run: kept_table(run.options.archive, fixed.campaign_id) is not None,
    )
    ended = wait_for_children([child.id], group=group, timeout=run.options.round_timeout)
    return _problem_of(ended[0].state if ended else None)


def _here(run: LoopRun, fixed: RoundFixed) -> str | None:
    state = call_children([partial(campaign, **run.campaign_parameters(fixed), return_state=True)])[0]
    return str(state) if isinstance(state, BaseException) else _problem_of(state)


def _problem_of(state: State[Any] | None) -> str | None:
    if state is None:
        return "its run was deleted"
    return None if state.name == "Completed" else f"{state.name}: {state.message}"
