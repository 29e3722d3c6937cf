"""The steps of one round of a loop that is in its log: the question to a person, its campaign, its end.

Every step may be repeated: a campaign is found by its id, and the log keeps one end of each round.
"""

from functools import partial
from typing import Any, Final

from prefect.client.schemas.objects import State

from prefect_assay.approvals.rounds import approve_round
from prefect_assay.errors import AssayError
from prefect_assay.events import is_news
from prefect_assay.flows.campaign import campaign
from prefect_assay.flows.run_options import LoopRun
from prefect_assay.looping import RoundEnded, RoundFailed, RoundFixed, round_line, summary_of
from prefect_assay.looping.candidates import try_to_add_round
from prefect_assay.models.billing import usd
from prefect_assay.reporting import facts
from prefect_assay.runs import can_suspend, is_temporary
from prefect_assay.runs.children import call_children, start_child, wait_for_children
from prefect_assay.runs.tags import WAITS_TAG, own_tags
from prefect_assay.tasks.collate import kept_plan, kept_table

# More rounds cannot have ended between two executions; a run remembers only its last events.
_REPORTED_MAX: Final = 50


def measure(run: LoopRun, fixed: RoundFixed) -> bool:
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


def report_rounds(run: LoopRun) -> None:
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
        what=f"Round {fixed.number} of loop {run.loop.loop_id}, {fixed.designs} designs",
        figures={"designs from": fixed.origin, "campaign": fixed.campaign_id, "budget left": left},
        hours=run.options.policy.approval_hours,
    )


def _deployed(run: LoopRun, fixed: RoundFixed) -> str | None:
    group = f"round-{fixed.campaign_id}"
    if WAITS_TAG + group not in own_tags():  # else an earlier version started it
        group = f"{group}@{run.options.scope}"
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
