"""`sweep`: find the runs that should have been woken, and wake them. Scheduled; cheap when nothing happened.

Reads the updates feeds from their watermarks and asks Prefect only for what has changed since the last sweep, so
its cost follows what happens and not the number of waiting runs. Every so often it reads all suspended runs and
asks for the state of every waiting experiment, which finds what a lost watermark or a failed wake-up left behind.
A wake-up is a hint, so waking too often does no harm. See docs/waiting.md.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final, cast
from uuid import UUID

from prefect import flow
from prefect.artifacts import create_markdown_artifact
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterStartTime
from prefect.client.schemas.objects import FlowRun, State
from prefect.logging import get_run_logger
from prefect.states import Completed
from pydantic import Field

from prefect_assay.blocks import AssayCredentials
from prefect_assay.flows.attempts import take_up_crashed
from prefect_assay.flows.attention import cannot_go_on, need_attention
from prefect_assay.flows.canceled import tell_canceled
from prefect_assay.flows.doubt import answer_paid
from prefect_assay.flows.experiment import DEADLINE_DAYS
from prefect_assay.flows.feed import Waiting, judge, read_feed, reference_of, those_waiting, waiting_of
from prefect_assay.flows.memory import Memory, as_text
from prefect_assay.flows.ours import OUR_FLOWS, is_ours
from prefect_assay.flows.questions import answer_overdue
from prefect_assay.flows.saved_blocks import read_blocks
from prefect_assay.flows.silence import declare_dead
from prefect_assay.models.report import SweepReport
from prefect_assay.models.sweep import SweepMemory, Watermark
from prefect_assay.waiting.groups import groups_with_news, wake_finished
from prefect_assay.waiting.runs import (
    EXPERIMENT_TAG,
    WAITS_TAG,
    pages_with,
    resume,
    runs_with,
    suspended_filter,
    tag_values,
    waits_for_input,
)
from prefect_assay.waiting.trouble import could_not_be_marked, is_due, marked_filter

# Clocks differ, and a state may be written a little after its time.
_MARGIN: Final = timedelta(minutes=10)
# A deadline that passes, or a check that failed, brings the full check forward, but not at every sweep.
_FORWARD: Final = timedelta(hours=1)


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
class _Sweep:
    """One sweep. Whatever fails on Prefect's side ends it, and the next one begins where this one began."""

    prefect: SyncPrefectClient
    memory: Memory
    now: datetime
    full_check_minutes: int
    woken: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    updates: int = 0
    credentials: dict[str, AssayCredentials] = field(default_factory=dict)
    readable: set[str] = field(default_factory=set)

    def run(self) -> SweepReport:
        """All parts, the watermarks last: a sweep that dies in between repeats what it did, which does no harm."""
        whole = self.memory.whole
        if whole.swept and whole.swept > self.now:
            whole = SweepMemory()  # a clock was put back: what it says of times is worth nothing
        since = whole.swept - _MARGIN if whole.swept else None
        marks = self.memory.marks()
        started = self.started_since(since) if since else {}
        fresh = {ref: self.memory.mark(ref) for ref in started if ref not in marks}
        self.credentials = read_blocks(self.prefect, marks | fresh)
        marks = {ref: self.read_news(mark) for ref, mark in sorted((marks | fresh).items())}
        for ref, waits in started.items():
            if ref in fresh:
                self.check(marks, ref, waits)
            else:
                deadlines = [self.now + waiting.patience for waiting in waits]
                marks[ref] = _not_later(marks[ref], min(deadlines, default=None))
        groups = groups_with_news(self.prefect, OUR_FLOWS, since) if since else set()
        asking: list[FlowRun] = []
        walked = self.walk_is_due(whole, marks)
        if walked:
            groups |= self.walk(marks, asking)
        marked = runs_with(self.prefect, marked_filter())
        asking += [run for run in marked if waits_for_input(run)]
        asking = list({run.id: run for run in asking}.values())
        self.woken += answer_paid(self.prefect, asking, self.problems)
        self.woken += answer_overdue(self.prefect, asking, self.now)
        self.wake(run.id for run in marked if not waits_for_input(run) and is_due(run, self.now))
        self.woken += [str(run_id) for run_id in wake_finished(self.prefect, groups)]
        canceled = tell_canceled(
            self.prefect, self.now, self.problems, since=None if walked else whole.canceled
        )
        silence = declare_dead(self.prefect, self.now, whole.silence)
        self.woken += take_up_crashed(self.prefect, self.now, self.problems)
        attention = [*need_attention(self.prefect, self.now), *cannot_go_on(marked)]
        told = self.leave(attention, whole.told)
        for mark in marks.values():
            self.memory.keep(mark)
        self.memory.keep(
            SweepMemory(
                swept=self.now,
                walked=self.now if walked else whole.walked,
                canceled=min(canceled.unsettled_since or self.now, self.now) - _MARGIN,
                told=told,
                silence=silence,
            )
        )
        return SweepReport(
            updates_seen=self.updates,
            suspended_runs=self.prefect.count_flow_runs(flow_run_filter=suspended_filter()),
            canceled_runs=canceled.looked,
            woken=tuple(self.woken),
            problems=tuple(self.problems),
            attention=tuple(attention),
        )

    def started_since(self, since: datetime) -> dict[str, list[Waiting]]:
        """The credentials blocks of runs that have begun since, with those of the runs that wait already."""
        begun = FlowRunFilter(start_time=FlowRunFilterStartTime.model_validate({"after_": since}))
        found: dict[str, list[Waiting]] = {}
        for page in pages_with(self.prefect, begun, OUR_FLOWS):
            for run in filter(is_ours, page):
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

    def read_news(self, mark: Watermark) -> Watermark:
        """Read one token's feed, and wake those with news that are worth it; returns the mark to keep."""
        try:
            with self.block(mark).get_client() as client:
                news = read_feed(client, mark, self.now)
                waits = those_waiting(self.prefect, news.experiment_ids, DEADLINE_DAYS)
                verdict = judge(client, waits, self.now, news=True)
            self.wake(verdict.wake)
        except Exception as error:  # noqa: BLE001 - one revoked token, one deleted block must not stop the others
            self.problems.append(f"credentials {mark.reference}: {error}")
            return mark
        self.updates += news.updates
        self.readable.add(mark.reference or "")
        return _not_later(news.mark, verdict.next_deadline)

    def check(self, marks: dict[str, Watermark], reference: str, waits: list[Waiting]) -> None:
        """Ask for the state of all these waits, wake those that may go on, and note that in the mark."""
        mark = marks[reference]
        if reference not in self.readable:
            return  # its feed could not be read, which stands in the report
        try:
            with self.block(mark).get_client() as client:
                verdict = judge(client, waits, self.now, news=False)
            self.wake(verdict.wake)
        except Exception as error:  # noqa: BLE001 - as above
            self.problems.append(f"credentials {reference}: {error}")
            return
        marks[reference] = mark.model_copy(
            update={"full_check": self.now, "next_deadline": verdict.next_deadline, "used": self.now}
        )

    def block(self, mark: Watermark) -> AssayCredentials:
        """The credentials block, read once per sweep; the error of one that is not there is its own."""
        reference = mark.reference or ""
        if reference not in self.credentials:
            loaded = cast("AssayCredentials", AssayCredentials.load_from_ref(json.loads(reference)))
            self.credentials[reference] = loaded
        return self.credentials[reference]

    def walk_is_due(self, whole: SweepMemory, marks: dict[str, Watermark]) -> bool:
        """Whether to read all suspended runs: in turn, or because a deadline has passed or a check is missing."""
        if whole.walked is None:
            return True
        age = self.now - whole.walked
        if age >= timedelta(minutes=self.full_check_minutes):
            return True
        wanted = any(
            mark.full_check is None or (mark.next_deadline is not None and mark.next_deadline <= self.now)
            for ref, mark in marks.items()
            if ref in self.readable
        )
        return wanted and age >= _FORWARD

    def walk(self, marks: dict[str, Watermark], asking: list[FlowRun]) -> set[str]:
        """The full check; returns the groups that are waited for. Collects everything before it wakes anybody."""
        found: dict[str, list[Waiting]] = {}
        groups: set[str] = set()
        unmarked: list[UUID] = []
        for page in pages_with(self.prefect, suspended_filter()):
            for run in page:
                if waits_for_input(run):
                    asking.append(run)
                    continue
                groups.update(tag_values(run, WAITS_TAG))
                if tag_values(run, EXPERIMENT_TAG):
                    self.sort_in(run, found)
                elif could_not_be_marked(run):
                    unmarked.append(run.id)
        self.wake(unmarked)
        for reference, waits in sorted(found.items()):
            if reference not in marks:
                marks[reference] = self.read_news(self.memory.mark(reference))
            self.check(marks, reference, waits)
        for reference in self.readable - found.keys():
            marks[reference] = marks[reference].model_copy(
                update={"full_check": self.now, "next_deadline": None}
            )
        for reference in self.memory.forget_unused(set(found), self.now):
            marks.pop(reference, None)
        return groups

    def wake(self, run_ids: Iterable[UUID]) -> None:
        """Resume them one by one: SQLite refuses some of many writers at once."""
        for run_id in run_ids:
            if str(run_id) not in self.woken and resume(self.prefect, run_id):
                self.woken.append(str(run_id))

    def leave(self, attention: list[str], told: str | None) -> str | None:
        """Leave the list for people, when it has changed; returns its digest."""
        if not attention:
            return None
        digest = hashlib.sha256("\n".join(attention).encode()).hexdigest()[:20]
        if digest != told:
            lines = "\n".join(f"- {line}" for line in attention)
            create_markdown_artifact(
                key="assay-sweep",
                markdown=f"# Runs that need attention\n\n{lines}\n",
                description="What to look at",
            )
        return digest


def _not_later(mark: Watermark, deadline: datetime | None) -> Watermark:
    """The mark with its next deadline no later than this one."""
    known = [moment for moment in (mark.next_deadline, deadline) if moment is not None]
    return mark.model_copy(update={"next_deadline": min(known, default=None)})
