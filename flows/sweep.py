"""The flow `sweep`: wake the runs that have something to do, and start one for each campaign without a live run.

See docs/waiting.md. It repairs no run: another one finds everything in the campaign's log.
"""

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
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.logging import get_run_logger
from prefect.runtime import deployment
from prefect.states import Completed
from pydantic import Field

from prefect_assay.campaigns.flow_results import SweepReport
from prefect_assay.campaigns.problems.kinds import QUESTION_OPEN
from prefect_assay.campaigns.problems.problem import AlertLimits
from prefect_assay.campaigns.problems.saved import save_problems
from prefect_assay.campaigns.runs.queries import (
    ASSAY_FLOWS,
    is_assay_run,
    read_runs,
    run_filter,
    unreadable_runs,
    why_unreadable,
)
from prefect_assay.campaigns.runs.states import waits_for_input
from prefect_assay.campaigns.runs.variables import home_id
from prefect_assay.campaigns.stop import settle_stop
from prefect_assay.campaigns.sweep.old_sweeps import remove_old_sweeps
from prefect_assay.campaigns.sweep.open_campaigns import (
    OpenCampaign,
    SavedArchive,
    open_archive,
    read_open_campaigns,
)
from prefect_assay.campaigns.sweep.open_money import record_open_money
from prefect_assay.campaigns.sweep.problems import Problems
from prefect_assay.campaigns.sweep.progress import SweepProgress
from prefect_assay.campaigns.sweep.restart import (
    LiveRuns,
    Restarts,
    canceled_run,
    is_restartable,
)
from prefect_assay.campaigns.sweep.saved_blocks import account_of, saved_accounts, saved_archives
from prefect_assay.campaigns.sweep.waking import (
    Feeds,
    due_looks,
    expire_questions,
    service_time,
    wake_answered,
)
from prefect_assay.campaigns.sweep.watermarks import OpenSum, SweepMemory, SweepState
from prefect_assay.errors import shortened
from prefect_assay.flows import form
from prefect_assay.orders.ledger.homes import last_sweeps, note_sweep
from prefect_assay.orders.ledger.open_money import OpenKind, OpenMoney
from prefect_assay.service.words import many

# Clocks differ, and a state may be written a little after its time.
_MARGIN: Final = timedelta(minutes=10)
# How far back the first sweep looks for canceled runs.
_FIRST_LOOK: Final = timedelta(days=1)
# A cancellation that is not settled by then waits for something slow, such as a quote that is to be rejected.
_SETTLED_SOON: Final = timedelta(hours=1)
# One that hangs gives way to the next.
_ENDS_AFTER_SECONDS: Final = 900
_CANCELED_BY: Final = "a person, in the Prefect UI"
_REQUEST_ID: Final = re.compile(r" \(request [^)]*\)")


def _run_name() -> str:
    return f"sweep {datetime.now(UTC):%Y-%m-%d %H:%M}"


@flow(
    name="sweep",
    flow_run_name=_run_name,
    timeout_seconds=_ENDS_AFTER_SECONDS,
    retries=0,
    retry_delay_seconds=0,
)
def sweep(
    full_check_minutes: Annotated[int, Field(ge=0, le=10_080), form.title_field("Full check (minutes)")] = 60,
    alert_limits: Annotated[AlertLimits, form.title_field("Limits of problems")] = AlertLimits(),  # noqa: B008 - frozen
    keep_days: Annotated[int, Field(ge=1, le=3650), form.title_field("Keep finished runs (days)")] = 3,
) -> State[SweepReport]:
    """Wake every suspended run that has news or whose next look is due, and start a run for campaigns without a live one.

    Also ends questions that nobody has answered in time, carries out the cancellation of runs, and names what needs a
    person. Each campaign is looked up with the blocks that it was started with, so the sweep needs no token of its own.

    Args:
        full_check_minutes: how often orders, money, tokens and deployments are looked at; 0 means every time.
        alert_limits: from when on an unpaid invoice, a quote or a token is a problem.
        keep_days: how long finished runs of this deployment stay; older ones are deleted, 150 per full check.

    Returns:
        SweepReport: what was read, which runs were woken and started, and what needs a person.
    """
    with get_client(sync_client=True) as prefect:
        state = SweepState.read(prefect)
        swept = _Sweep(prefect, state, datetime.now(UTC), full_check_minutes, alert_limits, keep_days)
        report = swept.run()
    counts = f"{many(report.open_campaigns, 'open campaign')}, {many(report.updates_seen, 'update')}"
    done = f"{many(len(report.woken), 'run')} woken, {len(report.started)} started"
    lines = [f"{counts}, {done}", *report.problems, *report.attention]
    for line in lines:
        get_run_logger().info(line)
    questions = sum(problem.kind == QUESTION_OPEN for problem in swept.problems.problems)
    has_gaps = report.problems or len(report.attention) > questions  # a question waits for a person: no gap
    name = "CompletedWithGaps" if has_gaps else "Completed"
    return Completed(name=name, message=shortened("; ".join(lines)), data=report)


@dataclass
class _Sweep:
    prefect: SyncPrefectClient
    state: SweepState
    now: datetime
    check_minutes: int = 60
    limits: AlertLimits = field(default_factory=AlertLimits)
    keep_days: int = 3
    live: LiveRuns = field(default_factory=LiveRuns)
    before: SweepMemory = field(init=False)
    is_check: bool = field(init=False)
    progress: SweepProgress = field(init=False)
    feeds: Feeds = field(init=False)
    problems: Problems = field(init=False)
    is_partial: bool = False  # an archive could not be read
    open_ids: set[str] = field(default_factory=set)  # of campaigns that are open, of every home

    def __post_init__(self) -> None:
        before = self.before = self._read_valid_memory()
        age = self.now - before.checked if before.checked else timedelta.max
        self.is_check = age >= timedelta(minutes=self.check_minutes)
        self.progress = SweepProgress(self.prefect, self.now)
        self.feeds = Feeds(self.progress, self.state)
        self.problems = Problems(self.now, self.limits, unread_before=frozenset(before.unread))

    def run(self) -> SweepReport:
        """Run all parts, and save the memory last: a sweep that dies earlier is repeated, which does no harm."""
        progress, before = self.progress, self.before
        with progress.part("runs"):
            self.live = LiveRuns.read(self.prefect)
            self.live.end_dead(self.prefect, self.now, swept=before.swept)
        self._wake_suspended_runs()
        canceled: list[FlowRun] = []
        with progress.part("canceled runs"):
            canceled = self._canceled_since((before.canceled or self.now - _FIRST_LOOK) - _MARGIN)
        campaigns: list[OpenCampaign] = []
        with progress.part("campaigns"):
            campaigns = self._sweep_campaigns(canceled)
        money = before.open_money
        if self.is_check:
            money = self._run_full_check(campaigns)
        attention = self._save_problems()
        for run_id in unreadable_runs(self.prefect):
            attention.append("run {} {}. {}".format(run_id, *why_unreadable(run_id)))
        digest = before.told
        with progress.part("report for people"):
            digest = _publish_attention_artifact([*progress.problems, *attention], before.told)
        is_complete = not progress.failed & {"runs", "canceled runs", "campaigns"}
        self.state.save(
            SweepMemory(
                swept=self.now if is_complete else before.swept,
                checked=self.now if self.is_check and is_complete else before.checked,
                canceled=self.now if is_complete and not self.is_partial else before.canceled,
                unread=tuple(self.problems.unread) if self.is_check else before.unread,
                told=digest,
                open_money=money,
            )
        )
        return SweepReport(
            updates_seen=self.feeds.updates,
            open_campaigns=len(campaigns),
            woken=tuple(map(str, progress.woken)),
            started=tuple(progress.started),
            stopped=tuple(progress.stopped),
            problems=tuple(progress.problems),
            attention=tuple(attention),
        )

    def _read_valid_memory(self) -> SweepMemory:
        """What the last sweep has stored; nothing of it counts after a clock was put back."""
        stored = self.state.overall
        times = (stored.swept, stored.checked, stored.canceled)
        return SweepMemory() if any(one is not None and one > self.now for one in times) else stored

    def _wake_suspended_runs(self) -> None:
        """Read the feeds, and resume the runs that have news or a due look."""
        suspended = [run for run in self.live.suspended if not waits_for_input(run)]
        with self.progress.part("feeds"):
            self.feeds.wake(suspended)
        self.progress.wake(run.id for run in due_looks(suspended, self.now))

    def _canceled_since(self, since: datetime) -> list[FlowRun]:
        ended = run_filter(states=[StateType.CANCELLED], ended_after=since)
        return [run for run in read_runs(self.prefect, ended, ASSAY_FLOWS) if is_assay_run(run)]

    def _sweep_campaigns(self, canceled: list[FlowRun]) -> list[OpenCampaign]:
        """Read all archives, then carry out the stop of each campaign of this home, or wake or restart it; returns the open ones."""
        home = home_id(self.prefect)
        restarts = Restarts(self.prefect, self.live, self.now)
        ours: list[OpenCampaign] = []
        seen: set[str] = set()
        accounts = saved_accounts(self.prefect)
        for name, block in saved_archives(self.prefect, accounts):
            try:
                archive = open_archive(name, block, self.state, accounts)
                if archive is None or archive.archive_id in seen:
                    continue
                seen.add(archive.archive_id)
                ours += self._read_own_campaigns(archive, home)
            except Exception as error:  # noqa: BLE001 - the other archives are looked after
                self.is_partial = True
                self.problems.note_unreachable(name, error)
        restarts.note_runs(ours, canceled)
        for campaign in ours:
            with self.progress.part(campaign.name):
                self._sweep_campaign(campaign, restarts, home)
        return [campaign for campaign in ours if campaign.state.is_open]

    def _read_own_campaigns(self, archive: SavedArchive, home: str) -> list[OpenCampaign]:
        """Record this sweep in the archive, note unreadable logs and other homes as problems, and return this home's open campaigns."""
        index = read_open_campaigns(archive)
        note_sweep(archive.store, archive.block.prefix, home, self.now)
        for log, error in index.unread:
            self.problems.note_unread_log(log, archive.archive_id, error)
        self.open_ids |= {one.log.name for one in index.campaigns if one.state.is_open}
        ours = [one for one in index.campaigns if self._is_ours(one, home)]
        others = [one for one in index.campaigns if one.state.home not in {None, home}]
        swept = last_sweeps(archive.store, archive.block.prefix) if others else {}
        self.problems.note_homes(archive, others, swept, home)
        return ours

    def _is_ours(self, campaign: OpenCampaign, home: str) -> bool:
        """Whether this home looks after it; a loop's round has no home, and the run of its loop carries it."""
        if campaign.state.home is not None:
            return campaign.state.home == home
        return any(campaign.is_carried_by(run) for run in self.live.runs.values())

    def _sweep_campaign(self, campaign: OpenCampaign, restarts: Restarts, home: str) -> None:
        if campaign.state.stopped is None and (run := canceled_run(campaign)) is not None:
            campaign.log.stop(_CANCELED_BY, f"flow run {run.name} was canceled")
        if campaign.state.stopped is not None:
            self._carry_out_cancellation(campaign)
            return
        live, failure = restarts.live_run(campaign), None
        with self.progress.part(f"questions of {campaign.name}"):
            self._expire_questions(campaign)
        if live is not None:
            wake_answered(self.progress, campaign, live)
        elif is_restartable(campaign, home):
            try:
                run = restarts.restart(campaign)
            except Exception as error:  # noqa: BLE001 - it is named as a problem of the campaign
                failure = error
            else:
                self.progress.started += [run.name] if run else []
        self.problems.note_campaign(campaign, failure)

    def _carry_out_cancellation(self, campaign: OpenCampaign) -> None:
        """Carry out a cancellation, until nothing is pending."""
        stopped = campaign.state.stopped
        if stopped is not None and self.now - stopped.at > _SETTLED_SOON and not self.is_check:
            return
        account = None
        with self.progress.part(f"account of canceled {campaign.name}"):
            account = account_of(self.prefect, campaign.state)
        report = settle_stop(account, campaign.log)
        self.progress.stopped.append(campaign.log.name)
        self.progress.problems += [f"canceled {campaign.name}: {problem}" for problem in report.problems]

    def _expire_questions(self, campaign: OpenCampaign) -> None:
        if campaign.state.open_questions and (now := service_time(campaign, self.feeds)) is not None:
            expire_questions(campaign, now)

    def _run_full_check(self, campaigns: list[OpenCampaign]) -> dict[str, OpenSum] | None:
        """Record open money, find problems and delete old sweep runs; returns the open money, or the last known where it cannot be read."""
        money: OpenMoney | None = None
        with self.progress.part("open money"):
            money = record_open_money(self.prefect, self.open_ids)
        with self.progress.part("check"):
            self.problems.check(self.prefect, campaigns, money)
        if deployment.id:
            with self.progress.part("old sweeps"):
                remove_old_sweeps(
                    self.prefect, UUID(deployment.id), self.now - timedelta(days=self.keep_days)
                )
        if money is None:
            return self.before.open_money
        orders = Counter(item.kind for item in money.items)
        return {kind.value: OpenSum(orders=orders[kind], cents=money.sum_cents(kind)) for kind in OpenKind}

    def _save_problems(self) -> list[str]:
        """Save the problems, and send the events of new ones and of those that are over; returns them as lines."""
        self.problems.note_feeds(self.feeds)
        looked = set() if "campaigns" in self.progress.failed else self.problems.looked
        with self.progress.part("problems for operators"):
            save_problems(
                self.prefect, self.problems.problems, looked, self.now, unclear=self.problems.unclear
            )
        self.progress.problems = list(dict.fromkeys(self.progress.problems))
        return [problem.line for problem in self.problems.problems]


def _publish_attention_artifact(lines: list[str], published: str | None) -> str | None:
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
