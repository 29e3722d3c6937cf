"""Cancels a campaign or a loop for a person, and reports what the laboratory still does and what is owed.

The campaign's log is stopped first, then the ledger of each order: no create, acceptance or payment can follow there,
whichever run is alive. Then open quotes are rejected. Every step is safe to repeat, and the sweep repeats them until
nothing is pending.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

import httpx
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.actions import ArtifactCreate
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterKey
from prefect.client.schemas.objects import TERMINAL_STATES, FlowRun, StateType
from prefect.exceptions import PrefectException

from prefect_assay.archive.plans import find_plan
from prefect_assay.blocks import Archive, AssayAccount, AssayCredentials
from prefect_assay.campaigns.approval.answers import resume_canceled
from prefect_assay.campaigns.approval.terms import account_in
from prefect_assay.campaigns.artifacts import label_of
from prefect_assay.campaigns.loops.loop_log import LoopLog
from prefect_assay.campaigns.remains import (
    CanceledOrderState,
    CancellationReport,
    order_line,
    order_text,
    reject_surplus,
    settle_cancellation,
)
from prefect_assay.campaigns.runs.queries import read_runs, run_filter
from prefect_assay.campaigns.runs.states import cancel_run
from prefect_assay.campaigns.runs.tags import CAMPAIGN_TAG, LOOP_TAG, tag_values
from prefect_assay.errors import AssayError, InputError, NotFound, OrderMismatch, shortened
from prefect_assay.foreign_text import quote_markdown
from prefect_assay.orders.find import adopt_listed, find_order
from prefect_assay.orders.ledger import Ledgers, OrderLedger
from prefect_assay.orders.ledger.campaign_log import (
    CampaignLog,
    CampaignState,
    Started,
    StartedKind,
    Stopped,
)
from prefect_assay.orders.payments.interfaces import normalize_address
from prefect_assay.service.client import AssayClient
from prefect_assay.service.models.base import Model
from prefect_assay.service.models.billing import usd
from prefect_assay.service.models.spec import ExperimentSpec
from prefect_assay.service.words import many

# A request that was in flight when the ledger was stopped has arrived by then, or never will.
IN_FLIGHT: Final = timedelta(minutes=10)
_STATE_LINE: Final = "State of the service at "
_LIVE: Final = sorted(set(StateType) - TERMINAL_STATES)


class OrderRemains(Model):
    """What remains of one order. `problem` says why it could not be read; `is_pending` asks for another look."""

    campaign_id: str
    order_key: str
    name: str
    remains: CancellationReport | None = None
    problem: str | None = None
    is_pending: bool = False

    @property
    def experiment(self) -> str | None:
        """The experiment's code, or its id."""
        order = self.remains.order if self.remains else None
        return (order.experiment_code or order.experiment_id) if order else None

    @property
    def line(self) -> str:
        """What remains, in one line without markup."""
        if self.remains is not None:
            return order_line(self.remains)
        return f"{self.problem or 'not read yet'}; the sweep looks again"

    @property
    def billed_cents(self) -> int | None:
        """What is billed and has to be paid, or is paid, in US cents without VAT; None if nothing is."""
        remains = self.remains
        invoice = remains.payment.invoice if remains else None
        return invoice.amount if remains and invoice and not remains.must_not_be_paid else None

    @property
    def is_paid(self) -> bool:
        """The service shows the invoice as paid."""
        return self.remains is not None and self.remains.payment.paid


class EndedRound(Model):
    """A round that was over before its loop was canceled, by its ledgers; amounts in US cents without VAT.

    `experiments` is None where a ledger cannot be read.
    """

    campaign_id: str
    experiments: int | None = None
    billed_cents: int = 0
    paid_cents: int = 0

    @property
    def line(self) -> str:
        """What it had ordered, in one line without markup."""
        over = f"round {self.campaign_id} was over before"
        if self.experiments is None:
            return f"{over}; what it had ordered cannot be read: prefect-assay archive verify says what is damaged"
        ordered = f"{over}: {many(self.experiments, 'experiment')} ordered"
        if not self.billed_cents:
            return f"{ordered}, nothing billed"
        return f"{ordered}, {usd(self.billed_cents)} billed, {usd(self.paid_cents)} of it paid"


class StopReport(Model):
    """A canceled campaign or loop: what remains of each order, and what the cancellation could not do yet.

    `orders` are those that it stopped. What a loop had bought in rounds that were over is in `ended`.
    """

    what: StartedKind
    name: str
    person: str
    how: str
    orders: tuple[OrderRemains, ...] = ()
    ended: tuple[EndedRound, ...] = ()
    problems: tuple[str, ...] = ()
    is_settled: bool = False

    @property
    def billed_cents(self) -> int:
        """All that is billed, in US cents without VAT."""
        orders = sum(order.billed_cents or 0 for order in self.orders)
        return orders + sum(one.billed_cents for one in self.ended)

    @property
    def paid_cents(self) -> int:
        """The part of it that is paid."""
        orders = sum(order.billed_cents or 0 for order in self.orders if order.is_paid)
        return orders + sum(one.paid_cents for one in self.ended)

    @property
    def summary(self) -> str:
        """What it had ordered, in a sentence, where none of its orders was open."""
        if self.orders:
            return ""
        if self.ended:
            return "Nothing was open: what it had ordered was over before."
        return "It had ordered nothing, and nothing will be billed."


def find_log(archive: Archive, campaign_id: str) -> CampaignLog:
    """The log of a campaign, else of a loop, of this id, read.

    Raises:
        NotFound: this archive has neither.
    """
    store = archive.get_store()
    for what in StartedKind:
        log = CampaignLog(store, archive.prefix, campaign_id, what)
        if log.read().count:
            return log
    raise NotFound(
        f"the archive {store.location(archive.prefix)} has neither a campaign nor a loop {campaign_id!r}; "
        "`prefect-assay status` lists what there is"
    )


def read_round_logs(log: CampaignLog) -> list[CampaignLog]:
    """The logs of a loop's rounds, which are campaigns; of a campaign, none."""
    if log.what is StartedKind.CAMPAIGN:
        return []
    rounds = LoopLog(log.store, log.prefix, log.name).read().campaigns
    return [CampaignLog(log.store, log.prefix, name) for name in rounds]


def stop_log(account: AssayAccount | None, log: CampaignLog, *, person: str, how: str) -> StopReport:
    """Stop a campaign or a loop by its log, for a person. Safe to repeat; it also works while no run exists.

    Without its account the orders are stopped, and the sweep withdraws and reports. Open quotes are rejected, unless the
    policy's `reject_quote_on_cancel` forbids it.

    Raises:
        InputError: it is over, and nothing is left to cancel.
        ArchiveError: the archive cannot be read or written; repeat it.
    """
    state = log.read()
    if state.over is not None and state.stopped is None:
        raise InputError(
            f"{log.what} {log.name} is over ({state.over.words}); there is nothing to cancel. What is ordered and not "
            f"paid: prefect-assay status {log.name}"
        )
    log.stop(person, how)
    return settle_stop(account, log)


def settle_stop(account: AssayAccount | None, log: CampaignLog) -> StopReport:
    """Do all that follows from a recorded cancellation, and report it; the sweep repeats it until it is settled.

    Raises:
        InputError: the log is not stopped.
        ArchiveError: the archive cannot be read or written.
    """
    stopped = log.read().stopped
    if stopped is None:
        raise InputError(f"{log.what} {log.name} is not canceled")
    problems: list[str] = []
    campaigns = list(_record_stops(log, stopped))
    orders = [order for campaign in campaigns for order in _stop_orders(campaign, stopped, problems)]
    # Only now: a run that is ended earlier might be followed by one that orders.
    _at_prefect(lambda client: end_runs(client, log), "its runs could not be ended", problems)
    rejects = account is None or account.policy.reject_quote_on_cancel
    credentials = account.credentials if account else None
    remains = tuple(_read_remains(credentials, orders, stopped, reject=rejects))
    report = StopReport(
        what=log.what,
        name=log.name,
        person=stopped.person,
        how=stopped.how,
        orders=remains,
        ended=tuple(_ended_rounds(log, {campaign.name for campaign in campaigns})),
        problems=tuple(problems),
        is_settled=not problems and not any(order.is_pending for order in remains),
    )
    text = report_text(report, account_in(log), reject=rejects)
    shown = _at_prefect(
        lambda client: _publish_report(client, log, text), "its report could not be shown", problems
    )
    if report.is_settled and shown:
        for campaign in campaigns:
            campaign.settle()
        log.settle()
    return report.model_copy(update={"problems": tuple(problems), "is_settled": report.is_settled and shown})


def reopen_campaign(log: CampaignLog, *, person: str) -> None:
    """Open a stopped or ended campaign or loop again, as a person has asked for; no schedule does this.

    Raises:
        NotFound: the log is empty.
        ArchiveError: the archive cannot be read or written; repeat it.
    """
    state = log.read()
    if not state.count:
        raise NotFound(
            f"the archive {log.store.location(log.prefix)} has no {log.what} {log.name!r}; "
            "`prefect-assay status` lists what there is"
        )
    stopped = state.stopped
    rounds = [one for one in read_round_logs(log) if _was_stopped_with(stopped, one.read())]
    campaigns = rounds if log.what is StartedKind.LOOP else [log]
    _reopen_orders(campaigns, person)
    for campaign in (*rounds, log):
        campaign.reopen(person)
    # Again: a sweep that was settling the cancellation may have stopped them meanwhile.
    _reopen_orders(campaigns, person)


def _reopen_orders(campaigns: Sequence[CampaignLog], person: str) -> None:
    for campaign in campaigns:
        for order in _list_orders(campaign):
            order.ledger.reopen(person)


@dataclass(frozen=True)
class _StoppedOrder:
    ledger: OrderLedger
    name: str
    spec: ExperimentSpec | None
    service: str  # the address that its campaign was started under


def _record_stops(log: CampaignLog, stopped: Stopped) -> Iterator[CampaignLog]:
    """Record the stop in the log of each round of a loop that is not over; yields the stopped campaigns."""
    if log.what is StartedKind.CAMPAIGN:
        yield log
        return
    for campaign in read_round_logs(log):
        state = campaign.read()
        if state.started is None or (state.over is not None and state.stopped is None):
            continue
        campaign.stop(stopped.person, stopped.how)
        yield campaign


def _ended_rounds(log: CampaignLog, stopped: Collection[str]) -> Iterator[EndedRound]:
    """The rounds of a loop that the cancellation has not stopped, with what they had ordered."""
    for campaign in read_round_logs(log):
        if campaign.name in stopped:
            continue
        try:
            states = [state for order in _list_orders(campaign) if (state := order.ledger.read()).placed]
        except AssayError:  # what is open is canceled all the same
            yield EndedRound(campaign_id=campaign.name)
            continue
        if states:
            yield EndedRound(
                campaign_id=campaign.name,
                experiments=len(states),
                billed_cents=sum(state.amount_cents or 0 for state in states if state.is_accepted),
                paid_cents=sum(state.amount_cents or 0 for state in states if state.settled),
            )


def _was_stopped_with(loop: Stopped | None, state: CampaignState) -> bool:
    """Whether a round was stopped with its loop, and not by itself."""
    stopped = state.stopped
    return bool(loop and stopped and (stopped.person, stopped.how) == (loop.person, loop.how))


def _stop_orders(log: CampaignLog, stopped: Stopped, problems: list[str]) -> Iterator[_StoppedOrder]:
    """Stop the ledger of each order. One that cannot be written leaves the others stopped."""
    for order in _list_orders(log):
        try:
            order.ledger.stop(stopped.person, stopped.how)
        except AssayError as error:
            problems.append(f"order {order.ledger.order_key} of campaign {log.name} is not stopped: {error}")
        yield order


def _list_orders(log: CampaignLog) -> list[_StoppedOrder]:
    """Every order of a campaign, in each ledger that it was started for: those of its plan, and all others."""
    services = {record.terms.service for record in log.records() if isinstance(record, Started)}
    plan = find_plan(log.store, log.prefix, log.name)
    planned = {one.order_key: one for one in plan.experiments} if plan else {}
    orders = []
    for service in sorted(services):  # another one, where a person has accepted another account
        ledgers = Ledgers.find_recorded(log.store, log.prefix, service)
        if ledgers is None:
            continue  # nothing was ordered there
        known = [ledger.order_key for ledger in ledgers.list_orders(log.name)]
        for number, key in enumerate(dict.fromkeys([*planned, *known]), 1):
            name = (
                f"{log.name}, order {number} of {len(planned)}"
                if key in planned
                else f"{log.name}, order {key}"
            )
            spec = planned[key].spec if key in planned else None
            orders.append(_StoppedOrder(ledgers.open_order(log.name, key), name, spec, service))
    return orders


def _read_remains(
    credentials: AssayCredentials | None,
    orders: Sequence[_StoppedOrder],
    stopped: Stopped,
    *,
    reject: bool,
) -> Iterator[OrderRemains]:
    age = datetime.now(UTC) - stopped.at
    sent = [order for order in orders if _was_sent(order.ledger)]
    for order in orders:
        if order not in sent:
            yield _describe_order(order, remains=CancellationReport(state=CanceledOrderState.NOTHING))
    if not sent:
        return
    if credentials is None:
        for order in sent:
            yield _describe_order(order, problem="its account is not there", is_pending=True)
        return
    with credentials.get_client() as client:
        for order in sent:
            if normalize_address(client.base_url) != order.service:
                yield _describe_order(
                    order,
                    problem=f"it was ordered at {order.service}, and the account is for {normalize_address(client.base_url)} now",
                    is_pending=True,
                )
                continue
            yield _cancel_order_at_service(client, order, age, reject=reject)


def _was_sent(ledger: OrderLedger) -> bool:
    """Whether the service may have an experiment of the order; nothing can be sent any more."""
    state = ledger.read()
    return bool(state.open_attempts) or state.ordered is not None or state.attempts > state.refused


def _cancel_order_at_service(
    client: AssayClient, order: _StoppedOrder, age: timedelta, *, reject: bool
) -> OrderRemains:
    """Reject what can be rejected of one order at the service, and describe what remains; errors become its problem."""
    ledger = order.ledger
    try:
        if order.spec is not None and ledger.read().ordered is None:
            adopt_listed(client, ledger, order.spec)  # its duplicates have quotes, too
        experiment = find_order(client, ledger)
        if reject:
            reject_surplus(client, ledger.read().surplus)
        remains = settle_cancellation(client, ledger, experiment, reject=reject)
    except OrderMismatch as error:
        # Only a person can tell; it is named in the report, and looking again tells nothing new.
        return _describe_order(
            order, problem=f"the service may have it: {error}", is_pending=age <= IN_FLIGHT
        )
    except AssayError as error:
        return _describe_order(order, problem=str(error), is_pending=True)
    return _describe_order(order, remains=remains, is_pending=not _is_final(remains, reject=reject, age=age))


def _is_final(report: CancellationReport, *, reject: bool, age: timedelta) -> bool:
    """Return True if another look could find or do nothing more."""
    if report.state in {CanceledOrderState.QUOTE_PENDING, CanceledOrderState.QUOTE_OPEN}:
        return not reject and age > IN_FLIGHT
    return age > IN_FLIGHT or not (report.state is CanceledOrderState.NOTHING or report.payment.in_doubt)


def _describe_order(
    order: _StoppedOrder,
    *,
    remains: CancellationReport | None = None,
    problem: str | None = None,
    is_pending: bool = False,
) -> OrderRemains:
    return OrderRemains(
        campaign_id=order.ledger.campaign_id,
        order_key=order.ledger.order_key,
        name=order.name,
        remains=remains,
        problem=problem and shortened(problem, 600),
        is_pending=is_pending,
    )


def end_runs(client: SyncPrefectClient, log: CampaignLog) -> list[FlowRun]:
    """End the runs that carry it, and return them. The run of a loop that carries a canceled round goes on.

    A suspended run has no process and is Cancelled at once; a worker stops the process of any other.
    """
    is_campaign = log.what is StartedKind.CAMPAIGN
    tag = (CAMPAIGN_TAG if is_campaign else LOOP_TAG) + log.name
    runs = read_runs(client, run_filter(states=_LIVE, tags=[tag]))
    for run in runs:
        if is_campaign and tag_values(run.tags, LOOP_TAG):
            if run.state is not None and run.state.is_paused():
                resume_canceled(client, log, run)
        elif run.state is None or not run.state.is_cancelling():
            cancel_run(client, run)
    return runs


def report_text(report: StopReport, account: str, *, reject: bool) -> str:
    """Return the Markdown report of a canceled campaign or loop."""
    lines = [
        f"# {report.what.capitalize()} {report.name} is canceled",
        "",
        quote_markdown(account),
        "",
        f"By {report.person} ({report.how}). Nothing is ordered, accepted or paid for it any more.",
        "",
    ]
    if report.summary:
        lines += [report.summary, ""]
    if report.billed_cents:
        lines += [
            f"Billed together: {usd(report.billed_cents)}, of which {usd(report.paid_cents)} is paid.",
            "",
        ]
    for order in report.orders:
        text = order_text(order.remains, reject=reject) if order.remains else order.line.capitalize()
        lines += [f"## {order.name}", "", text, ""]
    if report.ended:
        lines += ["## Over before", "", *(f"- {one.line}" for one in report.ended), ""]
    if report.problems:
        lines += ["## Not done yet", "", *(f"- {problem}" for problem in report.problems), ""]
    if not report.is_settled:
        lines += ["The sweep looks again, and reports what has changed.", ""]
    lines.append(f"{_STATE_LINE}{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC.")
    return "\n".join(lines)


def _publish_report(client: SyncPrefectClient, log: CampaignLog, text: str) -> None:
    """Show the report on the page of the last run, unless it says what the last one says."""
    key = f"assay-canceled-{label_of(log.name)}"
    named = ArtifactFilter(key=ArtifactFilterKey(any_=[key]))
    earlier = client.read_artifacts(artifact_filter=named)
    shown = max(earlier, key=lambda one: one.created.timestamp() if one.created else 0.0, default=None)
    if shown is not None and _strip_date(str(shown.data)) == _strip_date(text):
        return
    client.create_artifact(
        ArtifactCreate(
            key=key,
            type="markdown",
            description="What remains of what was canceled",
            data=text,
            flow_run_id=_last_run(log.read()),
        )
    )


def _strip_date(text: str) -> str:
    return text.rpartition(_STATE_LINE)[0]


def _last_run(state: CampaignState) -> UUID | None:
    return next((UUID(run) for run in reversed(state.runs)), None)


def _at_prefect(do: Callable[[SyncPrefectClient], object], what: str, problems: list[str]) -> bool:
    """Do a step at Prefect; a failure is noted as a problem, and the rest goes on. True if it is done."""
    try:
        with get_client(sync_client=True) as client:
            do(client)
    except (httpx.HTTPError, PrefectException, RuntimeError) as error:
        problems.append(f"{what}: {shortened(str(error))}")
        return False
    return True
