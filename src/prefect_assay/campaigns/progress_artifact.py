"""Shows people where a campaign is: one artifact with a row for each experiment and a timeline, and its stages as events.

It must not know why a run waits, nor decide anything.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, assert_never

from prefect.artifacts import MarkdownArtifact

from prefect_assay.analysis.results.formats import make_markdown_cell
from prefect_assay.archive.campaign_plan import Plan
from prefect_assay.campaigns.artifacts import begin_sentence, label_of, show_once
from prefect_assay.campaigns.orders import PlannedOrder
from prefect_assay.errors import shorten
from prefect_assay.foreign_text import label_markdown, link_markdown
from prefect_assay.orders.ledger import OrderState
from prefect_assay.orders.ledger.campaign_log import (
    Adopted,
    Answered,
    Asked,
    CampaignLog,
    CampaignRecord,
    Looked,
    Offered,
    Over,
    Ran,
    Reopened,
    Settled,
    ShownExperiment,
    Started,
    Stopped,
    Terms,
)
from prefect_assay.service.models.billing import usd
from prefect_assay.service.models.experiment import ExperimentSummary
from prefect_assay.service.models.status_questions import is_over
from prefect_assay.service.words import in_words

_logger = logging.getLogger(__name__)

_ROWS_SHOWN: Final = 300
_ENTRIES_SHOWN: Final = 60  # of the timeline, the newest


@dataclass(frozen=True)
class ProgressRow:
    """An experiment of a campaign. Amounts are US cents without VAT; what is not known is None."""

    experiment: str
    stage: str
    designs: int
    price_cents: int | None = None
    is_paid: bool = False
    expected: str | None = None  # the day of its results
    link: str | None = None


@dataclass(frozen=True)
class TimelineEntry:
    """Something that has happened, and the experiment that it happened to, if it was one."""

    at: datetime
    text: str
    experiment: str | None = None


def progress_row(
    name: str,
    designs: int,
    state: OrderState,
    shown: ShownExperiment | None,
    row: ExperimentSummary | None,
    terms: Terms | None = None,
) -> ProgressRow:
    """The row of an order, by its ledger, the last look and the service's list.

    `name` is shown until the experiment has a code.
    """
    return ProgressRow(
        experiment=(shown and shown.experiment_code) or name,
        stage=_stage_text(shown) if shown else "",
        designs=designs,
        price_cents=state.amount_cents,
        is_paid=state.settled is not None,
        expected=expected_day(shown.expected, terms)
        if shown and shown.expected and not is_over(shown.status)
        else None,
        link=row.experiment_url if row is not None else None,
    )


def show_campaign_progress(
    campaign_id: str, account: str, rows: Sequence[ProgressRow], timeline: Iterable[TimelineEntry]
) -> None:
    """Create the campaign's progress artifact, unless this run's newest one is the same; best effort."""
    try:
        show_once(
            MarkdownArtifact(
                key=f"assay-progress-{label_of(campaign_id)}",
                description=f"Where the experiments of campaign {campaign_id} are",
                markdown=progress_markdown(campaign_id, account, rows, timeline),
            )
        )
    except Exception as error:
        _logger.warning("Could not show the progress of campaign %s", campaign_id, exc_info=shorten(error))


def progress_markdown(
    campaign_id: str, account: str, rows: Sequence[ProgressRow], timeline: Iterable[TimelineEntry]
) -> str:
    """The table of the experiments, and what has happened, newest first."""
    lines = [
        f"# Campaign {label_markdown(campaign_id)}",
        "",
        f"{begin_sentence(account)}.",
        "",
        "| experiment | stage | designs | price without VAT |",
        "|---|---|---:|---:|",
    ]
    lines += [_format_cells(row) for row in rows[:_ROWS_SHOWN]]
    if len(rows) > _ROWS_SHOWN:
        lines.append(f"| and {len(rows) - _ROWS_SHOWN} more | | | |")
    entries = list(timeline)[-_ENTRIES_SHOWN:]
    if entries:
        lines += ["", "## What has happened", "", "| recorded, UTC | experiment | |", "|---|---|---|"]
        lines += [
            f"| {_format_minute(entry.at)} | {label_markdown(entry.experiment or '')} | {make_markdown_cell(entry.text)} |"
            for entry in reversed(entries)
        ]
    return "\n".join(lines)


def _format_cells(row: ProgressRow) -> str:
    cells = (
        link_markdown(row.experiment, row.link),
        make_markdown_cell(f"{row.stage}; results expected {row.expected}" if row.expected else row.stage),
        str(row.designs),
        _format_price(row),
    )
    return f"| {' | '.join(cells)} |"


def _format_price(row: ProgressRow) -> str:
    """The price and whether it is paid, in one cell: a table of few columns is read on a telephone."""
    if row.price_cents is None:
        return "paid" if row.is_paid else ""
    return f"{usd(row.price_cents)}, {'paid' if row.is_paid else 'not paid'}"


def timeline_of_log(records: Iterable[CampaignRecord]) -> Iterator[TimelineEntry]:
    """What the campaign's log holds, as people read it: decisions, restarts, and each change of an experiment.

    In the log's order, each with the time when it was recorded: the service's clock may be another one.
    """
    records = list(records)
    codes = {
        shown.experiment_id: shown.experiment_code
        for record in records
        if isinstance(record, Looked)
        for shown in record.experiments.values()
        if shown.experiment_code
    }
    last: dict[str, str] = {}
    offered: str | None = None
    for record in records:
        if isinstance(record, Looked):
            for order_key, shown in record.experiments.items():
                text = _stage_text(shown)
                if last.get(order_key) != text:
                    last[order_key] = text
                    yield TimelineEntry(
                        record.at, text, codes.get(shown.experiment_id) or shown.experiment_id
                    )
        elif isinstance(record, Offered):
            if record.purchase.due != offered:  # the same price with other words, such as who is asked
                offered = record.purchase.due
                yield TimelineEntry(record.at, f"to be ordered: {offered}")
        elif (words := _text_of(record)) is not None:
            yield TimelineEntry(record.at, words)


def _stage_text(shown: ShownExperiment) -> str:
    """The stage, with the service's own word while the experiment is on its way, and with what keeps it there."""
    status = "" if shown.status is None or is_over(shown.status) else f": {in_words(shown.status)}"
    problem = f" ({shown.problem})" if shown.problem else ""
    return f"{shown.stage}{status}{problem}"


_Decision = Started | Ran | Asked | Answered | Stopped | Settled | Reopened | Adopted | Over


def _text_of(record: _Decision) -> str | None:  # noqa: PLR0911 - a line per kind
    match record:
        case Started():
            return "started" if record.requester is None else f"started by {record.requester}"
        case Ran():
            why = f": {record.why}" if record.why else ""
            return f"run {record.name} goes on{why}" if record.restarted else None
        case Asked():
            return f"question {record.question_id}: {record.question.subject}"
        case Answered():
            return f"question {record.question_id} answered: {record.decision}, by {record.answerer}"
        case Stopped():
            return f"canceled by {record.person}"
        case Settled():
            return "what the cancellation left behind is reported"
        case Reopened():
            return f"opened again by {record.person}"
        case Adopted():
            return f"taken over by another Prefect server, for {record.person}"
        case Over():
            return f"over: {record.words}"
        case _:
            assert_never(record)


def _format_minute(moment: datetime) -> str:
    return f"{format_day(moment.astimezone(UTC))} {moment.astimezone(UTC):%H:%M}"


def expected_day(moment: datetime, terms: Terms | None) -> str:
    """The day of expected results; a lab's clock may run fast, so its days are not the reader's."""
    return f"{format_day(moment)}{' by the clock of the lab' if terms and terms.simulated else ''}"


def format_day(moment: datetime) -> str:
    """A date in a text for people."""
    return f"{moment.day} {moment:%b %Y}"


def show_progress(
    plan: Plan,
    orders: Sequence[PlannedOrder],
    log: CampaignLog,
    account: str,
    rows: Mapping[str, ExperimentSummary],
) -> None:
    """Show where each experiment is; `rows` are those of the service's list, by experiment id."""
    lines = [
        progress_row(
            order.name,
            len(order.spec.sequences),
            order.ledger.state,
            log.state.shown.get(order.key),
            rows.get(ordered.experiment_id) if (ordered := order.ledger.state.ordered) is not None else None,
            log.state.terms,
        )
        for order in orders
    ]
    show_campaign_progress(plan.campaign_id, account, lines, timeline_of_log(log.records()))
