"""`prefect-assay status` and the live view of `prefect-assay run --wait`: campaigns and loops, from their logs.

One column takes all sentences, so that whole reasons and links fit a terminal of 80 columns.
"""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import FlowRun
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from prefect_assay.campaigns.approval.terms import describe_account
from prefect_assay.campaigns.flow_results import LoopReport
from prefect_assay.campaigns.progress_artifact import expected_day, format_day
from prefect_assay.campaigns.runs.queries import newest_runs
from prefect_assay.campaigns.status import (
    CampaignView,
    ExperimentView,
    Progress,
    QuestionView,
    list_campaigns,
    newest_first,
    view_of,
)
from prefect_assay.campaigns.sweep.open_money import read_open_money
from prefect_assay.cli.archives.archive import names_folder
from prefect_assay.cli.campaigns.find import (
    PLAYED_FLOWS,
    Archives,
    find_named,
    open_archives,
    played_by,
)
from prefect_assay.cli.loops.status import read_rounds, rounds_table
from prefect_assay.cli.open_money import as_json as money_as_json
from prefect_assay.cli.open_money import show_open_money
from prefect_assay.cli.output import TerminalConsole, make_plain_console, plain_table, print_json
from prefect_assay.cli.prefect_api import api_errors, report_unreadable, require_api, run_url
from prefect_assay.errors import ArchiveUnavailable, shortened
from prefect_assay.orders.ledger import Ledgers
from prefect_assay.orders.ledger.campaign_log import StartedKind, Terms
from prefect_assay.orders.ledger.open_money import OpenMoney, merge_open_money, of_logs, read_logs
from prefect_assay.orders.stages import OVER, Stage
from prefect_assay.service.models.billing import usd
from prefect_assay.service.words import in_words, many

_WATCH_SECONDS: Final = 5.0
_STYLES: Final = {
    Progress.OPEN: "cyan",
    Progress.ASKS: "yellow",
    Progress.COMPLETE: "green",
    Progress.INCOMPLETE: "red",
    Progress.STOPPED: "red",
}


@dataclass(frozen=True)
class StatusView:
    """What a command shows."""

    views: Sequence[CampaignView]
    runs: Sequence[FlowRun] = ()  # that have begun no log
    rounds: Sequence[LoopReport] = ()
    money: OpenMoney = OpenMoney()  # noqa: RUF009 - frozen

    @property
    def is_over(self) -> bool:
        """Whether nothing of it changes any more."""
        return all(view.is_over for view in self.views) and all(
            run.state is not None and run.state.is_final() for run in self.runs
        )

    def as_json(self) -> dict[str, Any]:
        """All of it for programs."""
        shown: dict[str, Any] = {"campaigns": [view.model_dump(mode="json") for view in self.views]}
        shown["runs_without_log"] = [_run_as_json(run) for run in self.runs]
        if self.rounds:
            shown["loops"] = [report.model_dump(mode="json") for report in self.rounds]
        shown["open_money"] = money_as_json(self.money)
        return shown

    def table(self) -> RenderableType:
        """All of it for people."""
        return Group(campaigns_table(self), *(rounds_table(report) for report in self.rounds))


def show_status(
    which: str | None,
    *,
    archive: str | None,
    limit: int,
    every: bool,
    watch: bool,
    as_json: bool,
) -> None:
    """Print one campaign or loop, also by its flow run; or the open ones and the newest; `every` prints all of the archives.

    Raises:
        NotFound: there is no such campaign, loop or run.
        InputError: several archives have it.
        ConfigurationError: no API is configured, or a block does not exist.
        SystemExit: an archive cannot be read, so that campaigns may be missing.
    """
    with contextlib.ExitStack() as stack:
        client: SyncPrefectClient | None = None
        if archive is None or not names_folder(archive):
            require_api()
            stack.enter_context(api_errors())
            client = stack.enter_context(get_client(sync_client=True))
        archives = open_archives(client, archive)

        def read() -> StatusView:
            if which:
                return _read_one(client, archives, which)
            return _read_all(client, archives, limit, every=every)

        status = read()
        unreadable = report_unreadable(client) if client else []
        if as_json:
            extra = {"unreadable": unreadable} if unreadable else {}
            print_json(status.as_json() | extra | archives.failures_as_json())
        else:
            _print_status(status, archives, read, whole=which is not None, watch=watch)
        if not which:
            archives.exit_on_failure()


def _print_status(
    status: StatusView, archives: Archives, read: Callable[[], StatusView], *, whole: bool, watch: bool
) -> None:
    console = TerminalConsole(highlight=False)
    if watch:
        status = _watch_status(status, read)
    if not status.views and not status.runs and not archives.failures:
        console.print("No campaigns yet. Start one: prefect-assay run --help")
    elif (status.views or status.runs) and not (
        watch and console.is_terminal
    ):  # there the table stands already
        console.print(status.table())
    show_open_money(status.money)
    for line in [*whole_lines(status), *(_account_lines(status) if whole else ())]:
        make_plain_console().print(line)
    archives.print_failures("campaigns may be missing here")


def _read_one(client: SyncPrefectClient | None, archives: Archives, which: str) -> StatusView:
    named = find_named(client, archives, which)
    logs = list(named.logs)
    rounds = []
    for log in named.logs:
        if log.what is StartedKind.LOOP:
            report = read_rounds(archives.place_of(log).block, log)
            rounds += [report] if report.rounds else []
            # The rounds that are measured are lines of the loop.
            names = (one.campaign_id for one in report.rounds if not one.table)
            logs += [
                other
                for name in names
                for other in archives.logs_of(name, [StartedKind.CAMPAIGN])
                if other.store is log.store
            ]
    views = [view_of(log) for log in logs]
    rounds_of_loop = (one.campaign_id for report in rounds for one in report.rounds)
    money = _read_open_money(client, archives).select_campaigns(
        [*(view.name for view in views), *rounds_of_loop]
    )
    return StatusView(views, named.runs, rounds, money=money)


def _read_all(client: SyncPrefectClient | None, archives: Archives, limit: int, *, every: bool) -> StatusView:
    views = {
        view.location: view
        for view in archives.collect(
            lambda place: list_campaigns(place.store, place.prefix, open_only=not (every or client is None))
        )
    }
    runs: list[FlowRun] = []
    if client is not None:
        # The newest that are over are not in the index of open ones, so their runs name them.
        newest = [run for flow in PLAYED_FLOWS for run in newest_runs(client, flow, limit)]
        runs = [run for run in newest if not played_by(run)]
        # By its run: another archive may have a campaign of the same id.
        shown = {(view.kind, view.name, one.run) for view in views.values() for one in view.runs}
        for run in newest:
            for kind, name in played_by(run):
                if (kind, name, str(run.id)) in shown:
                    continue
                logs = archives.logs_of(name, [kind])
                views.update((log.location, view_of(log)) for log in logs)
                shown.update((kind, name, one) for log in logs for one in log.state.runs)
                if not logs and run.state is not None and not run.state.is_final():
                    archives.failures[f"of {kind} {name}"] = ArchiveUnavailable(
                        f"run {run.name} carries it, and no saved archive has its log; mount the archive"
                    )
    return StatusView(newest_first(list(views.values())), runs, money=_read_open_money(client, archives))


def _read_open_money(client: SyncPrefectClient | None, archives: Archives) -> OpenMoney:
    if client is not None:
        return read_open_money(client)
    ledgers = archives.collect(lambda place: Ledgers.list_all(place.store, place.prefix))
    return merge_open_money(of_logs(*read_logs(one)) for one in ledgers)


def campaigns_table(status: StatusView) -> Table:
    """A line per campaign with its experiments below; what there is to say in one column."""
    built = plain_table()
    built.add_column("Campaign", overflow="fold", min_width=18, max_width=34)
    built.add_column("State", no_wrap=True)
    built.add_column("Age", no_wrap=True)
    built.add_column("", overflow="fold", ratio=1)
    for view in status.views:
        name = Text(title_of(view))
        if view.run and (url := run_url(view.run.run)):
            name.stylize(f"link {url}")
        state = Text(view.progress, style=_STYLES[view.progress])
        owed = status.money.select_campaigns([view.name]).line
        lines = [
            *_list_sentences(view),
            *([f"open: {owed}"] if owed else []),
        ]
        built.add_row(name, state, Text(_format_age(view)), Text("\n".join(lines)))
        for one in view.experiments:
            below = Text("\n".join(_experiment_sentences(one, view.terms)))
            built.add_row(Text(f"  {_experiment_title(view, one)}"), "", "", below)
    for run in status.runs:
        name = Text(run.name)
        if url := run_url(run.id):
            name.stylize(f"link {url}")
        state_name = (run.state.name if run.state else None) or "unknown"
        built.add_row(name, Text(state_name), "", Text(_run_sentence(run)))
    return built


def title_of(view: CampaignView) -> str:
    """The name of a campaign or a loop for people."""
    return view.name if view.kind is StartedKind.CAMPAIGN else f"loop {view.name}"


def _experiment_title(view: CampaignView, one: ExperimentView) -> str:
    count = len(view.experiments)
    return one.experiment_code or (f"{one.number}/{count}" if one.number else f"order {one.order_key}")


def _list_sentences(view: CampaignView) -> Iterator[str]:
    """What a campaign waits for or how it ended, what it asks, its money, and its restarts."""
    if view.stopped_by:
        yield f"canceled by {view.stopped_by}{f', {format_day(view.stopped_at)}' if view.stopped_at else ''}"
    if view.outcome:
        yield view.outcome
    elif view.experiments:
        stages = [one.stage for one in view.experiments]
        yield ", ".join(f"{stages.count(stage)} {stage}" for stage in dict.fromkeys(stages))
    for question in view.questions:
        cents = question.amount_cents
        amount = "" if cents is None or usd(cents) in question.subject else f" {usd(cents)}."
        yield f"asks: {question.subject}{amount} Answer it by {question.expires_at:%Y-%m-%d %H:%M} UTC, by the service's clock"
    if view.invoiced_cents or view.paid_cents:
        yield f"billed {usd(max(view.invoiced_cents, view.paid_cents))}, paid {usd(view.paid_cents)}"
    if view.results_expected_at:
        yield f"next results about {expected_day(view.results_expected_at, view.terms)}"
    if view.restarts and view.run:
        why = f": {view.run.why}" if view.run.why else ""
        yield f"the sweep has started {many(view.restarts, 'further run')} of it{why}"
    yield from view.notes


def _experiment_sentences(one: ExperimentView, terms: Terms | None) -> Iterator[str]:
    stage = str(one.stage)
    if one.stage not in OVER:
        stage += f"; when last read: {in_words(one.service_status)}" if one.service_status else ""
        stage += (
            f"; results expected {expected_day(one.expected, terms)}"
            if one.expected and one.stage is Stage.LABORATORY
            else ""
        )
    yield stage
    money = []
    if one.approved_cents is not None:
        money.append(f"approved {usd(one.approved_cents)}")
    if one.invoiced_cents is not None:
        money.append(f"billed {usd(one.invoiced_cents)}")
    if one.paid_cents is not None:
        money.append(f"paid {usd(one.paid_cents)}")
    if money:
        yield ", ".join(money)
    if one.problem and one.stage not in {Stage.MEASURED, Stage.ASKS}:  # a question is shown above
        yield one.problem


def _run_sentence(run: FlowRun) -> str:
    if run.state is not None and run.state.is_final():
        return shortened(f"ended before it began a campaign: {run.state.message or 'no reason'}")
    waits = run.state is None or run.state.is_scheduled()
    return f"has not begun a campaign yet{': it waits for a worker' if waits else ''}"


def _run_as_json(run: FlowRun) -> dict[str, Any]:
    return {
        "flow_run_id": str(run.id),
        "name": run.name,
        "state": run.state.name if run.state else None,
        "message": run.state.message if run.state else None,
        "url": run_url(run.id),
    }


def whole_lines(status: StatusView) -> list[str]:
    """What a person copies, each on one line that no table folds: the report, and the command of an answer."""
    lines = []
    for view in status.views:
        if view.report:
            lines.append(f"Report of {title_of(view)}: {view.report}")
        lines += [
            f"Answer of {view.name}: prefect-assay approve {view.name} {_format_options(question)}"
            for question in view.questions
        ]
    return lines


def _format_options(question: QuestionView) -> str:
    """The options that name exactly what is shown: a question that has changed since is not answered."""
    cents = question.amount_cents
    amount = "" if cents is None else f" --usd {cents // 100}.{cents % 100:02d}"
    return f"--question {question.question_id} --revision {question.revision}{amount}"


def _account_lines(status: StatusView) -> Iterator[str]:
    """Under which terms, when and by whom each was started, its runs and where its log is."""
    for view in status.views:
        terms = view.terms
        yield f"{title_of(view)}:"
        if terms:
            yield f"  {describe_account(terms)}"
        if view.started:
            by = f" by {view.started_by}" if view.started_by else ""
            from_deployment = f", deployment {view.deployment}" if view.deployment else ""
            yield f"  started: {view.started:%Y-%m-%d %H:%M} UTC{by}{from_deployment}"
        for run in view.runs:
            yield f"  run: {run.name} {run_url(run.run) or run.run}{', started by the sweep' if run.restarted else ''}"
        yield f"  log: {view.location}"
    for waiting in status.runs:
        if url := run_url(waiting.id):
            yield f"{waiting.name}: {url}"


def _watch_status(status: StatusView, read: Callable[[], StatusView]) -> StatusView:
    """Show the table again and again, until everything has ended or Ctrl-C, which ends nothing else."""
    console = TerminalConsole(highlight=False)
    with (
        contextlib.suppress(KeyboardInterrupt),
        Live(status.table(), console=console if console.is_terminal else TerminalConsole(quiet=True)) as live,
    ):
        while not status.is_over or not (status.views or status.runs):
            time.sleep(_WATCH_SECONDS)
            status = read()
            live.update(status.table())
    return status


def _format_age(view: CampaignView) -> str:
    """How long ago it was started, or how long it took."""
    if view.started is None:
        return ""
    age = (view.ended or datetime.now(UTC)) - view.started
    minutes = int(age.total_seconds()) // 60
    if minutes < 2 * 60:
        return f"{minutes} min"
    return f"{minutes // 60} h" if minutes < 48 * 60 else f"{age.days} d"
