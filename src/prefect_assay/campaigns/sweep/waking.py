"""Wakes suspended runs: with news in the feed, whose next look is due, or whose question was answered or has expired.

A run that waits for a form is woken by its answer only. Nothing here decides what a run does next.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from prefect.client.schemas.objects import FlowRun

from prefect_assay.blocks import AssayAccount
from prefect_assay.blocks.block_references import block_reference
from prefect_assay.campaigns.approval.answers import resume_if_answered
from prefect_assay.campaigns.runs.looks import look_of
from prefect_assay.campaigns.runs.states import waits_for_input
from prefect_assay.campaigns.runs.tags import EXPERIMENT_TAG, tag_values
from prefect_assay.campaigns.setup import ACCOUNT
from prefect_assay.campaigns.sweep.open_campaigns import OpenCampaign
from prefect_assay.campaigns.sweep.progress import SweepProgress
from prefect_assay.campaigns.sweep.saved_blocks import account_of
from prefect_assay.campaigns.sweep.updates_feed import read_feed
from prefect_assay.campaigns.sweep.watermarks import SweepState, as_text, read_account
from prefect_assay.errors import Conflict
from prefect_assay.orders.ledger.campaign_log import EXPIRED
from prefect_assay.service.client import AssayClient

# The sweep runs every five minutes and some seconds; without this margin every second pause would be longer by one sweep.
_EARLY: Final = timedelta(minutes=1)
# Two clocks that differ by less are the same; a lab's clock stops and jumps, and says nothing of when an update came.
_SAME_CLOCK: Final = timedelta(minutes=1)
_CLOCKS_DIFFER: Final = timedelta(seconds=10)
_SHOWN: Final = 4  # names of runs in a message
_DELIVERED_WITHIN: Final = timedelta(minutes=5)  # a delivery may be under way, or be repeated after a failure


@dataclass
class Feeds:
    """The feeds of one sweep, read once for each account that a suspended run was started with."""

    progress: SweepProgress
    state: SweepState
    updates: int = 0
    failures: dict[str, Exception] = field(
        default_factory=dict
    )  # by the block's `type/name`, else its reference
    undelivered: list[str] = field(default_factory=list)  # runs whose update no webhook has brought
    delivered: bool = False  # a webhook has brought an update of some run
    # How far the service's clock is ahead of this one, by the block's `type/name`
    clocks: dict[str, timedelta] = field(default_factory=dict)

    def wake(self, suspended: Iterable[FlowRun]) -> None:
        """Read each feed, and resume the runs that carry the tag of an experiment with news."""
        by_block: dict[str, list[FlowRun]] = {}
        for run in suspended:
            reference = block_reference(run, ACCOUNT)
            if reference is not None and tag_values(run.tags, EXPERIMENT_TAG):
                by_block.setdefault(as_text(reference), []).append(run)
        for block, runs in sorted(by_block.items()):
            self._read(block, runs)
        self.state.forget_unused(set(by_block), self.progress.now)

    def service_now(self, block: str) -> datetime | None:
        """The present time of the service that an account, `type/name`, leads to; None if it was not read."""
        ahead = self.clocks.get(block)
        return None if ahead is None else self.progress.now + ahead

    def _read(self, reference: str, runs: list[FlowRun]) -> None:
        mark, name = self.state.watermark(reference), reference
        try:
            account = read_account(mark)
            saved_as = account.name or mark.name
            name = full_name(saved_as) if saved_as else reference
            mark = mark.model_copy(update={"name": saved_as, "used": _truncate_to_day(self.progress.now)})
            with account.credentials.get_client() as client:
                page = read_feed(client, mark, self.progress.now)
                ahead = self.note_clock(name, client)
        except Exception as error:  # noqa: BLE001 - one revoked token or deleted block must not stop the others
            self.failures[name] = error
            behind = ", ".join([run.name for run in runs[:_SHOWN]] + ["..."] * (len(runs) > _SHOWN))
            self.progress.problems.append(f"account {name}: {error}; runs that wait with it: {behind}")
            return
        self.updates += page.updates
        due = []
        for run in runs:
            news = [page.newest[i] for i in tag_values(run.tags, EXPERIMENT_TAG) if i in page.newest]
            if news and not _has_seen(run, max(news), ahead):
                due.append(run.id)
                self._note_delivery(run, max(news), has_webhook=account.webhook is not None)
        if self.progress.wake(due):  # else the next sweep reads the same updates again
            self.state.save(page.mark)

    def note_clock(self, block: str, client: AssayClient) -> timedelta | None:
        """Note the service's clock after a request."""
        if client.service_time is None:
            return None
        ahead = self.clocks[block] = client.service_time - self.progress.now
        return ahead

    def _note_delivery(self, run: FlowRun, updated: datetime, *, has_webhook: bool) -> None:
        swept = self.state.overall.swept
        since = run.state.timestamp if run.state else None
        is_recent = abs(self.progress.now - updated) < _DELIVERED_WITHIN
        if not has_webhook or since is None or swept is None or is_recent:
            return
        if since < min(swept, updated):
            self.undelivered.append(run.name)
        else:
            self.delivered = True


def full_name(account: str) -> str:
    """The `type/name` of a saved account."""
    return f"{AssayAccount.get_block_type_slug()}/{account}"


def _truncate_to_day(moment: datetime) -> datetime:
    """The beginning of the day: a watermark that only notes its use is written once a day."""
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def _has_seen(run: FlowRun, updated: datetime, ahead: timedelta | None) -> bool:
    """Return True if the run was suspended after the update: it looks once more at the service after each suspension."""
    if ahead is None or abs(ahead) > _SAME_CLOCK or run.state is None:
        return False
    return updated - ahead + _CLOCKS_DIFFER < run.state.timestamp


def due_looks(suspended: Iterable[FlowRun], now: datetime) -> list[FlowRun]:
    """The suspended runs whose next look is due."""
    looks = ((run, look_of(run)) for run in suspended)
    return [run for run, look in looks if look is not None and look.at - _EARLY <= now]


def expire_questions(campaign: OpenCampaign, now: datetime) -> None:
    """Record the end of questions that nobody has answered in time; `now` is the service's."""
    for asked in list(campaign.state.open_questions.values()):
        if now <= asked.expires_at:
            continue
        with suppress(Conflict):  # answered, or asked again, at this moment
            campaign.log.answer(
                asked.question_id,
                asked.revision,
                EXPIRED,
                amount_cents=None,
                answerer="nobody",
                how="the time to answer is over",
                now=now,
            )


def service_time(campaign: OpenCampaign, feeds: Feeds) -> datetime | None:
    """The present time of the campaign's service; None if its answers have no time.

    Raises:
        AssayError: the service cannot be asked, or the campaign's account is missing.
    """
    block = campaign.account or ""
    if block not in feeds.clocks:
        with account_of(feeds.progress.prefect, campaign.state).credentials.get_client() as client:
            client.targets.list(limit=1)
            feeds.note_clock(block, client)
    return feeds.service_now(block)


def wake_answered(progress: SweepProgress, campaign: OpenCampaign, run: FlowRun) -> None:
    """Wake a suspended run that does not know the answer to a question yet: its wake-up was lost, or there was none."""
    if run.state is None or not run.state.is_paused():
        return
    since = run.state.timestamp
    answers = campaign.state.decisions.values()
    if waits_for_input(run) or any(answered.at > since for _, answered in answers):
        with progress.part(f"waking run {run.id}"):
            if run.id not in progress.woken and resume_if_answered(progress.prefect, campaign.log, run):
                progress.woken.append(run.id)
