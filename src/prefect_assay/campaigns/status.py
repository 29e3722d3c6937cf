"""What is known of campaigns and loops: read from their logs, the orders' ledgers, the plan and the archive.

A flow run is never asked: it may be deleted, failed by hand or replaced by another, and the campaign goes on. Amounts are
US cents without VAT.
"""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from enum import StrEnum
from typing import Final

from pydantic import AwareDatetime

from prefect_assay.archive import ArchivedVersion
from prefect_assay.archive.plans import find_plan
from prefect_assay.archive.read import latest_by_experiment
from prefect_assay.archive.store import Store
from prefect_assay.orders.ledger import Ledgers, OrderLedger
from prefect_assay.orders.ledger.campaign_log import (
    CampaignLog,
    CampaignState,
    Over,
    ShownExperiment,
    StartedKind,
    Terms,
    list_all,
    list_open,
)
from prefect_assay.orders.ledger.open_money import read_logs
from prefect_assay.orders.stages import Stage, stage_of
from prefect_assay.service.models.base import Model

_READERS: Final = 16  # logs are read at once: each record is a request where the archive is a bucket
_OLDEST: Final = 0.0
# What the ledger alone decides, whatever the last look has seen.
_DECIDED: Final = frozenset({Stage.MEASURED, Stage.STOPPED, Stage.ASKS, Stage.NO_QUOTE, Stage.REFUSED})


class Progress(StrEnum):
    """Where a campaign or a loop stands, by its log."""

    OPEN = "open"
    ASKS = "asks"  # open, and a person is asked
    STOPPED = "stopped"  # by a person
    COMPLETE = "complete"  # over, with all results
    INCOMPLETE = "incomplete"  # over, without some or all results


class ExperimentView(Model):
    """One order of a campaign, by its ledger and the archive. `number` counts from 1; None for one outside of the plan.

    `service_status`, `problem` and `expected` are what the campaign's last look has seen; its log keeps them.
    """

    order_key: str
    number: int | None = None
    stage: Stage
    experiment_id: str | None = None
    experiment_code: str | None = None
    approved_cents: int | None = None
    invoiced_cents: int | None = None
    paid_cents: int | None = None
    invoice_id: str | None = None
    results_status: str | None = None  # of the newest archived version: `partial` or `all`
    location: str | None = None  # of that version
    service_status: str | None = None
    problem: str | None = None  # what keeps the order where it is
    expected: AwareDatetime | None = None  # when the laboratory expects results


class QuestionView(Model):
    """An open question: an answer names its id, its revision and exactly this amount."""

    question_id: str
    revision: int
    subject: str
    reason: str
    amount_cents: int | None
    decisions: tuple[str, ...]
    order_key: str | None
    asked_at: AwareDatetime
    expires_at: AwareDatetime


class RunView(Model):
    """A flow run that has carried the campaign; `restarted` if the sweep has started it, and then `why`."""

    run: str
    name: str
    began: AwareDatetime
    restarted: bool
    why: str | None = None


class CampaignView(Model):
    """A campaign or a loop, and what the archive holds of it."""

    kind: StartedKind
    name: str
    terms: Terms | None
    started: AwareDatetime | None
    started_by: str | None
    deployment: str | None
    home: str | None
    progress: Progress
    planned: int | None  # experiments
    experiments: tuple[ExperimentView, ...] = ()
    questions: tuple[QuestionView, ...] = ()
    runs: tuple[RunView, ...] = ()  # oldest first
    stopped_by: str | None = None
    stopped_at: AwareDatetime | None = None
    ended: AwareDatetime | None = None
    outcome: str | None = None  # what the log says of the end
    report: str | None = None
    looked: AwareDatetime | None = None  # when it has last seen something change, by the service's clock
    location: str
    notes: tuple[str, ...] = ()  # what could not be read

    @property
    def is_over(self) -> bool:
        """Return True if nothing is advanced any more: it is over, or stopped."""
        return self.progress not in {Progress.OPEN, Progress.ASKS}

    @property
    def restarts(self) -> int:
        """How many of its runs the sweep has started."""
        return sum(run.restarted for run in self.runs)

    @property
    def run(self) -> RunView | None:
        """The run that carries it, or was the last to do so."""
        return self.runs[-1] if self.runs else None

    @property
    def results_expected_at(self) -> datetime | None:
        """When the next results are expected, if the laboratory has said so."""
        return min(
            (one.expected for one in self.experiments if one.expected and one.stage is Stage.LABORATORY),
            default=None,
        )

    @property
    def approved_cents(self) -> int:
        """What its orders may cost, as far as it is known."""
        return sum(one.approved_cents or 0 for one in self.experiments)

    @property
    def invoiced_cents(self) -> int:
        """What is billed for its orders, paid or not."""
        return sum(one.invoiced_cents or 0 for one in self.experiments)

    @property
    def paid_cents(self) -> int:
        """What is paid for its orders."""
        return sum(one.paid_cents or 0 for one in self.experiments)


def list_campaigns(store: Store, prefix: str, *, open_only: bool) -> tuple[CampaignView, ...]:
    """The campaigns and loops of an archive, the newest first.

    `open_only` reads the index of open ones; otherwise every log is read, a request for each of its records.
    """
    logs = (log for log in list_open(store, prefix) if log.read().needs_sweep)
    return newest_first(_make_views(logs if open_only else list_all(store, prefix)))


def newest_first(views: Sequence[CampaignView]) -> tuple[CampaignView, ...]:
    """The same, by the time of the start."""
    return tuple(
        sorted(views, key=lambda view: view.started.timestamp() if view.started else _OLDEST, reverse=True)
    )


def _make_views(logs: Iterator[CampaignLog]) -> list[CampaignView]:
    with ThreadPoolExecutor(_READERS) as pool:
        return list(pool.map(view_of, logs))


def view_of(log: CampaignLog) -> CampaignView:
    """What is known of the campaign of a log that is read."""
    state = log.state
    started = state.started
    experiments, notes = _list_experiments(log, state)
    return CampaignView(
        kind=log.what,
        name=log.name,
        terms=state.terms,
        started=state.first_started,
        started_by=started.requester if started else None,
        deployment=started.deployment if started else None,
        home=state.home,
        progress=_make_progress(state),
        planned=started.experiments if started else None,
        experiments=experiments,
        questions=tuple(_list_questions(state)),
        runs=tuple(
            RunView(run=run.run, name=run.name, began=run.at, restarted=run.restarted, why=run.why)
            for run in state.runs.values()
        ),
        stopped_by=state.stopped.person if state.stopped else None,
        stopped_at=state.stopped.at if state.stopped else None,
        ended=_find_end(state),
        outcome=state.over.words if state.over else None,
        report=state.over.report if state.over else None,
        looked=state.read_at,
        location=log.location,
        notes=notes,
    )


def _find_end(state: CampaignState) -> datetime | None:
    end = state.over or state.stopped
    return end.at if end else None


def _make_progress(state: CampaignState) -> Progress:
    match state.over:
        case Over(complete=True):
            return Progress.COMPLETE
        case Over() if state.stopped is None:
            return Progress.INCOMPLETE
        case _ if state.stopped is not None:
            return Progress.STOPPED
        case _:
            return Progress.ASKS if state.open_questions else Progress.OPEN


def _list_questions(state: CampaignState) -> Iterator[QuestionView]:
    if state.stopped is not None or state.over is not None:
        return  # an answer would change nothing any more
    for asked in state.open_questions.values():
        yield QuestionView(
            question_id=asked.question_id,
            revision=asked.revision,
            subject=asked.question.subject,
            reason=asked.question.reason,
            amount_cents=asked.question.amount_cents,
            decisions=asked.question.decisions,
            order_key=asked.order_key,
            asked_at=asked.asked_at,
            expires_at=asked.expires_at,
        )


def _list_experiments(
    log: CampaignLog, state: CampaignState
) -> tuple[tuple[ExperimentView, ...], tuple[str, ...]]:
    """The orders in the order of the plan, then any others with a ledger; and a note for each damaged ledger."""
    if log.what is StartedKind.LOOP or state.terms is None:
        return (), ()
    store, prefix = log.store, log.prefix
    plan = find_plan(store, prefix, log.name)
    numbers = {one.order_key: one.batch_index + 1 for one in plan.experiments} if plan else {}
    ledgers = Ledgers.find_recorded(store, prefix, state.terms.service)
    if ledgers is None:
        return (), ()  # nothing was ordered at this service yet
    logs, notes = read_logs(ledgers, log.name)
    by_key = {ledger.order_key: ledger for ledger in logs}
    unordered = (ledgers.open_order(log.name, key) for key in numbers if key not in by_key)
    all_ledgers = [*by_key.values(), *unordered]
    all_ledgers.sort(key=lambda ledger: (numbers.get(ledger.order_key, len(numbers) + 1), ledger.order_key))
    asked = frozenset(one.order_key for one in state.open_questions.values())
    archived = latest_by_experiment(store, prefix, log.name)
    return tuple(
        _experiment_view(ledger, numbers, asked, archived, state.shown.get(ledger.order_key))
        for ledger in all_ledgers
    ), notes


def _experiment_view(
    ledger: OrderLedger,
    numbers: Mapping[str, int],
    asked: AbstractSet[str | None],
    archived: Mapping[str, ArchivedVersion],
    shown: ShownExperiment | None,
) -> ExperimentView:
    """What is known of one order, whose ledger is read."""
    state = ledger.state
    experiment_id = state.ordered.experiment_id if state.ordered else None
    version = archived.get(experiment_id) if experiment_id else None
    if shown is not None and shown.experiment_id != experiment_id:
        shown = None  # the order has moved to another experiment since
    code = version.manifest.experiment_code if version else None
    return ExperimentView(
        order_key=ledger.order_key,
        number=numbers.get(ledger.order_key),
        stage=_decide_stage(stage_of(state, asks=ledger.order_key in asked), shown),
        experiment_id=experiment_id,
        experiment_code=code or (shown.experiment_code if shown else None),
        approved_cents=state.approved.amount_cents if state.approved else None,
        invoiced_cents=state.invoiced.amount_cents if state.invoiced else None,
        paid_cents=state.amount_cents if state.settled else None,
        invoice_id=state.invoice_id,
        results_status=version.manifest.results_status if version else None,
        location=version.location if version else None,
        service_status=shown.status if shown else None,
        problem=shown.problem if shown else None,
        expected=shown.expected if shown else None,
    )


def _decide_stage(by_ledger: Stage, shown: ShownExperiment | None) -> Stage:
    """The ledger's stage where it decides; else what the last look has seen, such as a cancellation by the laboratory."""
    if shown is None or by_ledger in _DECIDED or shown.stage not in set(Stage) - {Stage.ASKS}:
        return by_ledger
    return Stage(shown.stage)
