"""`sweep`: wake the runs that should have been woken, and repair what no automation repairs; see docs/waiting.md."""

import hashlib
import re
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final
from uuid import UUID

from prefect import flow
from prefect.artifacts import create_markdown_artifact
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import TERMINAL_STATES, FlowRun, State, StateType
from prefect.logging import get_run_logger
from prefect.runtime import deployment
from prefect.states import Completed
from pydantic import Field

from prefect_assay.alerts.find import stuck_run
from prefect_assay.alerts.saved import save_problems
from prefect_assay.approvals.questions import answer_expired, ask_again, report_questions
from prefect_assay.approvals.uncertain_payment import answer_paid
from prefect_assay.errors import shortened
from prefect_assay.flows import form
from prefect_assay.looping.wakes import loops_to_wake
from prefect_assay.models.open_money import OpenKind
from prefect_assay.models.problem import AlertLimits, Problem
from prefect_assay.models.report import SweepReport
from prefect_assay.models.sweep import OpenSum, SweepMemory
from prefect_assay.runs.block_references import is_saved
from prefect_assay.runs.children import wake_finished_groups
from prefect_assay.runs.crashes import reschedule_crashed
from prefect_assay.runs.durable import PINNED
from prefect_assay.runs.heartbeats import mark_missing_heartbeats_crashed
from prefect_assay.runs.queries import (
    ASSAY_FLOWS,
    is_assay_run,
    read_run_pages,
    read_runs,
    recoverable_runs,
    run_filter,
    suspended_filter,
    unreadable_runs,
    why_unreadable,
)
from prefect_assay.runs.states import has_expired, waits_for_input
from prefect_assay.runs.tags import GROUP_TAG, tag_values
from prefect_assay.runs.transient_failures import is_due, is_marked, marked_filter, needed_block
from prefect_assay.sweeping import (
    ExperimentWatch,
    SweepProgress,
    SweepState,
    find_blocked_runs,
    find_open_orders,
    find_stuck_runs,
)
from prefect_assay.sweeping.alert_facts import AlertFacts
from prefect_assay.sweeping.cancellations import report_canceled_runs
from prefect_assay.sweeping.old_sweeps import remove_old_sweeps
from prefect_assay.sweeping.open_money import record_open_money
from prefect_assay.sweeping.stranded_runs import (
    replace_unstarted_runs,
    reschedule_expired,
    reschedule_unpaused,
)

# Clocks differ, and a state may be written a little after its time.
_MARGIN: Final = timedelta(minutes=10)
# How far back the first sweep looks for runs that have ended.
_FIRST_LOOK: Final = timedelta(days=1)
# One that hangs gives way to the next.
_ENDS_AFTER_SECONDS: Final = 900
_REQUEST_ID: Final = re.compile(r" \(request [^)]*\)")


@flow(name="sweep", timeout_seconds=_ENDS_AFTER_SECONDS, **PINNED)
def sweep(
    full_check_minutes: Annotated[int, Field(ge=0, le=10_080), form.titled("Full check (minutes)")] = 60,
    alert_limits: Annotated[AlertLimits, form.titled("Limits of problems")] = AlertLimits(),  # noqa: B008 - frozen
    keep_days: Annotated[int, Field(ge=1, le=3650), form.titled("Keep finished runs (days)")] = 3,
) -> State[SweepReport]:
    """Wake every suspended run whose experiment has news, and every parent whose children have all ended.

    Also retries runs after temporary failures, ends questions without an answer in time, reports what remains of
    canceled runs, reschedules crashed runs, and names the runs that need a person.

    Needs no token of its own: each waiting run is looked up with the credentials block it was started with.

    Args:
        full_check_minutes: how often the state of every waiting experiment is read; 0 means every time.
        alert_limits: from when on an unpaid invoice, a quote, a deadline, a token or a wallet is a problem.
        keep_days: how long finished runs of this deployment stay; older ones are deleted, fifty per full check.

    Returns:
        SweepReport: what was read, which runs were woken, which tokens could not be used, and which runs need a
            person.
    """
    with get_client(sync_client=True) as prefect:
        state = SweepState.read(prefect)
        report = _Sweep(prefect, state, datetime.now(UTC), full_check_minutes, alert_limits, keep_days).run()
    lines = [
        f"{report.updates_seen} updates, {report.suspended_runs} suspended runs, {len(report.woken)} woken",
        *report.problems,
        *report.attention,
    ]
    for line in lines:
        get_run_logger().info(line)
    name = "CompletedWithGaps" if report.problems or report.attention else "Completed"
    return Completed(name=name, message=shortened("; ".join(lines)), data=report)


@dataclass
class _Sweep:
    prefect: SyncPrefectClient
    state: SweepState
    now: datetime
    full_check_minutes: int
    limits: AlertLimits = field(default_factory=AlertLimits)
    keep_days: int = 3
    progress: SweepProgress = field(init=False)
    facts: AlertFacts = field(init=False)
    watch: ExperimentWatch = field(init=False)

    def __post_init__(self) -> None:
        self.progress = SweepProgress(self.prefect, self.now)
        self.facts = AlertFacts(self.now, self.limits)
        self.watch = ExperimentWatch(self.progress, self.state, self.facts)

    def run(self) -> SweepReport:
        """Run all parts, and save the state last: a sweep that dies earlier is repeated, which does no harm."""
        progress, watch = self.progress, self.watch
        before = self._memory()
        since = before.swept - _MARGIN if before.swept else None
        watch.read_feeds(since)
        with progress.part("runs that have ended"):
            self._read_ended(since or self.now - _FIRST_LOOK)
        checked = self._full_check(before)
        money = self._open_money() if checked else before.open_money
        tagged: list[FlowRun] = []
        with progress.part("marked runs"):
            tagged = read_runs(self.prefect, marked_filter())
        marked = [run for run in tagged if is_marked(run)]
        watch.asking |= {run.id: run for run in marked if waits_for_input(run)}
        self._wake_loops([run for run in tagged if not is_marked(run)])
        self._answer_questions()
        self._retry(marked)
        with progress.part("finished groups"):
            progress.woken += wake_finished_groups(self.prefect, watch.groups)
        canceled, reported = before.canceled, 0
        with progress.part("canceled runs"):
            since = None if checked else before.canceled
            found = report_canceled_runs(self.prefect, self.now, progress.problems, since=since)
            reported, canceled = found.read, min(found.unsettled_since or self.now, self.now) - _MARGIN
        with progress.part("stranded runs"):
            self._restart_stranded()
        with progress.part("silent runs"):
            mark_missing_heartbeats_crashed(self.prefect, self.now)
        with progress.part("crashed runs"):
            progress.woken += reschedule_crashed(self.prefect, self.now, progress.problems)
        stuck = find_blocked_runs(marked)
        with progress.part("runs that need a person"):
            stuck = [*find_stuck_runs(self.prefect, self.now), *stuck]
        with progress.part("open orders of failed runs"):
            stuck += find_open_orders(self.prefect, self.now)
        for run_id in unreadable_runs(self.prefect):
            stuck.append(stuck_run(str(run_id), str(run_id), self.now, *why_unreadable(run_id)))
        attention = [problem.line for problem in stuck]
        self._alert(stuck, checked=checked)
        suspended = 0
        with progress.part("number of suspended runs"):
            suspended = self.prefect.count_flow_runs(flow_run_filter=suspended_filter())
        progress.problems = list(dict.fromkeys(progress.problems))
        digest = before.told
        with progress.part("report for people"):
            digest = _publish([*progress.problems, *attention], before.told)
        for mark in watch.marks.values():
            self.state.save(mark)
        complete = not progress.failed & {"new runs", "runs that have ended", "finished groups"}
        self.state.save(
            SweepMemory(
                swept=self.now if complete else before.swept,
                walked=self.now if checked else before.walked,
                canceled=canceled,
                told=digest,
                open_money=money,
            )
        )
        return SweepReport(
            updates_seen=watch.updates,
            suspended_runs=suspended,
            canceled_runs=reported,
            woken=tuple(map(str, progress.woken)),
            problems=tuple(progress.problems),
            attention=tuple(attention),
        )

    def _memory(self) -> SweepMemory:
        """What the last sweep has stored; nothing of it counts after a clock was put back."""
        stored = self.state.overall
        times = (stored.swept, stored.walked, stored.canceled)
        return SweepMemory() if any(one is not None and one > self.now for one in times) else stored

    def _read_ended(self, since: datetime) -> None:
        """Note the groups of child runs that ended; reschedule runs that expired after a suspension by hand."""
        expired: list[FlowRun] = []
        ended = run_filter(states=sorted(TERMINAL_STATES), ended_after=since)
        for page in read_run_pages(self.prefect, ended, ASSAY_FLOWS):
            for run in page:
                self.watch.groups.update(tag_values(run.tags, GROUP_TAG))
                if has_expired(run) and is_assay_run(run):
                    expired.append(run)
        self.progress.woken += reschedule_expired(self.prefect, expired)

    def _full_check(self, before: SweepMemory) -> bool:
        if not self.watch.full_check_is_due(before, timedelta(minutes=self.full_check_minutes)):
            return False
        with self.progress.part("full check"):
            self.watch.full_check()
        if deployment.id:
            with self.progress.part("old sweeps"):
                remove_old_sweeps(
                    self.prefect, UUID(deployment.id), self.now - timedelta(days=self.keep_days)
                )
        return "full check" not in self.progress.failed

    def _open_money(self) -> dict[str, OpenSum] | None:
        """Note and record the open money of all orders; None if it cannot be read."""
        with self.progress.part("open money"):
            found = record_open_money(self.prefect)
            self.facts.note_money(self.prefect, found)
            orders = Counter(item.kind for item in found.items)
            return {kind.value: OpenSum(orders=orders[kind], cents=found.cents(kind)) for kind in OpenKind}
        return None

    def _alert(self, stuck: list[Problem], *, checked: bool) -> None:
        if checked:
            self.facts.read_service(self.watch.block_of)
            with self.progress.part("archives"):
                self.facts.probe_archives()
            with self.progress.part("wallets"):
                self.facts.read_wallets(self.prefect)
        with self.progress.part("problems for operators"):
            found, looked = self.facts.problems(
                stuck, self.watch.asking.values(), checked=checked, failed=self.progress.failed
            )
            save_problems(self.prefect, found, looked, self.now, unclear=self.facts.unclear)

    def _answer_questions(self) -> None:
        asking = list(self.watch.asking.values())
        with self.progress.part("events of questions"):
            report_questions(asking, self.now)
        with self.progress.part("questions without a form"):
            self.progress.woken += ask_again(self.prefect, asking, self.now)
        with self.progress.part("paid questions"):
            self.progress.woken += answer_paid(self.prefect, asking, self.progress.problems)
        with self.progress.part("overdue questions"):
            self.progress.woken += answer_expired(self.prefect, asking, self.now)

    def _wake_loops(self, loops: list[FlowRun]) -> None:
        due: list[UUID] = []
        with self.progress.part("loops that wait for designs"):
            due = loops_to_wake(self.prefect, loops, self.now, self.progress.problems)
        self.progress.wake(due)

    def _retry(self, marked: list[FlowRun]) -> None:
        due = []
        for run in marked:
            if waits_for_input(run):
                continue
            if needed := needed_block(run):
                since = None if needed.missing or run.state is None else run.state.timestamp
                with self.progress.part(f"run {run.name}, which waits for the block {needed.block}"):
                    saved = is_saved(self.prefect, needed.block, since=since)
                    if saved or (not needed.missing and is_due(run, self.now)):
                        due.append(run.id)
            elif is_due(run, self.now):
                due.append(run.id)
        self.progress.wake(due)

    def _restart_stranded(self) -> None:
        active = recoverable_runs(self.prefect, StateType.SCHEDULED, StateType.RUNNING)
        replaced = replace_unstarted_runs(self.prefect, active, self.now)
        self.progress.woken += [run.id for run in replaced]
        self.progress.woken += reschedule_unpaused(self.prefect, active, self.now)


def _publish(lines: list[str], published: str | None) -> str | None:
    """Create the artifact for people if the lines have changed; returns their digest."""
    if not lines:
        return None
    text = "\n".join(f"- {line}" for line in lines)
    digest = hashlib.sha256(_REQUEST_ID.sub("", text).encode()).hexdigest()[:20]
    if digest != published:
        create_markdown_artifact(
            key="assay-sweep",
            markdown=f"# What needs attention\n\n{text}\n",
            description="What to look at",
        )
    return digest
