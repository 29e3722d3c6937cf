"""Finds the problems in the facts. Pure: no Prefect, no service, no clock.

The sweep gathers the facts (`sweeping/alert_facts.py`). Others have to notice a silent sweep.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from prefect_assay.alerts import kinds
from prefect_assay.errors import AssayError, Forbidden, Unauthorized, shortened
from prefect_assay.models.billing import usd
from prefect_assay.models.open_money import WORDS, OpenItem, OpenKind
from prefect_assay.models.problem import RUNS_MAX, AlertLimits, Problem

# Three missed sweeps of five minutes, and what the last one took.
SILENT_AFTER: Final = timedelta(minutes=20)


_COLLECT: Final = (
    "Start its campaign again with the same id to collect its results: nothing is ordered or paid twice"
)


@dataclass(frozen=True, slots=True)
class Due:
    """Something of an experiment with a date: its deadline, its invoice or its quote."""

    experiment: str  # the code or the id
    run: str
    at: datetime
    cents: int | None = None


def sweep_silence(swept: datetime | None, now: datetime, *, watched_since: datetime) -> list[Problem]:
    """No complete sweep for a while; before the first one, counted from when somebody began to look."""
    last = swept or watched_since
    if now - last <= SILENT_AFTER:
        return []
    said = f"the last one began {_when(swept)}" if swept else "none has ever completed"
    return [_problem(kinds.SWEEP_SILENT, "sweep", last, f"no sweep completes: {said}")]


def cannot_start(subject: str, text: str, next_step: str, now: datetime) -> Problem:
    """Something that keeps the runs of a deployment from starting."""
    return _problem(kinds.CANNOT_START, subject, now, text, next_step=next_step)


def receiver_away(block: str, text: str, now: datetime) -> Problem:
    """A receiver that does not answer."""
    step = "Start prefect-assay receiver, or prefect-assay up; until then the sweep wakes runs, minutes later"
    return _problem(kinds.RECEIVER_AWAY, block, now, text, next_step=step)


def undelivered(runs: Sequence[str], now: datetime) -> list[Problem]:
    """The feed has updates for these runs, and no webhook has woken them."""
    if not runs:
        return []
    text = f"updates for {_count(runs)} came by the service's feed, and by no webhook"
    return [_problem(kinds.WEBHOOKS_SILENT, "receiver", now, text, runs=runs)]


def unpaid_invoices(invoices: Iterable[Due], now: datetime, limits: AlertLimits) -> Iterator[Problem]:
    """Open invoices that are older than the limit."""
    for due in invoices:
        age = now - due.at
        if age >= timedelta(days=limits.invoice_days):
            text = f"the invoice of {due.experiment} over {usd(due.cents)} is unpaid since {due.at:%Y-%m-%d}"
            yield _problem(kinds.INVOICE_UNPAID, due.experiment, due.at, text, runs=[due.run])


def expiring_quotes(quotes: Iterable[Due], now: datetime, limits: AlertLimits) -> Iterator[Problem]:
    """Open quotes that expire within the limit, or have expired."""
    for due in quotes:
        if due.at - now <= timedelta(days=limits.quote_days):
            word = "expires" if due.at > now else "has expired"
            text = f"the quote for {due.experiment} over {usd(due.cents)} {word} {_when(due.at)}"
            yield _problem(kinds.QUOTE_EXPIRING, due.experiment, now, text, runs=[due.run])


def unattended_money(items: Iterable[OpenItem], now: datetime, limits: AlertLimits) -> Iterator[Problem]:
    """Open money of which no waiting run takes care: invoices from their limit on, quotes before theirs, the rest after a day."""
    for item in items:
        subject, amount = item.experiment_id or item.order_key, usd(item.amount_cents)
        about = f"{item.name} of campaign {item.campaign_id}"
        advice = _COLLECT if item.kind is OpenKind.TO_DELIVER else item.remark or "Look at its page"
        step = ": ".join(filter(None, [advice, item.url]))
        age = now - item.since
        if item.kind is OpenKind.TO_PAY and age >= timedelta(days=limits.invoice_days):
            text = f"the invoice of {about} over {amount} is unpaid since {item.since:%Y-%m-%d}, and no run waits for it"
            yield _problem(kinds.INVOICE_UNPAID, subject, item.since, text, next_step=step)
        elif (
            item.kind is OpenKind.QUOTE
            and item.until
            and item.until - now <= timedelta(days=limits.quote_days)
        ):
            text = f"the quote for {about} over {amount} expires {_when(item.until)}, and no run waits for it"
            yield _problem(kinds.QUOTE_EXPIRING, subject, now, text, next_step=step)
        elif item.kind not in {OpenKind.TO_PAY, OpenKind.QUOTE} and age >= timedelta(days=1):
            text = f"{about}, {amount}, is {WORDS[item.kind]}, and no run waits for it"
            yield _problem(kinds.MONEY_OPEN, subject, item.since, text, next_step=step)


def near_deadlines(deadlines: Iterable[Due], now: datetime, limits: AlertLimits) -> Iterator[Problem]:
    """Experiments that still wait shortly before their deadline."""
    for due in deadlines:
        if due.at - now <= timedelta(days=limits.deadline_days):
            text = f"{due.experiment} has no complete results, and its deadline is {_when(due.at)}"
            yield _problem(kinds.DEADLINE_NEAR, due.experiment, now, text, runs=[due.run])


def expiring_token(
    block: str, expires: datetime | None, now: datetime, limits: AlertLimits
) -> Iterator[Problem]:
    """The token of a credentials block expires within the limit."""
    if expires is not None and expires - now <= timedelta(days=limits.token_days):
        word = "expires" if expires > now else "has expired"
        yield _problem(
            kinds.TOKEN_EXPIRING,
            block,
            now,
            f"the token of credentials block {block} {word} {_when(expires)}",
        )


def failed_service(block: str, error: Exception, now: datetime, runs: Sequence[str] = ()) -> list[Problem]:
    """Why the experiments of a credentials block could not be read: its token is refused, or the service is away."""
    if isinstance(error, Unauthorized | Forbidden):
        text = f"the service refuses the token of credentials block {block}: {_sentence(error)}"
        return [_problem(kinds.TOKEN_EXPIRING, block, now, text, runs=runs)]
    if isinstance(error, AssayError) and error.retriable:
        text = f"the service cannot be read with credentials block {block}: {_sentence(error)}"
        return [_problem(kinds.SERVICE_AWAY, block, now, text, runs=runs)]
    return []


def low_wallet(block: str, cents: int | None, now: datetime, limits: AlertLimits) -> Iterator[Problem]:
    """A wallet with less than the limit; None if its node does not tell."""
    if cents is None:
        text = f"the balance of wallet {block} cannot be read"
        step = "Look whether the node of the wallet block answers"
        yield _problem(kinds.WALLET_LOW, block, now, text, next_step=step)
    elif cents < limits.wallet_cents:
        text = f"wallet {block} holds {usd(cents)}, less than {usd(limits.wallet_cents)}"
        yield _problem(kinds.WALLET_LOW, block, now, text)


def reached_cap(run: str, run_id: str, cap: str, since: datetime) -> Problem:
    """A run that asks a person because of a cap."""
    text = f"run {run} would spend more than its cap of {cap}, and asks"
    return _problem(kinds.CAP_REACHED, run_id, since, text, runs=[run])


def refusing_archive(location: str, error: Exception, now: datetime, runs: Sequence[str]) -> Problem:
    """An archive whose probe fails."""
    text = f"archive {location}, which {_count(runs)} will write to, refuses: {_sentence(error)}"
    return _problem(kinds.ARCHIVE_REFUSING, location, now, text, runs=runs)


def stuck_run(run: str, run_id: str, since: datetime, text: str, next_step: str) -> Problem:
    """A run that does not get on; `text` goes on after its name."""
    return _problem(kinds.RUN_STUCK, run_id, since, f"run {run} {text}", next_step=next_step, runs=[run])


def open_order(run: str, subject: str, since: datetime, text: str) -> Problem:
    """A run that has failed with an open order; `text` goes on after its name."""
    return _problem(kinds.ORDER_OPEN, subject, since, f"run {run} {text}", runs=[run])


def deleted_run(item: OpenItem, run: str) -> Problem:
    """An open order whose run was deleted."""
    text = f"run {run} was deleted, and no other one waits for its order: {item.name} of campaign {item.campaign_id}"
    costs = "" if item.amount_cents is None else f"{usd(item.amount_cents)}, "
    return _problem(kinds.RUN_DELETED, item.order_key, item.since, f"{text} ({costs}{WORDS[item.kind]})")


def _problem(
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


def _count(runs: Sequence[str]) -> str:
    return f"run {runs[0]}" if len(runs) == 1 else f"{len(runs)} runs"


def _sentence(error: Exception) -> str:
    return shortened(str(error), 600).rstrip(".")


def _when(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC" if moment else "never"
