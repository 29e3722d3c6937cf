"""`prefect-assay cancel`: cancels campaigns and loops by their logs, and says what remains of each order."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeVar

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import DeploymentSchedule, FlowRun
from rich.text import Text

from prefect_assay.campaigns.runs.states import cancel_run, has_ended
from prefect_assay.campaigns.stop import OrderRemains, StopReport, read_round_logs, stop_log
from prefect_assay.campaigns.sweep.open_money import read_open_money
from prefect_assay.campaigns.sweep.saved_blocks import account_of
from prefect_assay.cli.asking import require_consent, user_name
from prefect_assay.cli.campaigns.find import Archives, Named, find_named, name_account, open_archives
from prefect_assay.cli.loops.schedule import active_schedule, end_schedule
from prefect_assay.cli.open_money import as_json as money_as_json
from prefect_assay.cli.open_money import show_open_money
from prefect_assay.cli.output import TerminalConsole, make_plain_console, plain_table, print_json
from prefect_assay.cli.prefect_api import api_errors, require_api
from prefect_assay.errors import ConfigurationError, InputError, NotFound
from prefect_assay.orders.ledger.campaign_log import CampaignLog, StartedKind
from prefect_assay.orders.ledger.open_money import OpenKind, OpenMoney
from prefect_assay.service.models.billing import usd

T = TypeVar("T")

_HOW: Final = "prefect-assay cancel"


def cancel_campaign(which: str, *, archive: str | None, by: str | None, yes: bool, as_json: bool) -> None:
    """Cancel a campaign, a loop, or what a run carries, and print what remains of each order.

    The schedule of a loop is deactivated first. It would not reopen the loop, and would fail at each start.

    Raises:
        NotFound: nothing has this id.
        InputError: everything is over and no schedule is active, or there is no terminal to confirm it.
        SystemExit: with 1, if it is not confirmed; with the code of the error, if an archive cannot be read, so that
            something of this id may go on.
    """
    require_api()
    person = by or user_name()
    with api_errors(), get_client(sync_client=True) as client:
        schedule = active_schedule(client, which)
        archives = open_archives(client, archive)
        named = _find(client, archives, which, or_none=schedule is not None)
        schedule = schedule or _find_schedule(client, named)
        logs = [log for log in named.logs if log.read().over is None or log.state.stopped is not None]
        runs = [run for run in named.runs if not has_ended(run)]
        if not logs and not runs and schedule is None:
            ended = "; ".join(
                f"{log.what} {log.name}: {log.state.over.words}" for log in named.logs if log.state.over
            )
            raise InputError(
                f"{which} is over{f' ({ended})' if ended else ''}; there is nothing to cancel. What is ordered and not paid: "
                f"prefect-assay status {which}"
            )
        if not yes:
            _confirm(logs, runs, scheduled=schedule is not None)
        if schedule is not None:
            end_schedule(client, schedule)
        reports = [_stop(client, log, person) for log in logs]
        for run in runs:
            cancel_run(client, run)
        if runs:
            logs = list(_begun_meanwhile(client, runs, archive))
            reports = [_stop(client, log, person) for log in logs]
        money = read_open_money(client).select_campaigns(
            {name for log in logs for name in _campaigns_of(log)}
        )
    if as_json:
        print_json(
            {
                "canceled": [_as_json(report) for report in reports],
                "runs": [str(run.id) for run in runs],
                "paid_cents": sum(money.paid.values()),
                "open_money": money_as_json(money),
                "schedule_deactivated": schedule is not None,
                **archives.failures_as_json(),
            }
        )
    else:
        _show(reports, runs, money)
        if schedule is not None:
            make_plain_console().print(
                f"The schedule of the loop {schedule.slug} is deactivated; `prefect-assay loop {schedule.slug} ... --cron` "
                "activates it again."
            )
        archives.print_failures(f"what it may have of {which} is still running")
    archives.exit_on_failure()


def _find(client: SyncPrefectClient, archives: Archives, which: str, *, or_none: bool) -> Named:
    try:
        return find_named(client, archives, which)
    except NotFound:
        if not or_none:
            raise
        return Named()  # a loop that its schedule has not started yet


def _find_schedule(client: SyncPrefectClient, named: Named) -> DeploymentSchedule | None:
    """The active schedule of a loop that its run has named."""
    loops = [log.name for log in named.logs if log.what is StartedKind.LOOP]
    return next((one for name in loops if (one := active_schedule(client, name)) is not None), None)


def _begun_meanwhile(
    client: SyncPrefectClient, runs: Sequence[FlowRun], archive: str | None
) -> Iterator[CampaignLog]:
    """The logs that runs have begun before they were canceled. One that begins later sees that its run is canceled."""
    archives = open_archives(client, archive)
    for run in runs:
        with contextlib.suppress(NotFound):
            yield from find_named(client, archives, str(run.id)).logs


def _stop(client: SyncPrefectClient, log: CampaignLog, person: str) -> StopReport:
    """Stop it; where its account is gone, its orders are stopped, and the sweep does the rest."""
    state = log.read()
    account = None
    with contextlib.suppress(ConfigurationError):
        account = account_of(client, state)
    return stop_log(account, log, person=person, how=_HOW)


def _campaigns_of(log: CampaignLog) -> list[str]:
    return [log.name] if log.what is StartedKind.CAMPAIGN else [one.name for one in read_round_logs(log)]


def _confirm(logs: Sequence[CampaignLog], runs: Sequence[FlowRun], *, scheduled: bool) -> None:
    for log in logs:
        again = f"; canceled before, by {log.state.stopped.person}" if log.state.stopped else ""
        make_plain_console().print(f"{log.what} {log.name}{name_account(log.state.terms)}{again}")
    for run in runs:
        make_plain_console().print(f"run {run.name}, which has begun nothing yet")
    if logs:
        make_plain_console().print(
            "Nothing more is ordered, accepted or paid, and open quotes are rejected. What the laboratory has an order for, "
            "it does and bills."
        )
    what = ["cancel this"] if logs or runs else []
    what += ["deactivate the loop's schedule"] if scheduled else []
    require_consent(f"{' and '.join(what).capitalize()}?", nothing="canceled")


def _show(reports: Sequence[StopReport], runs: Sequence[FlowRun], money: OpenMoney) -> None:
    console = TerminalConsole(highlight=False)
    for run in runs:
        nothing = "" if reports else " It had begun nothing: nothing was ordered."
        console.print(f"run {run.name} is canceled.{nothing}")
    for report in reports:
        console.print(f"{report.what.capitalize()} {report.name} is canceled. {report.summary}".rstrip())
        if report.orders:
            console.print(_table(report.orders))
        for one in report.ended:
            console.print(f"{one.line[0].upper()}{one.line[1:]}.")
        for problem in report.problems:
            console.print(f"Not done yet: {problem}")
        if not report.is_settled:
            console.print("The sweep looks again, and reports what has changed.")
    # The ledgers also have the orders of rounds that were over.
    billed = sum(report.billed_cents for report in reports)
    paid = sum(report.paid_cents for report in reports)
    unpaid = max(money.sum_cents(OpenKind.TO_PAY), billed - paid)
    settled = max(sum(money.paid.values()), paid)
    if unpaid or settled:
        make_plain_console().print(
            f"Billed together: {usd(unpaid + settled)}, of which {usd(settled)} is paid."
        )
    elif reports and money.complete and all(report.is_settled for report in reports):
        make_plain_console().print("Nothing is billed.")
    show_open_money(money)


def _table(orders: Sequence[OrderRemains]) -> Any:
    table = plain_table()
    table.add_column("Order", overflow="fold")
    table.add_column("Experiment", overflow="fold")
    table.add_column("What remains", overflow="fold", ratio=1)
    for order in orders:
        table.add_row(Text(order.name), Text(order.experiment or ""), Text(order.line))
    return table


def _as_json(report: StopReport) -> dict[str, Any]:
    return {
        "kind": str(report.what),
        "name": report.name,
        "settled": report.is_settled,
        "problems": list(report.problems),
        "billed_cents": report.billed_cents,
        "paid_cents": report.paid_cents,
        "ended_rounds": [one.model_dump(mode="json") for one in report.ended],
        "experiments": [
            {
                "campaign": order.campaign_id,
                "order": order.order_key,
                "experiment": order.experiment,
                "outcome": str(order.remains.state) if order.remains else "unknown",
                "text": order.line,
                "billed_cents": order.billed_cents,
                "paid": order.is_paid,
            }
            for order in report.orders
        ],
    }
