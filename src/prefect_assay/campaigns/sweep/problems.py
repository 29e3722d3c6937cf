"""The one list of problems that need a person: made from the logs, the ledgers, and what the sweep could not do.

Each look fails alone, and a failed one never closes a problem. The same list feeds the events, the receiver's metric and
`prefect-assay status --problems` (docs/operating.md).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from typing import Final

from prefect.client.orchestration import SyncPrefectClient

from prefect_assay.campaigns.problems import find, kinds
from prefect_assay.campaigns.problems.problem import AlertLimits, Problem
from prefect_assay.campaigns.problems.saved import read_saved
from prefect_assay.campaigns.runs.starting import find_obstacles, read_own_deployments
from prefect_assay.campaigns.sweep.open_campaigns import OpenCampaign, SavedArchive
from prefect_assay.campaigns.sweep.saved_blocks import load_account
from prefect_assay.campaigns.sweep.waking import Feeds
from prefect_assay.errors import AssayError
from prefect_assay.orders.ledger import Ledgers, OrderLedger
from prefect_assay.orders.ledger.campaign_log import CampaignLog, StartedKind
from prefect_assay.orders.ledger.open_money import OpenMoney, read_logs
from prefect_assay.service.client import AssayClient
from prefect_assay.service.client.filters import in_
from prefect_assay.service.models.experiment import ExperimentSummary
from prefect_assay.service.models.vocabulary import ExperimentStatus, ResultsStatus

_DAY: Final = timedelta(days=1)
_IDS_PER_REQUEST: Final = 40
_UNREAD_MAX: Final = (
    100  # orders that are remembered until the next look; a Prefect variable holds 5,000 characters
)
# Looked at in the hourly check only, so that a problem begins and ends at most once an hour.
_HOURLY: Final = frozenset(
    {
        kinds.ORDER_OVERDUE,
        kinds.RESULTS_UNREAD,
        kinds.INVOICE_UNPAID,
        kinds.QUOTE_EXPIRING,
        kinds.MONEY_OPEN,
        kinds.TOKEN_EXPIRING,
        kinds.SERVICE_UNREACHABLE,
        kinds.CANNOT_START,
        kinds.ARCHIVE_UNREACHABLE,
    }
)
_MONEY: Final = frozenset(
    {kinds.INVOICE_UNPAID, kinds.QUOTE_EXPIRING, kinds.MONEY_OPEN, kinds.RESULTS_UNREAD}
)
_OF_ARCHIVES: Final = frozenset({kinds.CAMPAIGN_WITHOUT_RUN, kinds.QUESTION_OPEN, kinds.HOME_SILENT})


def list_problems(client: SyncPrefectClient, now: datetime) -> tuple[Problem, ...]:
    """All open problems, as the last sweep has saved them, with a silent sweep and what cannot start at this moment."""
    saved = read_saved(client)
    never = datetime.min.replace(tzinfo=now.tzinfo)
    present = [*find.sweep_silence(saved.swept, now, watched_since=never), *cannot_start(client, now)]
    return (*present, *(problem for problem in saved.problems if problem.kind != kinds.CANNOT_START))


def cannot_start(client: SyncPrefectClient, now: datetime) -> list[Problem]:
    """What keeps the runs of our deployments from starting."""
    obstacles = find_obstacles(client, read_own_deployments(client), now)
    return [find.cannot_start(one.subject, one.text, one.next_step, now) for one in obstacles]


@dataclass
class Problems:
    """The problems of one sweep; `looked` are the kinds that were looked at everywhere, so that the others of them are over.

    Of these kinds, the problems in `unclear`, by kind and subject, stay open.
    """

    now: datetime
    limits: AlertLimits = field(default_factory=AlertLimits)
    unread_before: frozenset[str] = frozenset()  # orders whose results were released at the last check
    unread: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    looked: set[str] = field(default_factory=lambda: set(_OF_ARCHIVES))
    unclear: set[tuple[str, str]] = field(default_factory=set)
    _open: set[str] = field(default_factory=set)  # ids of open campaigns
    _unread_archives: set[str] = field(default_factory=set)  # their blocks

    def note_feeds(self, feeds: Feeds) -> None:
        """Note accounts that cannot be read, and updates that no webhook has brought."""
        for block, error in feeds.failures.items():
            self._note_failure(block, error)
        self.problems += find.find_undelivered(feeds.undelivered, self.now)
        if feeds.delivered and not feeds.undelivered:
            self.looked.add(kinds.WEBHOOKS_SILENT)

    def note_unreachable(self, block: str, error: Exception) -> None:
        """Note an archive that cannot be used; the problems of its campaigns stay open."""
        self.problems.append(find.unreachable_archive(block, error, self.now))
        self._unread_archives.add(block)
        self.looked -= _OF_ARCHIVES

    def note_unread_log(self, log: CampaignLog, archive_id: str, error: Exception) -> None:
        """Note a log that cannot be read, of whatever home."""
        self.problems.append(
            find.without_run(
                f"{log.what} {log.name}",
                _identify_subject(log, archive_id),
                self.now,
                f"its log cannot be read: {error}",
            )
        )
        self.looked.discard(kinds.QUESTION_OPEN)

    def note_campaign(self, campaign: OpenCampaign, failure: Exception | None) -> None:
        """Note an open campaign of this home: its questions, its restarts, and why no run could be started, if so."""
        state = campaign.state
        self._open.add(campaign.log.name)
        for asked in state.open_questions.values() if state.is_open else ():
            self.problems.append(
                find.open_question(
                    campaign.name,
                    campaign.log.name,
                    asked.question_id,
                    asked.question.subject,
                    asked.at,
                    asked.expires_at,
                )
            )
        subject = _identify_subject(campaign.log, campaign.archive.archive_id)
        if failure is not None:
            self.problems.append(find.without_run(campaign.name, subject, self.now, str(failure).rstrip(".")))
            return
        recent = [restart for restart in state.restarts if timedelta() <= self.now - restart < _DAY]
        why = next((run.why for run in reversed(state.runs.values()) if run.restarted), None)
        self.problems += find.find_restarted(campaign.name, subject, recent, why)

    def note_homes(
        self,
        archive: SavedArchive,
        campaigns: Iterable[OpenCampaign],
        swept: Mapping[str, date],
        own_home: str,
    ) -> None:
        """Note the other homes of an archive that have open campaigns there and have not swept it for a day."""
        by_home: dict[str, list[OpenCampaign]] = {}
        for campaign in campaigns:
            if campaign.state.home not in {None, own_home}:
                by_home.setdefault(str(campaign.state.home), []).append(campaign)
        for home, of_home in by_home.items():
            last = swept.get(home)
            began = min(one.state.first_started or self.now for one in of_home)
            is_silent = self.now.date() - last > _DAY if last else self.now - began > _DAY
            if is_silent:
                since = datetime.combine(last, time(tzinfo=UTC)) if last else began
                names = [one.log.name for one in of_home]
                self.problems.append(find.silent_home(home, last, archive.name, names, since))

    def check(
        self, client: SyncPrefectClient, campaigns: Iterable[OpenCampaign], money: OpenMoney | None
    ) -> None:
        """The hourly look at orders, money, tokens and deployments."""
        self.looked |= _HOURLY
        if money is None or not money.complete or self._unread_archives:
            self.looked -= {*_MONEY, kinds.ORDER_OVERDUE}
        if money is not None:
            self.problems += find.open_money(
                money.items, lambda item: item.campaign_id in self._open, self.now, self.limits
            )
        campaigns = list(campaigns)
        by_block: dict[str, list[OpenCampaign]] = {}
        for campaign in campaigns:
            if campaign.log.what is StartedKind.CAMPAIGN and (block := campaign.account):
                by_block.setdefault(block, []).append(campaign)
        for block, of_block in sorted(by_block.items()):
            self._look(
                kinds.SERVICE_UNREACHABLE,
                partial(self._find_service_problems, client, block, of_block),
                block,
            )
        archives = {campaign.archive.name: campaign.archive for campaign in campaigns}
        for archive in archives.values():
            self._probe(archive)
        self._look(kinds.CANNOT_START, lambda: self.problems.extend(cannot_start(client, self.now)))

    def _look(self, kind: str, look: Callable[[], None], block: str | None = None) -> None:
        """One look; a failed one leaves the problems of its kind open."""
        try:
            look()
        except Exception as error:  # noqa: BLE001 - the others are looked at
            self.looked.discard(kind)
            if block is not None:
                self.looked -= {kinds.ORDER_OVERDUE, kinds.RESULTS_UNREAD}
                self._note_failure(block, error)

    def _probe(self, archive: SavedArchive) -> None:
        """Write into an archive, as before an order."""
        try:
            archive.store.probe(archive.block.prefix, with_race=False)
        except AssayError as error:
            self.problems.append(find.unreachable_archive(archive.name, error, self.now))

    def _note_failure(self, block: str, error: Exception) -> None:
        self.problems += find.failed_service(block, error, self.now)
        self.unclear |= {(kinds.TOKEN_EXPIRING, block), (kinds.SERVICE_UNREACHABLE, block)}

    def _find_service_problems(
        self, client: SyncPrefectClient, block: str, campaigns: list[OpenCampaign]
    ) -> None:
        """Add the problems of one account: a token that expires, and the orders of its campaigns."""
        with load_account(client, block).credentials.get_client() as service:
            try:
                expires = service.tokens.whoami().token_expires_at
            except AssayError:  # no part of the contract, or no right to it
                self.unclear.add((kinds.TOKEN_EXPIRING, block))
            else:
                self.problems += find.expiring_token(block, expires, self.now, self.limits)
            self._find_order_problems(service, campaigns)

    def _find_order_problems(self, service: AssayClient, campaigns: list[OpenCampaign]) -> None:
        open_orders = {
            experiment: (campaign, ledger)
            for campaign in campaigns
            for experiment, ledger in _undelivered_orders(campaign)
        }
        ids = sorted(open_orders)
        for start in range(0, len(ids), _IDS_PER_REQUEST):
            for row in service.experiments.iterate(filter=in_("id", ids[start : start + _IDS_PER_REQUEST])):
                if row.id in open_orders:
                    self._judge_order(*open_orders[row.id], row, service.service_time or self.now)

    def _judge_order(
        self, campaign: OpenCampaign, ledger: OrderLedger, row: ExperimentSummary, service_now: datetime
    ) -> None:
        key, terms = ledger.order_key, campaign.state.terms
        if row.status == ExperimentStatus.DONE and row.results_status == ResultsStatus.ALL:
            # Results that have just been released are read within minutes: twice in a row, an hour apart.
            if key in self.unread_before:
                self.problems.append(find.unread_results(row.code, campaign.name, key, self.now))
            self.unread = [*self.unread, key][:_UNREAD_MAX]
        elif terms is not None and row.status != ExperimentStatus.CANCELED:
            deadline = row.created_at + timedelta(days=terms.deadline_days)
            if service_now >= deadline:
                self.problems.append(find.overdue_order(row.code, campaign.name, key, deadline))


def _undelivered_orders(campaign: OpenCampaign) -> Iterator[tuple[str, OrderLedger]]:
    """The orders of a campaign that are placed and whose results are not archived, by experiment."""
    terms = campaign.state.terms
    if terms is None:
        return
    ledgers = Ledgers.find_recorded(campaign.log.store, campaign.log.prefix, terms.service)
    for ledger in read_logs(ledgers, campaign.log.name)[0] if ledgers else ():
        state = ledger.state
        if state.ordered is not None and state.delivered is None and not state.withdrawn:
            yield state.ordered.experiment_id, ledger


def _identify_subject(log: CampaignLog, archive_id: str) -> str:
    """Identifies a campaign or a loop among all archives, for events."""
    return f"{log.what}.{log.name}.{archive_id[:8]}"
