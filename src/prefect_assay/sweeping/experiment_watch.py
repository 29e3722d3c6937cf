"""Runs that wait for experiments: woken by the updates feeds at every sweep, and by a full check every so often.

Each run is looked up with the credentials block it was started with, so the sweep needs no token of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from prefect.client.schemas.objects import FlowRun
from prefect.client.schemas.responses import DeploymentResponse

from prefect_assay.blocks import AssayCredentials
from prefect_assay.models.bounds import cut
from prefect_assay.models.sweep import SweepMemory, Watermark
from prefect_assay.reporting import facts as reported_facts
from prefect_assay.runs.block_references import block_reference, name_of
from prefect_assay.runs.queries import ASSAY_FLOWS, is_assay_run, read_run_pages, run_filter, suspended_filter
from prefect_assay.runs.states import waits_for_input
from prefect_assay.runs.tags import EXPERIMENT_TAG, WAITS_TAG, tag_values
from prefect_assay.runs.transient_failures import lacks_retry_mark
from prefect_assay.sweeping.alert_facts import AlertFacts
from prefect_assay.sweeping.progress import SweepProgress
from prefect_assay.sweeping.stranded_runs import DeploymentIndex, replace_run
from prefect_assay.sweeping.updates_feed import (
    WaitingRun,
    missed_delivery,
    read_feed,
    select_runs_to_wake,
    waiting_run,
    waiting_runs,
)
from prefect_assay.sweeping.watermarks import SweepState, as_text, read_block

# A deadline that passes, or a check that failed, brings the full check forward, but not at every sweep.
_EARLIEST: Final = timedelta(hours=1)
# What a watermark keeps of the runs behind a block; a Prefect variable holds 5,000 characters.
NAMES_MAX: Final = 4
NAME_LENGTH_MAX: Final = 40


@dataclass
class _Suspended:
    waits: dict[str, list[WaitingRun]] = field(default_factory=dict)
    unmarked: list[UUID] = field(default_factory=list)
    stranded: list[tuple[FlowRun, DeploymentResponse]] = field(default_factory=list)


@dataclass
class ExperimentWatch:
    """The feeds and the full check of one sweep."""

    progress: SweepProgress
    state: SweepState
    facts: AlertFacts
    updates: int = 0
    # The watermarks to save, by the reference of their credentials block
    marks: dict[str, Watermark] = field(default_factory=dict)
    groups: set[str] = field(default_factory=set)  # the groups of child runs that suspended runs wait for
    asking: dict[UUID, FlowRun] = field(default_factory=dict)
    _credentials: dict[str, AssayCredentials] = field(default_factory=dict)

    def read_feeds(self, since: datetime | None) -> None:
        """Read the feeds of all credentials blocks, those of runs that began since the last sweep as well."""
        self.marks = self.state.watermarks()
        started: dict[str, list[WaitingRun]] = {}
        if since:
            with self.progress.part("new runs"):
                started = self.started_since(since)
        new = {ref: self.state.watermark(ref) for ref in started if ref not in self.marks}
        self.marks |= new
        for ref, mark in sorted(self.marks.items()):
            self.marks[ref] = self._read_feed(mark)
        for ref, waits in started.items():
            if ref in new:
                self._check(ref, waits)
            else:
                deadlines = [self.progress.now + waiting.patience for waiting in waits]
                self.marks[ref] = _not_later(self.marks[ref], min(deadlines, default=None))

    def full_check_is_due(self, overall: SweepMemory, interval: timedelta) -> bool:
        """Return True at the interval, or earlier where a deadline has passed or a check is missing."""
        if overall.walked is None:
            return True
        now = self.progress.now
        age = now - overall.walked
        if age >= interval or age < timedelta(
            0
        ):  # a sweep with a wrong clock must not put off the next check
            return True
        wanted = any(
            mark.full_check is None or (mark.next_deadline is not None and mark.next_deadline <= now)
            for mark in self.marks.values()
        )
        return wanted and age >= _EARLIEST

    def full_check(self) -> None:
        """Read all suspended runs, then wake or replace those that should not wait any longer."""
        suspended = self._read_suspended()
        for run, home in suspended.stranded:
            with self.progress.part(f"replacing run {run.name}"):
                replace_run(self.progress.prefect, run, home)
        self.progress.wake(suspended.unmarked)
        found = suspended.waits
        for reference, waits in sorted(found.items()):
            if reference not in self.marks:
                self.marks[reference] = self._read_feed(self.state.watermark(reference))
            self._check(reference, waits)
        now = self.progress.now
        unused = {"full_check": now, "next_deadline": None, "behind": (), "waiting": None}
        for reference in self.marks.keys() - found.keys():
            self.marks[reference] = self.marks[reference].model_copy(update=unused)
        for reference in self.state.forget_unused(set(found), now):
            self.marks.pop(reference, None)

    def started_since(self, since: datetime) -> dict[str, list[WaitingRun]]:
        """Return the credentials blocks of runs that began since, with those of the runs that wait already."""
        found: dict[str, list[WaitingRun]] = {}
        for page in read_run_pages(self.progress.prefect, run_filter(started_after=since), ASSAY_FLOWS):
            for run in filter(is_assay_run, page):
                self._add(run, found)
        return found

    def block(self, mark: Watermark) -> AssayCredentials:
        """Return the credentials block of a watermark, read once per sweep."""
        reference = mark.reference or ""
        if reference not in self._credentials:
            self._credentials[reference] = read_block(mark)
        return self._credentials[reference]

    def block_of(self, reference: str) -> AssayCredentials:
        """Return the credentials block of a reference, read once per sweep."""
        return self.block(self.marks.get(reference) or self.state.watermark(reference))

    def _add(self, run: FlowRun, found: dict[str, list[WaitingRun]]) -> None:
        waiting = waiting_run(run) if run.state and run.state.is_paused() else None
        reference = block_reference(run, "credentials")
        if reference is not None:
            waits = found.setdefault(as_text(reference), [])
            if waiting:
                waits.append(waiting)
        elif waiting:
            self.progress.problems.append(
                f"run {run.name}: its credentials are not a saved block, so its experiment cannot be read"
            )

    def _read_feed(self, mark: Watermark) -> Watermark:
        """Read one token's feed and wake the runs that may go on; returns the watermark to save."""
        try:
            block = self.block(mark)
            mark = mark.model_copy(update={"name": name_of(block) or mark.name})
            with block.get_client() as client:
                page = read_feed(client, mark, self.progress.now)
                waits = waiting_runs(self.progress.prefect, page.newest)
                self._note_deliveries(waits, page.newest)
                selection = select_runs_to_wake(client, waits, self.progress.now, news=True)
        except Exception as error:  # noqa: BLE001 - one revoked token or deleted block must not stop the others
            self._report(mark, error)
            return mark
        self.updates += page.updates
        if selection.problem:
            self._report(mark, selection.problem)
        woken = self.progress.wake(selection.wake)
        reported_facts.of_waiting((run, found, None) for run, found in selection.asleep)
        if not woken or not selection.complete:
            return mark  # the next sweep reads the same updates again
        return _not_later(page.mark, selection.next_deadline)

    def _check(self, reference: str, waits: list[WaitingRun]) -> None:
        """Read the state of all these experiments, wake the runs that may go on, and note that in the watermark."""
        now = self.progress.now
        names = sorted(cut(waiting.reference.name, NAME_LENGTH_MAX) for waiting in waits)
        mark = self.marks[reference] = self.marks[reference].model_copy(
            update={"used": now, "behind": tuple(names[:NAMES_MAX]), "waiting": len(waits)}
        )
        try:
            with self.block(mark).get_client() as client:
                selection = select_runs_to_wake(client, waits, now, news=False)
        except Exception as error:  # noqa: BLE001 - as above
            self._report(mark, error)
            return
        if selection.problem:
            self._report(mark, selection.problem)
        self.facts.deadlines += selection.deadlines
        if self.progress.wake(selection.wake) and selection.complete:
            self.marks[reference] = mark.model_copy(
                update={"full_check": now, "next_deadline": selection.next_deadline}
            )

    def _read_suspended(self) -> _Suspended:
        suspended = _Suspended()
        deployments = DeploymentIndex(self.progress.prefect)
        for page in read_run_pages(self.progress.prefect, suspended_filter()):
            for run in page:
                if is_assay_run(run):
                    self.facts.note_suspended(run)
                home = deployments.replacement_for(run) if run.deployment_id and is_assay_run(run) else None
                if home:
                    suspended.stranded.append((run, home))
                elif waits_for_input(run):
                    self.asking[run.id] = run
                else:
                    self.groups.update(tag_values(run.tags, WAITS_TAG))
                    if lacks_retry_mark(run):
                        suspended.unmarked.append(run.id)
                    elif tag_values(run.tags, EXPERIMENT_TAG):
                        self._add(run, suspended.waits)
        return suspended

    def _note_deliveries(self, waits: list[WaitingRun], newest: Mapping[str, datetime]) -> None:
        swept = self.state.overall.swept
        for waiting in waits:
            updated = max(newest[i] for i in waiting.experiment_ids if i in newest)
            self.facts.note_delivery(
                waiting.reference.name, missed_delivery(waiting, updated, swept, self.progress.now)
            )

    def _report(self, mark: Watermark, error: Exception) -> None:
        self.facts.note_failure(mark.reference or "", mark.name, error, mark.behind)
        behind = ", ".join(mark.behind)
        more = (mark.waiting or 0) - len(mark.behind)
        runs = (
            f"; runs that wait with it: {behind}{f' and {more} more' if more > 0 else ''}" if behind else ""
        )
        self.progress.problems.append(f"credentials block {mark.name or mark.reference}: {error}{runs}")


def _not_later(mark: Watermark, deadline: datetime | None) -> Watermark:
    known = [moment for moment in (mark.next_deadline, deadline) if moment is not None]
    return mark.model_copy(update={"next_deadline": min(known, default=None)})
