"""`prefect-assay status` and the live view of `prefect-assay run --wait`: what is known of the runs, as a table.

One column takes all sentences, so that whole reasons and links fit a terminal of 80 columns.
"""

import contextlib
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient, get_client
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from prefect_assay.cli.campaigns.known_runs import CAMPAIGN, EXPERIMENT, RunLine, named, recent, with_service
from prefect_assay.cli.failures import FAILED
from prefect_assay.cli.loops.status import loop_rounds, rounds_table
from prefect_assay.cli.open_money import as_json as money_as_json
from prefect_assay.cli.open_money import find_open_money, show_open_money
from prefect_assay.cli.output import TerminalConsole, plain, plain_table, print_json
from prefect_assay.cli.prefect_api import api_errors, load_block, report_unreadable, require_api
from prefect_assay.errors import NotFound
from prefect_assay.models.billing import usd
from prefect_assay.models.open_money import OpenMoney
from prefect_assay.models.report import LoopReport
from prefect_assay.models.words import in_words
from prefect_assay.reporting.progress import day

_POLL_SECONDS: Final = 2.0
_WATCH_SECONDS: Final = 5.0
_STYLES: Final = {
    "Completed": "green",
    "Failed": "red",
    "Crashed": "red",
    "Cancelled": "red",
    "Suspended": "cyan",
}
# Prefect's words before an exception's message, and the words for people for some classes of it.
_EXCEPTION: Final = re.compile(r"Flow run encountered an exception: (?P<kind>\w+): ")
_ENDS: Final = {
    "ApprovalRejected": "Rejected",
    "QuoteRejected": "Rejected",
    "ApprovalExpired": "Not answered",
    "QuoteExpired": "Quote expired",
    "ExperimentCanceled": "Canceled",
}
_REPORT: Final = "; report: "  # before the command that ends a campaign's message
# How a suspended run's message begins that only repeats what it waits for.
_LABORATORY: Final = "in the laboratory: "


@dataclass(frozen=True)
class _Known:
    lines: Sequence[RunLine]
    rounds: LoopReport | None
    money: OpenMoney = OpenMoney()  # noqa: RUF009 - frozen

    def as_json(self) -> dict[str, Any]:
        shown: dict[str, Any] = {"runs": [line.as_json() for line in self.lines]}
        if self.rounds is not None:
            shown["loop"] = self.rounds.model_dump(mode="json")
        shown["open_money"] = money_as_json(self.money)
        return shown

    def table(self) -> RenderableType:
        shown: list[RenderableType] = [runs_table(self.lines, self.money)]
        if self.rounds is not None:
            shown.append(rounds_table(self.rounds))
        return Group(*shown)


def show_status(
    which: str | None, *, credentials: str | None, limit: int, watch: bool, as_json: bool
) -> None:
    """Print the runs of one loop, one campaign, one flow run, or the newest of all kinds; `watch` prints them again and again.

    Raises:
        NotFound: there is no such campaign, loop or run.
        ConfigurationError: no API is configured, or the credentials block does not exist.
    """
    require_api()
    with api_errors(), get_client(sync_client=True) as client:

        def read() -> _Known:
            return _read(client, which, credentials=credentials, limit=limit)

        known = read()
        unreadable = report_unreadable(client)
        if watch and not as_json:
            known = _watch(known, read)
    if as_json:
        print_json(known.as_json() | ({"unreadable": unreadable} if unreadable else {}))
        return
    console = TerminalConsole(highlight=False)
    if not known.lines:
        console.print("No campaigns yet. Start one: prefect-assay run --help")
        show_open_money(known.money)
        return
    if not (watch and console.is_terminal):  # there the table stands already
        console.print(known.table())
    show_open_money(known.money)
    for said in [*whole_lines(known.lines), *_links(known, whole=bool(which))]:
        plain().print(said)


def _links(known: _Known, *, whole: bool) -> Iterator[str]:
    """The unpaid invoices of archives that are not here; with `whole`, the page of each run."""
    listed = {item.experiment_id for item in known.money.items}
    for line in known.lines:
        if line.open_invoice and not line.ended and line.experiment_id not in listed:
            yield f"Unpaid invoice of {_title(line)}:\n  {line.open_invoice}"
    for line in known.lines:
        if whole and line.url:
            yield f"{line.name}: {line.url}"


def follow(run_id: UUID, *, as_json: bool) -> None:
    """Show the campaign's runs until it ends. Ctrl-C leaves the campaign running.

    Raises:
        SystemExit: with 1, when the campaign did not complete.
    """
    console = TerminalConsole(stderr=True, highlight=False)
    with api_errors(), get_client(sync_client=True) as client, Live(console=console) as live:
        while True:
            lines = named(client, str(run_id))
            live.update(runs_table(lines))
            if lines[0].ended:
                break
            time.sleep(_POLL_SECONDS)
    if as_json:
        print_json(_Known(lines, None).as_json())
    else:
        plain().print(f"{_state(lines[0])}: {_said(lines[0].message)}")
        for said in whole_lines(lines[:1]):
            plain().print(said)
    if not lines[0].state.startswith("Completed"):
        raise SystemExit(FAILED)


def runs_table(lines: Iterable[RunLine], money: OpenMoney = OpenMoney()) -> Table:  # noqa: B008 - frozen
    """A line per run, experiments below their campaign; what there is to say of it in one column, with its open money."""
    built = plain_table()
    built.add_column("Campaign", overflow="fold", min_width=18, max_width=34)
    built.add_column("State", no_wrap=True)
    built.add_column("Age", no_wrap=True)
    built.add_column("", overflow="fold", ratio=1)
    lines, later = _without_later_failures(list(lines))
    campaigns = {line.campaign_id for line in lines if line.kind == CAMPAIGN}
    for line in lines:
        below = line.kind == EXPERIMENT and line.campaign_id in campaigns
        name = Text(f"{'  ' if below else ''}{_title(line)}")
        if line.url:
            name.stylize(f"link {line.url}")
        state = Text(_state(line), style=_STYLES.get(line.state, ""))
        owed = money.of([line.campaign_id]).line if line.kind == CAMPAIGN and line.campaign_id else ""
        said = [*_sentences(line), *([f"open: {owed}"] if owed else []), *later.get(line.flow_run_id, ())]
        built.add_row(name, state, Text(_age(line.age)), Text("\n".join(said)))
    return built


def whole_lines(lines: Sequence[RunLine]) -> list[str]:
    """What a person copies, each on one line that no table folds: the command of a report, and that of an answer."""
    said = []
    shown, _ = _without_later_failures(lines)
    for line in shown:
        command = (line.message or "").partition(_REPORT)[2]
        if line.ended and command:
            said.append(f"Report of {_title(line)}: {command}")
        elif line.asks:
            said.append(f"Answer of {_title(line)}: prefect-assay approve {line.flow_run_id}  (or reject)")
    return said


def _without_later_failures(
    lines: Sequence[RunLine],
) -> tuple[list[RunLine], dict[str, list[str]]]:
    """The lines without later starts that failed of a campaign with results, and what to say of them there, by its run's id."""
    done = {line.campaign_id: line for line in lines if line.kind == CAMPAIGN and line.has_results}
    later: dict[str, list[str]] = {}
    kept = []
    for line in lines:
        with_results = done.get(line.campaign_id)
        if line.kind == CAMPAIGN and line.ended and with_results and not line.has_results:
            said = f"another start of it ended {_state(line)}: {_said(line.message)}"
            later.setdefault(with_results.flow_run_id, []).append(said)
        else:
            kept.append(line)
    return kept, later


def _state(line: RunLine) -> str:
    """The state's name, or what a person calls this end."""
    found = _EXCEPTION.search(line.message or "") if line.ended else None
    return _ENDS.get(found["kind"], line.state) if found else line.state


def _said(message: str | None) -> str:
    """A message without Prefect's words, and without the command that is printed whole."""
    return _EXCEPTION.sub("", message or "").partition(_REPORT)[0].strip()


def _read(client: SyncPrefectClient, which: str | None, *, credentials: str | None, limit: int) -> _Known:
    lines = named(client, which) if which else recent(client, limit)
    loops = [line.flow_run_id for line in lines if line.loop_id] if which else []
    rounds = loop_rounds(client, loops)
    measuring = [line.campaign_id for line in rounds.rounds if not line.table] if rounds else []
    for campaign_id in measuring:
        with contextlib.suppress(NotFound):  # not started yet
            lines += named(client, campaign_id)
    if credentials:
        from prefect_assay.blocks import AssayCredentials

        with load_block(AssayCredentials, credentials).get_client() as service:
            lines = with_service(lines, service)
    money = find_open_money(client)
    if which:
        money = money.of(line.campaign_id for line in lines if line.campaign_id)
    return _Known(lines, rounds, money)


def _watch(known: _Known, read: Callable[[], _Known]) -> _Known:
    """Show the table again and again, until everything has ended or Ctrl-C, which ends nothing else."""
    console = TerminalConsole(highlight=False)
    with (
        contextlib.suppress(KeyboardInterrupt),
        Live(known.table(), console=console if console.is_terminal else TerminalConsole(quiet=True)) as live,
    ):
        while not known.lines or not all(line.ended for line in known.lines):
            time.sleep(_WATCH_SECONDS)
            known = read()
            live.update(known.table())
    return known


def _title(line: RunLine) -> str:
    if line.kind == EXPERIMENT:
        return line.experiment_code or line.name
    if line.loop_id:
        return f"loop {line.loop_id}"
    return line.campaign_id or line.name


def _sentences(line: RunLine) -> list[str]:
    """What a run waits for, its dates, its price, and why it ended: each is left out where it is not known."""
    said = []
    if line.waits_for:
        at_work = (line.message or "").removeprefix(_LABORATORY) if _is_at_work(line) else ""
        said.append(f"waits for {line.waits_for}{f': {at_work}' if at_work else ''}")
    elif line.message and line.ended:
        said.append(_said(line.message))
    dates = [f"expected {day(line.expected)}"] if line.expected and not _is_at_work(line) else []
    if line.asks and line.answer_by:
        dates.append(f"answer it by {line.answer_by:%Y-%m-%d %H:%M} UTC")
    elif line.deadline:
        dates.append(f"waits until {day(line.deadline)}")
    price = [usd(line.price_cents)] if line.price_cents is not None else []
    service = [f"service: {in_words(line.service_status)}"] if line.service_status else []
    if further := ", ".join([*price, *dates, *service]):
        said.append(further)
    return said


def _is_at_work(line: RunLine) -> bool:
    return bool(line.waits_for and line.message and line.message.startswith(_LABORATORY))


def _age(age: timedelta | None) -> str:
    if age is None:
        return ""
    minutes = int(age.total_seconds()) // 60
    if minutes < 2 * 60:
        return f"{minutes} min"
    return f"{minutes // 60} h" if minutes < 48 * 60 else f"{age.days} d"
