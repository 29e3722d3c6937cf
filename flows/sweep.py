"""`sweep`: find the runs that should have been woken, and wake them. Scheduled; cheap when nothing happened.

Reads the updates feeds from their watermarks and asks Prefect only for what has changed since the last sweep, so
its cost follows what happens and not the number of waiting runs. Every so often it reads all suspended runs and
asks for the state of every waiting experiment, which finds what a lost watermark or a failed wake-up left behind.
A wake-up is a hint, so waking too often does no harm. See docs/waiting.md.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final
from uuid import UUID

from prefect import flow
from prefect.artifacts import create_markdown_artifact
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import TERMINAL_STATES, FlowRun, State, StateType
from prefect.client.schemas.responses import DeploymentResponse
from prefect.logging import get_run_logger
from prefect.states import Completed
from pydantic import Field

from prefect_assay.approvals.questions import answer_expired
from prefect_assay.approvals.uncertain_payment import answer_paid
from prefect_assay.blocks import AssayCredentials
from prefect_assay.flows.run_options import DEADLINE_DAYS
from prefect_assay.models.report import SweepReport
from prefect_assay.models.sweep import SweepMemory, Watermark
from prefect_assay.runs.block_references import is_saved
from prefect_assay.runs.crashes import reschedule_crashed
from prefect_assay.runs.groups import wake_finished_groups
from prefect_assay.runs.heartbeats import mark_missing_heartbeats_crashed
from prefect_assay.runs.ownership import ASSAY_FLOWS, is_assay_run
from prefect_assay.runs.queries import (
    read_run_pages,
    read_runs,
    recoverable_runs,
    run_filter,
    suspended_filter,
)
from prefect_assay.runs.states import has_expired, resume, waits_for_input
from prefect_assay.runs.tags import EXPERIMENT_TAG, GROUP_TAG, WAITS_TAG, tag_values
from prefect_assay.runs.transient_failures import (
    is_away,
    is_due,
    lacks_retry_mark,
    marked_filter,
    missing_block,
)
from prefect_assay.sweeping.cancellations import tell_canceled
from prefect_assay.sweeping.saved_credentials import name_of, read_block, read_blocks
from prefect_assay.sweeping.stranded_runs import (
    Homes,
    move_stranded,
    replace,
    take_up_expired,
    take_up_unpaused,
)
from prefect_assay.sweeping.stuck_runs import cannot_go_on, need_attention
from prefect_assay.sweeping.updates_feed import (
    Waiting,
    judge,
    read_feed,
    reference_of,
    those_waiting,
    waiting_of,
)
from prefect_assay.sweeping.watermarks import Memory, as_text

# Clocks differ, and a state may be written a little after its time.
_MARGIN: Final = timedelta(minutes=10)
# A deadline that passes, or a check that failed, brings the full check forward, but not at every sweep.
_FORWARD: Final = timedelta(hours=1)
# How far back the first sweep looks for runs that have ended.
_FIRST_LOOK: Final = timedelta(days=1)
# What a mark keeps of the runs behind a block; a Prefect variable has room for 5,000 characters.
_NAMES_MAX: Final = 4
_NAME_MAX: Final = 40
_REQUEST_ID: Final = re.compile(r" \(request [^)]*\)")


@flow(name="sweep")
def sweep(
    full_check_minutes: Annotated[int, Field(ge=0)] = 60,
) -> State[SweepReport]:
    """Wake every suspended run whose experiment has news, and every parent whose children have all ended.

    Also wakes those that could not look at their experiment, ends the questions that nobody has answered in time,
    says of canceled runs what remains of them, takes crashed runs up again, and names the runs that need a person.

    Needs no token of its own: each waiting run is looked up with the credentials block it was started with.

    Args:
        full_check_minutes: how often the state of every waiting experiment is asked for; 0 means every time.

    Returns:
        SweepReport: what was looked at, which runs were woken, which tokens could not be used, and which runs need
            a person.
    """
    with get_client(sync_client=True) as prefect:
        report = _Sweep(prefect, Memory.read(prefect), datetime.now(UTC), full_check_minutes).run()
    words = [
        f"{report.updates_seen} updates, {report.suspended_runs} suspended runs, {len(report.woken)} woken",
        *report.problems,
        *report.attention,
    ]
    for line in words:
        get_run_logger().info(line)
    name = "CompletedWithGaps" if report.problems or report.attention else "Completed"
    return Completed(name=name, message="; ".join(words), data=report)


@dataclass
class _Suspended:
    """The suspended runs of a full check."""

    waits: dict[str, list[Waiting]] = field(default_factory=dict)
    unmarked: list[UUID] = field(default_factory=list)
    stranded: list[tuple[FlowRun, DeploymentResponse]] = field(default_factory=list)


@dataclass
class _Sweep:
    """One sweep. Each part fails alone, and the next sweep does what one has not done."""

    prefect: SyncPrefectClient
    memory: Memory
    now: datetime
    full_check_minutes: int
    woken: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    failed: set[str] = field(default_factory=set)
    away: bool = False
    updates: int = 0
    credentials: dict[str, AssayCredentials] = field(default_factory=dict)
    marks: dict[str, Watermark] = field(default_factory=dict)
    groups: set[str] = field(default_factory=set)
    asking: dict[UUID, FlowRun] = field(default_factory=dict)

    def run(self) -> SweepReport:
        """All parts, the watermarks last: a sweep that dies in between repeats what it did, which does no harm."""
        whole = self.memory.whole
        if whole.swept and whole.swept > self.now:
            whole = SweepMemory()  # a clock was put back: what it says of times is worth nothing
        since = whole.swept - _MARGIN if whole.swept else None
        self.read_marks(since)
        with self.part("runs that have ended"):
            self.read_ended(since or self.now - _FIRST_LOOK)
        if walked := self.walk_is_due(whole):
            with self.part("full check"):
                self.walk()
            walked = "full check" not in self.failed
        marked: list[FlowRun] = []
        with self.part("marked runs"):
            marked = read_runs(self.prefect, marked_filter())
            self.asking |= {run.id: run for run in marked if waits_for_input(run)}
        with self.part("paid questions"):
            self.woken += answer_paid(self.prefect, list(self.asking.values()), self.problems)
        with self.part("overdue questions"):
            self.woken += answer_expired(self.prefect, list(self.asking.values()), self.now)
        due: list[UUID] = []
        with self.part("runs that look again"):
            due = [run.id for run in marked if not waits_for_input(run) and self.may_go_on(run)]
        self.wake(due)
        with self.part("finished groups"):
            self.woken += [str(run_id) for run_id in wake_finished_groups(self.prefect, self.groups)]
        canceled, looked, silence = whole.canceled, 0, whole.silence
        with self.part("canceled runs"):
            told = tell_canceled(
                self.prefect, self.now, self.problems, since=None if walked else whole.canceled
            )
            looked, canceled = told.looked, min(told.unsettled_since or self.now, self.now) - _MARGIN
        with self.part("silent runs"):
            silence = mark_missing_heartbeats_crashed(self.prefect, self.now, whole.silence)
        with self.part("stranded runs"):
            self.move_stranded()
        with self.part("crashed runs"):
            self.woken += reschedule_crashed(self.prefect, self.now, self.problems)
        attention = cannot_go_on(marked)
        with self.part("runs that need a person"):
            attention = [*need_attention(self.prefect, self.now), *attention]
        suspended = 0
        with self.part("number of suspended runs"):
            suspended = self.prefect.count_flow_runs(flow_run_filter=suspended_filter())
        self.problems = list(dict.fromkeys(self.problems))
        told_people = whole.told
        with self.part("report for people"):
            told_people = self.leave([*self.problems, *attention], whole.told)
        for mark in self.marks.values():
            self.memory.keep(mark)
        complete = not self.failed & {"new runs", "runs that have ended", "finished groups"}
        self.memory.keep(
            SweepMemory(
                swept=self.now if complete else whole.swept,
                walked=self.now if walked else whole.walked,
                canceled=canceled,
                told=told_people,
                silence=silence,
            )
        )
        return SweepReport(
            updates_seen=self.updates,
            suspended_runs=suspended,
            canceled_runs=looked,
            woken=tuple(self.woken),
            problems=tuple(self.problems),
            attention=tuple(attention),
        )

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Whatever fails in this part is a problem of this part. Prefect, away in two parts in a row, ends the sweep."""
        try:
            yield
        except Exception as error:
            if self.away and is_away(error):
                raise
            self.away = is_away(error)
            self.failed.add(name)
            self.problems.append(f"{name}: {error}")
        else:
            self.away = False

    def read_marks(self, since: datetime | None) -> None:
        """Read the feeds of all credentials blocks, those of runs that have begun since the last sweep as well."""
        self.marks = self.memory.marks()
        started: dict[str, list[Waiting]] = {}
        if since:
            with self.part("new runs"):
                started = self.started_since(since)
        fresh = {ref: self.memory.mark(ref) for ref in started if ref not in self.marks}
        self.marks |= fresh
        with self.part("credentials blocks"):
            self.credentials = read_blocks(self.prefect, self.marks)
        for ref, mark in sorted(self.marks.items()):
            self.marks[ref] = self.read_news(mark)
        for ref, waits in started.items():
            if ref in fresh:
                self.check(ref, waits)
            else:
                deadlines = [self.now + waiting.patience for waiting in waits]
                self.marks[ref] = _not_later(self.marks[ref], min(deadlines, default=None))

    def started_since(self, since: datetime) -> dict[str, list[Waiting]]:
        """The credentials blocks of runs that have begun since, with those of the runs that wait already."""
        begun = run_filter(started_after=since)
        found: dict[str, list[Waiting]] = {}
        for page in read_run_pages(self.prefect, begun, ASSAY_FLOWS):
            for run in filter(is_assay_run, page):
                self.sort_in(run, found)
        return found

    def sort_in(self, run: FlowRun, found: dict[str, list[Waiting]]) -> None:
        """Put a run to its credentials block, if it waits for an experiment."""
        waiting = waiting_of(run, DEADLINE_DAYS) if run.state and run.state.is_paused() else None
        reference = reference_of(run)
        if reference is not None:
            waits = found.setdefault(as_text(reference), [])
            if waiting:
                waits.append(waiting)
        elif waiting:
            self.problems.append(
                f"run {run.name}: its credentials are no saved block, so nobody can look for it"
            )

    def read_ended(self, since: datetime) -> None:
        """The groups of children that have ended; runs that were suspended by hand, and not resumed, go on."""
        expired: list[FlowRun] = []
        ended = run_filter(states=sorted(TERMINAL_STATES), ended_after=since)
        for page in read_run_pages(self.prefect, ended, ASSAY_FLOWS):
            for run in page:
                self.groups.update(tag_values(run.tags, GROUP_TAG))
                if has_expired(run) and is_assay_run(run):
                    expired.append(run)
        self.woken += [str(run_id) for run_id in take_up_expired(self.prefect, expired)]

    def move_stranded(self) -> None:
        """Scheduled runs that nobody can start are replaced, running ones that have lost their process scheduled."""
        active = recoverable_runs(self.prefect, StateType.SCHEDULED, StateType.RUNNING)
        self.woken += [str(run.id) for run in move_stranded(self.prefect, active, self.now)]
        self.woken += [str(run_id) for run_id in take_up_unpaused(self.prefect, active, self.now)]

    def read_news(self, mark: Watermark) -> Watermark:
        """Read one token's feed, and wake those with news that are worth it; returns the mark to keep."""
        try:
            block = self.block(mark)
            mark = mark.model_copy(update={"name": name_of(block) or mark.name})
            with block.get_client() as client:
                news = read_feed(client, mark, self.now)
                waits = those_waiting(self.prefect, news.experiment_ids, DEADLINE_DAYS)
                verdict = judge(client, waits, self.now, news=True)
        except Exception as error:  # noqa: BLE001 - one revoked token, one deleted block must not stop the others
            self.problems.append(_trouble(mark, error))
            return mark
        self.updates += news.updates
        if verdict.problem:
            self.problems.append(_trouble(mark, verdict.problem))
        if not self.wake(verdict.wake) or not verdict.complete:
            return mark  # the same news is read again
        return _not_later(news.mark, verdict.next_deadline)

    def check(self, reference: str, waits: list[Waiting]) -> None:
        """Ask for the state of all these waits, wake those that may go on, and note that in the mark.

        Needs nothing of the feed: where that cannot be read, this is what finds them.
        """
        names = sorted(waiting.name[:_NAME_MAX] for waiting in waits)
        mark = self.marks[reference] = self.marks[reference].model_copy(
            update={"used": self.now, "behind": tuple(names[:_NAMES_MAX]), "waiting": len(waits)}
        )
        try:
            with self.block(mark).get_client() as client:
                verdict = judge(client, waits, self.now, news=False)
        except Exception as error:  # noqa: BLE001 - as above
            self.problems.append(_trouble(mark, error))
            return
        if verdict.problem:
            self.problems.append(_trouble(mark, verdict.problem))
        if self.wake(verdict.wake) and verdict.complete:
            self.marks[reference] = mark.model_copy(
                update={"full_check": self.now, "next_deadline": verdict.next_deadline}
            )

    def block(self, mark: Watermark) -> AssayCredentials:
        """The credentials block, read once per sweep; the error of one that is not there is its own."""
        reference = mark.reference or ""
        if reference not in self.credentials:
            self.credentials[reference] = read_block(mark)
        return self.credentials[reference]

    def walk_is_due(self, whole: SweepMemory) -> bool:
        """Whether to read all suspended runs: in turn, or because a deadline has passed or a check is missing."""
        if whole.walked is None:
            return True
        age = self.now - whole.walked
        if age >= timedelta(minutes=self.full_check_minutes):
            return True
        wanted = any(
            mark.full_check is None or (mark.next_deadline is not None and mark.next_deadline <= self.now)
            for mark in self.marks.values()
        )
        return wanted and age >= _FORWARD

    def walk(self) -> None:
        """The full check. Collects everything before it wakes anybody."""
        suspended = self.read_suspended()
        for run, home in suspended.stranded:
            with self.part(f"replacing run {run.name}"):
                replace(self.prefect, run, home)
        self.wake(suspended.unmarked)
        found = suspended.waits
        for reference, waits in sorted(found.items()):
            if reference not in self.marks:
                self.marks[reference] = self.read_news(self.memory.mark(reference))
            self.check(reference, waits)
        unused = {"full_check": self.now, "next_deadline": None, "behind": (), "waiting": None}
        for reference in self.marks.keys() - found.keys():
            self.marks[reference] = self.marks[reference].model_copy(update=unused)
        for reference in self.memory.forget_unused(set(found), self.now):
            self.marks.pop(reference, None)

    def read_suspended(self) -> _Suspended:
        """All suspended runs, each by what is to be done about it; those that ask, and groups, are noted."""
        suspended = _Suspended()
        homes = Homes(self.prefect)
        for page in read_run_pages(self.prefect, suspended_filter()):
            for run in page:
                home = homes.better(run) if run.deployment_id and is_assay_run(run) else None
                if home:
                    suspended.stranded.append((run, home))
                elif waits_for_input(run):
                    self.asking[run.id] = run
                else:
                    self.groups.update(tag_values(run.tags, WAITS_TAG))
                    if tag_values(run.tags, EXPERIMENT_TAG):
                        self.sort_in(run, suspended.waits)
                    elif lacks_retry_mark(run):
                        suspended.unmarked.append(run.id)
        return suspended

    def may_go_on(self, run: FlowRun) -> bool:
        """Whether a run that could not go on is worth another try: its pause is over, or its block is saved again."""
        missing = missing_block(run)
        return is_due(run, self.now) if missing is None else is_saved(self.prefect, missing[1])

    def wake(self, run_ids: Iterable[UUID]) -> bool:
        """Resume them one by one: SQLite refuses some of many writers at once. False if one could not be asked."""
        failed = len(self.failed)
        for run_id in run_ids:
            if str(run_id) not in self.woken:
                with self.part(f"waking run {run_id}"):
                    if resume(self.prefect, run_id):
                        self.woken.append(str(run_id))
        return len(self.failed) == failed

    def leave(self, lines: list[str], told: str | None) -> str | None:
        """Leave the list for people, when it has changed; returns its digest."""
        if not lines:
            return None
        text = "\n".join(f"- {line}" for line in lines)
        digest = hashlib.sha256(_REQUEST_ID.sub("", text).encode()).hexdigest()[:20]
        if digest != told:
            create_markdown_artifact(
                key="assay-sweep",
                markdown=f"# What needs attention\n\n{text}\n",
                description="What to look at",
            )
        return digest


def _trouble(mark: Watermark, error: Exception) -> str:
    """One line about a credentials block, with the runs behind it."""
    behind = ", ".join(mark.behind)
    more = (mark.waiting or 0) - len(mark.behind)
    runs = f"; runs that wait with it: {behind}{f' and {more} more' if more > 0 else ''}" if behind else ""
    return f"credentials block {mark.name or mark.reference}: {error}{runs}"


def _not_later(mark: Watermark, deadline: datetime | None) -> Watermark:
    """The mark with its next deadline no later than this one."""
    known = [moment for moment in (mark.next_deadline, deadline) if moment is not None]
    return mark.model_copy(update={"next_deadline": min(known, default=None)})
