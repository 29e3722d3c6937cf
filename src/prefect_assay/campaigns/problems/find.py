"""Finds the problems in the facts. Pure: no Prefect, no service, no clock.

The sweep gathers the facts (`campaigns/sweep/problems.py`). Others have to notice a silent sweep.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime, timedelta
from typing import Final

from prefect_assay.campaigns.problems import kinds
from prefect_assay.campaigns.problems.problem import RUNS_MAX, AlertLimits, Problem
from prefect_assay.errors import AssayError, Forbidden, Unauthorized, shortened
from prefect_assay.orders.ledger.open_money import WORDS, OpenItem, OpenKind
from prefect_assay.service.models.billing import usd

# Three missed sweeps of five minutes, and what the last one took.
SILENT_AFTER: Final = timedelta(minutes=20)


RESTARTS: Final = 3  # within a day: it does not go on by itself


def sweep_silence(swept: datetime | None, now: datetime, *, watched_since: datetime) -> list[Problem]:
    """No complete sweep for a while; before the first one, counted from when somebody began to look."""
    last = swept or watched_since
    if now - last <= SILENT_AFTER:
        return []
    detail = f"the last one began {_format_moment(swept)}" if swept else "none has ever completed"
    return [_make_problem(kinds.SWEEP_SILENT, "sweep", last, f"no sweep completes: {detail}")]


def cannot_start(subject: str, text: str, next_step: str, now: datetime) -> Problem:
    """Something that keeps the runs of a deployment from starting."""
    return _make_problem(kinds.CANNOT_START, subject, now, text, next_step=next_step)


def report_receiver_unreachable(block: str, text: str, now: datetime) -> Problem:
    """A receiver that does not answer."""
    return _make_problem(kinds.RECEIVER_UNREACHABLE, block, now, text)


def find_undelivered(runs: Sequence[str], now: datetime) -> list[Problem]:
    """The feed has updates for these runs, and no webhook has woken them."""
    if not runs:
        return []
    text = f"updates for {_count_runs(runs)} came by the service's feed, and by no webhook"
    return [_make_problem(kinds.WEBHOOKS_SILENT, "receiver", now, text, runs=runs)]


def without_run(campaign: str, subject: str, since: datetime, why: str) -> Problem:
    """An open campaign or loop for which no run can be started; `why` is a sentence without its full stop."""
    text = f"{campaign} has no live run, and none can be started: {why}"
    return _make_problem(kinds.CAMPAIGN_WITHOUT_RUN, subject, since, text)


def find_restarted(
    campaign: str, subject: str, restarts: Sequence[datetime], why: str | None
) -> list[Problem]:
    """A campaign or a loop that had to be started again at these times, within a day; `why` is what became of its last run."""
    if len(restarts) < RESTARTS:
        return []
    last = f"; before the last time {why}" if why else ""
    text = f"{campaign} was started again {len(restarts)} times within a day{last}"
    return [_make_problem(kinds.CAMPAIGN_WITHOUT_RUN, subject, min(restarts), text)]


def open_question(
    campaign: str, campaign_id: str, question_id: str, question: str, since: datetime, until: datetime
) -> Problem:
    """A question that a person has to answer until then, by the service's clock."""
    text = f"{campaign} asks: {question} (until {_format_moment(until)}, by the service's clock)"
    step = f"prefect-assay approve {campaign_id} or prefect-assay reject {campaign_id}, or the form of the deployment decide"
    return _make_problem(kinds.QUESTION_OPEN, f"{campaign_id}/{question_id}", since, text, next_step=step)


def overdue_order(experiment: str, campaign: str, order_key: str, deadline: datetime) -> Problem:
    """An experiment without complete results after its deadline."""
    text = (
        f"{experiment} of {campaign} has no complete results, and its deadline was {_format_moment(deadline)}"
    )
    return _make_problem(kinds.ORDER_OVERDUE, order_key, deadline, text)


def unread_results(experiment: str, campaign: str, order_key: str, since: datetime) -> Problem:
    """All results of an experiment are released, and none has been archived since the last look."""
    text = f"all results of {experiment} of {campaign} are at the laboratory, and are not archived"
    return _make_problem(kinds.RESULTS_UNREAD, order_key, since, text)


def silent_home(
    home: str, swept: date | None, archive: str, campaigns: Sequence[str], since: datetime
) -> Problem:
    """Open campaigns of a Prefect home whose sweep has not looked at the archive for a day."""
    shown = ", ".join(campaigns[:RUNS_MAX]) + (", ..." if len(campaigns) > RUNS_MAX else "")
    last = f"since {swept}" if swept else "yet"
    text = f"the Prefect home {home} has not swept the archive {archive} {last}; open there: {shown}"
    return _make_problem(kinds.HOME_SILENT, f"{archive}/{home}", since, text)


def open_money(
    items: Iterable[OpenItem], is_collected: Callable[[OpenItem], bool], now: datetime, limits: AlertLimits
) -> Iterator[Problem]:
    """Invoices from their limit on, quotes before theirs, and after a day what is refunded, void, unsure or not collected.

    `is_collected` says whether an open campaign waits for the results of a paid order.
    """
    for item in items:
        subject, amount = item.experiment_id or item.order_key, usd(item.amount_cents)
        about = f"{item.name} of campaign {item.campaign_id}"
        step = ": ".join(filter(None, [item.remark, item.url])) or None
        age = now - item.since
        match item.kind:
            case OpenKind.TO_PAY if age >= timedelta(days=limits.invoice_days):
                text = f"the invoice of {about} over {amount} is unpaid since {item.since:%Y-%m-%d}"
                yield _make_problem(kinds.INVOICE_UNPAID, subject, item.since, text, next_step=step)
            case OpenKind.QUOTE if item.until and item.until - now <= timedelta(days=limits.quote_days):
                text = f"the quote for {about} over {amount} expires {_format_moment(item.until)}"
                yield _make_problem(kinds.QUOTE_EXPIRING, subject, now, text)
            case OpenKind.TO_DELIVER if age >= timedelta(days=1) and not is_collected(item):
                text = f"{about}, {amount}, is paid, and no open campaign waits for its results"
                yield _make_problem(kinds.RESULTS_UNREAD, item.order_key, item.since, text)
            case OpenKind.TO_REFUND | OpenKind.TO_VOID | OpenKind.UNSURE if age >= timedelta(days=1):
                text = f"{about}, {amount}, is {WORDS[item.kind]}"
                yield _make_problem(kinds.MONEY_OPEN, subject, item.since, text, next_step=step)
            case _:
                pass


def expiring_token(
    block: str, expires: datetime | None, now: datetime, limits: AlertLimits
) -> Iterator[Problem]:
    """The token of an account expires within the limit."""
    if expires is not None and expires - now <= timedelta(days=limits.token_days):
        word = "expires" if expires > now else "has expired"
        yield _make_problem(
            kinds.TOKEN_EXPIRING,
            block,
            now,
            f"the token of account {block} {word} {_format_moment(expires)}",
        )


def failed_service(block: str, error: Exception, now: datetime) -> list[Problem]:
    """Why the experiments of an account could not be read: its token is refused, or the service is unreachable."""
    if isinstance(error, Unauthorized | Forbidden):
        text = f"the service refuses the token of account {block}: {_format_sentence(error)}"
        return [_make_problem(kinds.TOKEN_EXPIRING, block, now, text)]
    if isinstance(error, AssayError) and error.retriable:
        text = f"the service cannot be read with account {block}: {_format_sentence(error)}"
        return [_make_problem(kinds.SERVICE_UNREACHABLE, block, now, text)]
    return []


def unreachable_archive(block: str, error: Exception, now: datetime) -> Problem:
    """An archive that cannot be read or written."""
    text = f"the archive of block {block} cannot be used: {_format_sentence(error)}"
    return _make_problem(kinds.ARCHIVE_UNREACHABLE, block, now, text)


def _make_problem(
    kind: str,
    subject: str,
    since: datetime,
    text: str,
    *,
    next_step: str | None = None,
    runs: Sequence[str] = (),
) -> Problem:
    return Problem(
        kind=kind,
        subject=subject,
        since=since,
        text=text,
        next_step=next_step or kinds.ALERTS[kind].next_step,
        runs=tuple(dict.fromkeys(runs))[:RUNS_MAX],
    )


def _count_runs(runs: Sequence[str]) -> str:
    return f"run {runs[0]}" if len(runs) == 1 else f"{len(runs)} runs"


def _format_sentence(error: Exception) -> str:
    return shortened(str(error), 600).rstrip(".")


def _format_moment(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC" if moment else "never"
