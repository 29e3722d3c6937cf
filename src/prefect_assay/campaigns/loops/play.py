"""Plays a loop in one run: rounds until a rule, a person or a failure stops it.

Every execution starts from the top and finds in the archive what was decided: the loop's own log says who started it
under which terms and which run carries it, its ledger which designs each round measures, and each round's campaign is
played by the functions of `campaigns.play`. A wait suspends this same run.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import FlowRun
from prefect.exceptions import ObjectNotFound
from prefect.logging import get_run_logger

from prefect_assay.archive.campaign_plan import Plan
from prefect_assay.campaigns import artifacts
from prefect_assay.campaigns.approval.requester import Requester, identify_requester
from prefect_assay.campaigns.approval.terms import account_in, find_differences, is_another_ledger
from prefect_assay.campaigns.events import facts, is_news
from prefect_assay.campaigns.flow_results import LoopReport, RoundReport
from prefect_assay.campaigns.loops.candidates import try_to_write_round
from prefect_assay.campaigns.loops.choosing import NothingToMeasure, OverBudget
from prefect_assay.campaigns.loops.history import summary_of, with_newest_tables
from prefect_assay.campaigns.loops.loop import Loop, Waiting
from prefect_assay.campaigns.loops.loop_log import Round, RoundEnded, RoundFailed, RoundFixed, designs_address
from prefect_assay.campaigns.loops.proposals import MeasuredFile, UnreadableDesigns, next_round
from prefect_assay.campaigns.loops.report import loop_report, round_line
from prefect_assay.campaigns.loops.rules import RoundValue, Stop, StopRules, stop_reason
from prefect_assay.campaigns.plan import CampaignInput, make_plan
from prefect_assay.campaigns.play import approve_price, begin_campaign, play_orders
from prefect_assay.campaigns.runs.looks import Look
from prefect_assay.campaigns.runs.states import resume_run
from prefect_assay.campaigns.runs.tags import LOOP_TAG, add_tags, name_run
from prefect_assay.campaigns.setup import CampaignSetup, recorded_parameters
from prefect_assay.campaigns.starts import decide_terms, describe_stop, read_restart_fields, stop_with_run
from prefect_assay.campaigns.suspension import PollPolicy, failures_before, suspend_until_news, utc_now
from prefect_assay.errors import (
    AccessError,
    ApprovalExpired,
    ApprovalRejected,
    ArchiveError,
    AssayError,
    ConfigurationError,
    InvalidSpec,
    LoopFailed,
    NotFound,
)
from prefect_assay.orders.ledger.campaign_log import (
    CampaignLog,
    CampaignState,
    Ran,
    Started,
    StartedKind,
)
from prefect_assay.service.transient_failures import is_temporary
from prefect_assay.service.words import many
from prefect_assay.tasks.archive import check_archive
from prefect_assay.tasks.collate import kept_plan, read_campaign_table
from prefect_assay.tasks.current_run import can_suspend, this_run

# More rounds cannot have ended between two executions; a run remembers only its last events.
_REPORTED_MAX: Final = 50


class StoppedByPerson(Exception):
    """A person has canceled the loop or the campaign of one of its rounds, in words for people."""


class RunsElsewhere(Exception):
    """Another run carries the loop, in words for people."""


@dataclass(frozen=True)
class LoopRun:
    """One execution of a loop."""

    setup: CampaignSetup
    loop: Loop
    rules: StopRules
    log: CampaignLog

    def spent_cents(self, *, besides: str | None = None) -> int:
        """What the orders of all rounds cost, by the ledgers, in US cents without VAT; `besides` is left out."""
        campaigns = [name for name in self.loop.loop_log.read().campaigns if name != besides]
        budget = self.setup.ledgers.budget.read() if campaigns else None
        return sum(budget.campaign_cents(campaign_id) for campaign_id in campaigns) if budget else 0

    def compute_limit_cents(self, fixed: RoundFixed) -> int:
        """What a round may cost without asking: within its own limit, the terms, and what the other rounds leave now."""
        left_cents = (self.rules.budget_cents or 0) - self.spent_cents(besides=fixed.campaign_id)
        return max(0, min(fixed.limit_cents or 0, left_cents, self.setup.unasked_cents))

    def check_not_stopped(self) -> None:
        """Raise StoppedByPerson if a person has canceled the loop."""
        stopped = self.log.read().stopped
        if stopped is not None:
            raise StoppedByPerson(describe_stop(f"loop {self.loop.loop_id}", stopped))


@dataclass(frozen=True)
class Progress:
    """The rounds after a look at the log, and the files, by campaign id, that this execution leaves out."""

    rounds: tuple[Round, ...] = ()
    left_out: Mapping[str, RoundReport] = field(default_factory=dict)

    def values(self, start: datetime) -> list[RoundValue]:
        """The rounds that were tried, in their order; one without a table has no value."""
        return [
            RoundValue(entry.fixed.name, entry.ended.best if entry.ended else None)
            for entry in self.rounds
            if entry.ended or entry.has_failed_under(start)
        ]

    def without(self, error: UnreadableDesigns | MeasuredFile) -> "Progress":
        """One more file that is left out."""
        line = RoundReport(
            name=error.name, campaign_id=error.campaign_id, table=None, best_kd_M=None, problem=str(error)
        )
        return replace(self, left_out={**self.left_out, error.campaign_id: line})


def play_loop(setup: CampaignSetup, loop: Loop, rules: StopRules) -> LoopReport:
    """Play rounds until there is a reason to stop; a deployed run does not return from a wait.

    Raises:
        LoopFailed: a designer's round gave nothing to go on with.
        DesignerFailed: the designer failed or proposed nothing.
        InvalidSequences: its designs cannot be ordered.
        ApprovalExpired: nobody has answered whether a round is ordered.
    """
    run = LoopRun(setup, loop, rules, setup.loop_log(loop.loop_id))
    attempt = 0
    while True:
        try:
            return _play_once(run)
        except _LookAgain as waiting:
            error = waiting.error
        get_run_logger().warning("Could not go on, will look again: %s", error)
        if can_suspend():
            look = Look.after_failure(utc_now(), failures_before() + 1)
            message = f"will look again, because of: {error}"
            suspend_until_news(message, look=look, has_news=lambda: False)
        time.sleep(PollPolicy(longest_seconds=setup.options.waiting.poll_seconds).pause_seconds(attempt))
        attempt += 1


class _LookAgain(Exception):
    def __init__(self, error: Exception) -> None:
        self.error = error


def _play_once(run: LoopRun) -> LoopReport:
    is_begun = False
    try:
        try:
            run = begin_loop(run)
        except RunsElsewhere as error:
            return _make_report(run, _reread_rounds(run), Stop.RUNS_ELSEWHERE, str(error))
        except StoppedByPerson as error:
            return _make_report(run, _reread_rounds(run), Stop.PERSON, str(error))
        is_begun = True
        try:
            return _play_rounds(run)
        except StoppedByPerson as error:
            return _end_loop(run, _reread_rounds(run), Stop.PERSON, str(error))
    except (AssayError, OSError) as error:
        if _may_pass(run, error):
            raise _LookAgain(error) from error
        if is_begun:
            _record_end(run, str(error), complete=False)
        raise


def begin_loop(run: LoopRun) -> LoopRun:
    """Record that the loop is started, and that this run carries it; returns it under the recorded terms.

    A deployed run that starts with other parameters, or after the loop's end, is a new start; any other one goes on.

    Raises:
        StoppedByPerson: a person has canceled the loop, and nobody has reopened it.
        RunsElsewhere: another run carries it.
        DecisionNeeded: the account differs from the one at the loop's start, and this run cannot wait for an answer.
    """
    setup, log = run.setup, run.log
    flow_run = this_run() if can_suspend() else None
    terms = setup.terms(run.rules.budget_cents or 0)
    # `status` reads the assay also of a loop that no deployment can start again.
    parameters = recorded_parameters({"assay": run.loop.assay.model_dump(mode="json")}, setup.account)
    started = Started(what=StartedKind.LOOP, name=run.loop.loop_id, terms=terms, parameters=parameters)
    asked_by = identify_requester(setup)
    started = started.model_copy(update={"requester": asked_by.name, "requester_known_by": asked_by.known_by})
    if flow_run is not None:
        started = started.model_copy(update=read_restart_fields(setup))
        name_run(flow_run, f"loop {run.loop.loop_id}")
    carriers_before: set[str] = set()  # of starts that have ended
    while True:
        seen = log.read()
        run.check_not_stopped()
        if seen.over is not None:
            carriers_before = set(seen.runs)
        carrier = _find_carrier(seen)
        is_carried_here = flow_run is not None and carrier is not None and carrier.run == str(flow_run.id)
        if carrier is not None and not is_carried_here and carrier.run not in carriers_before:
            _refuse_second_run(run, carrier)
        # Another ledger is not a new start: the orders of the earlier rounds would be unknown there.
        is_known = seen.started is None or not is_another_ledger(seen.started.terms, terms)
        if is_known and _is_new_start(seen, started):
            log.start_unless_changed(started, seen)
        elif (
            flow_run is None
            or is_carried_here
            or log.append_unless_changed(Ran(run=str(flow_run.id), name=flow_run.name), seen)
        ):
            break
    if flow_run is not None:
        add_tags(flow_run.id, [LOOP_TAG + run.loop.loop_id])
        stop_with_run(log, flow_run.id)
        run.check_not_stopped()
    recorded = log.state.started
    assert recorded is not None  # noqa: S101 - it was just read
    if find_differences(recorded.terms, terms):
        recorded = decide_terms(log, setup, recorded, terms)
    under = setup.under(recorded.terms)
    loop = replace(run.loop, start=recorded.at, archive_id=recorded.terms.archive_id)
    return replace(run, setup=under, loop=loop)


def _find_carrier(state: CampaignState) -> Ran | None:
    """The run that carries the loop, or was the last to do so."""
    return next(reversed(state.runs.values()), None)


def _refuse_second_run(run: LoopRun, carrier: Ran) -> None:
    """Raise RunsElsewhere if the run that carries the loop is live; one that waits for designs is woken to look."""
    with get_client(sync_client=True) as client:
        other = find_live_run(client, carrier.run)
        if other is None:
            return
        if not any(entry.ended is None and entry.failed is None for entry in run.loop.loop_log.read().rounds):
            resume_run(client, other.id)
    raise RunsElsewhere(
        f"flow run {other.name} ({other.id}) runs this loop already, and this run has changed nothing; to run it here, "
        "cancel that run first"
    )


def find_live_run(client: SyncPrefectClient, run_id: str) -> FlowRun | None:
    """The run, if Prefect has it and it has not ended."""
    try:
        flow_run = client.read_flow_run(UUID(run_id))
    except ObjectNotFound:
        return None
    return None if flow_run.state is None or flow_run.state.is_final() else flow_run


def _is_new_start(seen: CampaignState, started: Started) -> bool:
    """Return True after the loop's end, and where a person starts it with other parameters."""
    if seen.started is None or seen.over is not None:
        return True
    return started.deployment is not None and seen.started.parameters != started.parameters


def _may_pass(run: LoopRun, error: Exception) -> bool:
    """Return True if the loop may go on later.

    A deployed run waits for whatever a person can correct once a round has ended, and with an open order for anything.
    """
    if is_temporary(error):
        return True
    if not can_suspend() or isinstance(error, LoopFailed | ApprovalExpired):
        return False
    mendable = isinstance(error, AccessError | NotFound | ArchiveError | ConfigurationError | OSError)
    try:
        rounds = run.loop.loop_log.read().rounds
        waiting = [
            entry.fixed.campaign_id
            for entry in rounds
            if entry.ended is None and not entry.has_failed_under(run.loop.start)
        ]
        has_ended = any(entry.ended for entry in rounds)
        return (mendable and has_ended) or any(_has_ordered(run, name) for name in waiting)
    except (AssayError, OSError):  # what cannot be read counts as ordered
        return True


def _record_end(run: LoopRun, words: str, *, complete: bool) -> None:
    """Record the end: the sweep does not start the loop again. A canceled loop stays open until that is settled."""
    if run.log.read().stopped is None:
        run.log.finish(words, complete=complete)


def _play_rounds(run: LoopRun) -> LoopReport:
    """Measure what the log has, ask the rules, fix the next round, until there is a reason to stop."""
    progress = Progress()
    while True:
        try:
            progress = _measure_rounds(run, progress)
        except ApprovalRejected as error:
            return _end_loop(run, _reread_rounds(run, progress), Stop.PERSON, str(error))
        # The rules decide on the round after these. Another run may fix and measure it meanwhile: then its decision
        # counts, and the rules are asked again before there is one more.
        reason = _reason_to_stop(run, progress)
        if reason is not None:
            return _end_loop(run, progress, *reason)
        try:
            if not _record_next_round(run, progress):
                return _end_loop(
                    run, progress, Stop.NO_MORE_DESIGNS, _no_more_designs(run.loop.options.wait_days)
                )
        except MeasuredFile as error:
            progress = progress.without(error)
        except (OverBudget, NothingToMeasure) as error:
            return _end_loop(run, progress, error.stop, str(error))
        except UnreadableDesigns as error:
            if run.loop.designer:
                raise
            progress = progress.without(error)


def _measure_rounds(run: LoopRun, progress: Progress) -> Progress:
    """All rounds of the log, once each has ended or has failed in this start; a designer's loop ends at the first failure."""
    while True:
        rounds = run.loop.loop_log.read().rounds
        failed = [entry for entry in rounds if entry.has_failed_under(run.loop.start)]
        waiting = [entry.fixed for entry in rounds if entry.ended is None and entry not in failed]
        if not waiting or (failed and run.loop.designer):
            _report_rounds(run)
            newest = with_newest_tables(run.setup.archive, rounds, run.rules.objective)
            return replace(progress, rounds=newest)
        measure_round(run, waiting[0])


def _reread_rounds(run: LoopRun, progress: Progress | None = None) -> Progress:
    """With the rounds that the log has by now."""
    rounds = with_newest_tables(run.setup.archive, run.loop.loop_log.read().rounds, run.rules.objective)
    return replace(progress or Progress(), rounds=rounds)


def _reason_to_stop(run: LoopRun, progress: Progress) -> tuple[Stop, str] | None:
    """The stop rules. A designer's loop also stops before it buys more of what failed; the next start goes on."""
    start = run.loop.start
    if run.loop.designer:
        for entry in progress.rounds:
            if entry.has_failed_under(start):
                return Stop.FAILED, f"round {entry.fixed.number} has no results: {entry.problem}"
    reason = stop_reason(run.rules, progress.values(start), run.spent_cents())
    last = progress.rounds[-1] if progress.rounds else None
    if reason or not run.loop.designer or last is None or last.ended is None or last.ended.measured:
        return reason
    if last.ended.start != start:
        return None
    return Stop.FAILED, (
        f"round {last.fixed.number}: none of its {many(last.fixed.designs, 'design')} could be measured, see "
        f"{last.ended.table}. To go on nevertheless, press Retry or start the loop again"
    )


def _record_next_round(run: LoopRun, progress: Progress) -> bool:
    """Propose the round after these and write it to the log, where another run's decision may stand already.

    False if there are no more designs. Waits for designs that may still come.
    """
    check_archive(run.setup.archive)
    last = progress.rounds[-1].ended if progress.rounds else None
    attempt = 0
    while True:
        budget = run.rules.budget_cents
        proposal = next_round(
            run.loop,
            len(progress.rounds) + 1,
            None if budget is None else budget - run.spent_cents(),
            since=max(run.loop.start, last.at) if last else run.loop.start,
            skip=frozenset(progress.left_out),
        )
        match proposal:
            case RoundFixed():
                run.check_not_stopped()
                run.loop.loop_log.fix(proposal)
                return True
            case None:
                return False
            case Waiting():
                if can_suspend():
                    look = Look.after_success(utc_now(), proposal.pause)
                    suspend_until_news(proposal.message, look=look, has_news=proposal.has_news)
        time.sleep(PollPolicy(longest_seconds=run.setup.options.waiting.poll_seconds).pause_seconds(attempt))
        attempt += 1


def measure_round(run: LoopRun, fixed: RoundFixed) -> None:
    """Play the round's campaign in this run, and note its end in the loop's log; a wait inside ends this execution.

    Raises:
        StoppedByPerson: a person has canceled it.
        ApprovalRejected: a person ended the loop before this round.
        ApprovalExpired: nobody has answered in time.
    """
    setup, campaign_id = run.setup, fixed.campaign_id
    try_to_write_round(run.loop.loop_log.store, setup.archive.prefix, fixed)
    log = setup.log(campaign_id)
    _raise_if_stopped(fixed, log)
    state, problem = log.read(), None
    if state.started is not None and state.started.at < fixed.at:
        try:
            make_plan(setup, _make_campaign_input(run.loop, fixed))
        except InvalidSpec as error:  # another campaign has this id: its designs are not the round's
            run.loop.loop_log.fail(RoundFailed(number=fixed.number, problem=str(error), start=run.loop.start))
            return
    table = read_campaign_table(setup.archive, campaign_id)
    if state.over is None or table is None:
        problem = _play_campaign(run, fixed, log)
        table = read_campaign_table(setup.archive, campaign_id)
    elif not state.over.complete:  # a kill came between the campaign's end and the round's
        problem = state.over.words
    if table is None or table.location is None:
        problem = problem or "its campaign left no table in the archive"
        run.loop.loop_log.fail(RoundFailed(number=fixed.number, problem=problem, start=run.loop.start))
        return
    run.loop.loop_log.end(
        RoundEnded(
            number=fixed.number,
            spent_cents=setup.ledgers.budget.read().campaign_cents(campaign_id),
            problem=problem,
            start=run.loop.start,
            **summary_of(setup.archive, campaign_id, table, run.rules.objective),
        )
    )


def _play_campaign(run: LoopRun, fixed: RoundFixed, log: CampaignLog) -> str | None:
    """Play a round's campaign to its end; returns what is wrong with its results, if anything."""
    setup, campaign_id = run.setup, fixed.campaign_id
    problem: str | None
    try:
        plan = _find_ordered_plan(run, campaign_id) or make_plan(setup, _make_campaign_input(run.loop, fixed))
        started = run.log.state.started
        limit_cents = run.compute_limit_cents(fixed)
        campaign = begin_campaign(
            setup,
            plan,
            unasked_cents=limit_cents,
            asked_by=Requester(started.requester, started.requester_known_by) if started else None,
            loop_id=run.loop.loop_id,
        )
        # One that has begun before keeps its terms, of a time when other rounds had cost less.
        unasked_cents = min(campaign.setup.unasked_cents, limit_cents)
        campaign.setup = replace(campaign.setup, unasked_cents=unasked_cents)
        # A person who cancels the loop stops its log first, and then each campaign that has begun.
        run.check_not_stopped()
        approve_price(campaign)
        problem = "; ".join(play_orders(campaign).problems) or None
    except (ApprovalRejected, ApprovalExpired) as error:
        log.finish(str(error), complete=False)
        raise
    except AssayError as error:
        _raise_if_stopped(fixed, log)
        # A round that does not fit the loop's assay or reading fails, also while a later one is ordered.
        is_misfit = isinstance(error, InvalidSpec) and not _has_ordered(run, campaign_id)
        if not is_misfit and _may_pass(run, error):
            raise
        problem = str(error)
        if not _has_ordered(run, campaign_id):
            log.finish(problem, complete=False)
    _raise_if_stopped(fixed, log)
    return problem


def _raise_if_stopped(fixed: RoundFixed, log: CampaignLog) -> None:
    stopped = log.read().stopped
    if stopped is not None:
        raise StoppedByPerson(describe_stop(f"round {fixed.number}", stopped))


def _make_campaign_input(loop: Loop, fixed: RoundFixed) -> CampaignInput:
    return CampaignInput(
        designs=designs_address(loop.loop_id, fixed.number),
        assay=loop.assay,
        campaign_id=fixed.campaign_id,
        reading=loop.reading,
    )


def _has_ordered(run: LoopRun, campaign_id: str) -> bool:
    return _find_ordered_plan(run, campaign_id) is not None


def _find_ordered_plan(run: LoopRun, campaign_id: str) -> Plan | None:
    """The archived plan of a campaign of which an order is placed, which continues as it is; None for any other."""
    plan = kept_plan(run.setup.archive, campaign_id)
    ledgers = run.setup.ledgers
    is_ordered = any(
        ledgers.open_order(campaign_id, planned.order_key).read().placed
        for planned in (plan.experiments if plan else ())
    )
    return plan if is_ordered else None


def _report_rounds(run: LoopRun) -> None:
    """Report the rounds that have ended or failed, by the log: also one that ended right before a kill."""
    for entry in run.loop.loop_log.read().rounds[-_REPORTED_MAX:]:
        last = entry.ended or entry.failed
        if last is not None:
            line = round_line(entry, run.rules.objective)
            facts.round_completed(run.loop.loop_id, line, news=is_news(last.at))


def _no_more_designs(wait_days: float) -> str:
    if wait_days:
        return f"no new design file came within {wait_days:g} days; the next run takes the files that come"
    return "every design file has been measured; the next run takes the files that come"


def _end_loop(run: LoopRun, progress: Progress, stop: Stop, words: str) -> LoopReport:
    """Record the end; a loop that failed raises LoopFailed with the report."""
    if stop is Stop.FAILED:
        words = f"{words}; nothing further was ordered"
    report = _make_report(run, progress, stop, words)
    _record_end(run, words, complete=stop not in {Stop.FAILED, Stop.PERSON})
    if stop is Stop.FAILED:
        raise LoopFailed(words, report=report)
    return report


def _make_report(run: LoopRun, progress: Progress, stop: Stop, words: str) -> LoopReport:
    """The report, which is also shown as an artifact."""
    report = loop_report(
        run.loop.loop_id,
        progress.rounds,
        run.rules.objective,
        campaign_cents=run.setup.ledgers.budget.read().campaign_cents,
        stop_message=words,
        stop_reason=stop,
        left_out=progress.left_out.values(),
    )
    if not run.loop.designer:
        by_name = tuple(sorted(report.rounds, key=lambda line: line.name))
        report = report.model_copy(update={"rounds": by_name})
    artifacts.show_loop(report, account_in(run.log))
    return report
