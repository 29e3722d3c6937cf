"""`prefect-assay cancel`: cancels the runs of a campaign or a loop, and says what remains of each experiment."""

import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Final, assert_never
from uuid import UUID

import typer
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import FlowRun
from rich.text import Text

from prefect_assay.blocks.of_runs import archive_of
from prefect_assay.books import known_archive_id
from prefect_assay.cli.campaigns.find import children_of, parents_of, with_children
from prefect_assay.cli.failures import FAILED
from prefect_assay.cli.loops.schedule import active_schedule, end_schedule
from prefect_assay.cli.open_money import as_json as money_as_json
from prefect_assay.cli.open_money import find_open_money, show_open_money
from prefect_assay.cli.output import TerminalConsole, plain, plain_table, print_json
from prefect_assay.cli.prefect_api import api_errors, report_unreadable, require_api
from prefect_assay.errors import AssayError, InputError, NotFound
from prefect_assay.looping import of_designs_address
from prefect_assay.models.billing import usd
from prefect_assay.models.open_money import OpenKind, OpenMoney
from prefect_assay.models.vocabulary import ExperimentStatus
from prefect_assay.models.words import in_words
from prefect_assay.runs.queries import is_experiment
from prefect_assay.runs.states import cancel, has_ended, is_open
from prefect_assay.runs.tags import ARCHIVE_TAG, CAMPAIGN_TAG, EXPERIMENT_CODE_LABEL, tag_values
from prefect_assay.sweeping.cancellations import SettledCancellation, cancel_children, settle_canceled_run
from prefect_assay.sweeping.settle_cancellation import CanceledOrderState, CancellationReport
from prefect_assay.tasks.collate import kept_plan

_PATIENCE_SECONDS: Final = 60.0  # for a worker to stop the processes of runs
_POLL_SECONDS: Final = 1.0
_SWEEP: Final = "the sweep reports what remains"


@dataclass(frozen=True, kw_only=True)
class Remains:
    """What remains of one experiment: a word for programs, a sentence for people, and what is billed without VAT."""

    run: str
    flow_run_id: str
    experiment: str | None
    outcome: str
    text: str
    billed_cents: int | None = None
    paid: bool = False


def cancel_runs(which: str, *, yes: bool, as_json: bool, even_if_shared: bool = False) -> None:
    """Cancel every run of a campaign or a loop that has not ended, and print what remains of each experiment.

    The schedule of a loop is deactivated first: it would go on with the canceled round, and order again. An order that a run
    of another Prefect home works on is left alone, unless `even_if_shared`.

    Raises:
        NotFound: there is no such campaign, loop or run.
        InputError: everything has ended and no schedule is active, or there is no terminal to confirm it.
        SystemExit: with 1, if it is not confirmed.
    """
    require_api()
    with api_errors(), get_client(sync_client=True) as client:
        schedule = active_schedule(client, which)
        try:
            found = with_children(client, which)
        except NotFound:
            if schedule is None:
                raise
            found = []
        running = [run for run in found if is_open(run)]
        canceled = any(run.state and (run.state.is_cancelled() or run.state.is_cancelling()) for run in found)
        if not running and not canceled and schedule is None:
            ended = ", ".join(sorted({_state(run) for run in found}))
            raise InputError(
                f"every run of {which} has ended ({ended}); there is nothing to cancel. What is ordered and not paid: "
                f"prefect-assay status {which}"
            )
        if (running or schedule) and not yes:
            _confirm(running, scheduled=schedule is not None)
        if schedule is not None:
            end_schedule(client, schedule)
        lines = (
            _cancel(client, parents_of(client, which), alone=even_if_shared) if running or canceled else []
        )
        others = _other_schedules(client, found)
        money = find_open_money(client).of(_campaigns(found))
        report_unreadable(client)
    if as_json:
        shown = {
            "experiments": [asdict(line) for line in lines],
            "paid_cents": sum(money.paid.values()),
            "open_money": money_as_json(money),
            "schedule_deactivated": schedule is not None,
            "schedules_active": others,
        }
        print_json(shown)
        return
    if running or canceled:
        _show(which, lines, money)
    console = plain()
    if schedule is not None:
        console.print(
            f"The schedule of the loop {which} is deactivated; `prefect-assay loop {which} ... --cron` activates it again."
        )
    for loop_id in others:
        console.print(
            f"The schedule of the loop {loop_id} stays active; end it: prefect-assay cancel {loop_id}"
        )


def _campaigns(found: Sequence[FlowRun]) -> set[str]:
    """The campaigns of these runs, also of those that have ended."""
    tagged = {name for run in found for name in tag_values(run.tags, CAMPAIGN_TAG)}
    return tagged | {str(run.parameters["campaign_id"]) for run in found if run.parameters.get("campaign_id")}


def _other_schedules(client: SyncPrefectClient, runs: Sequence[FlowRun]) -> list[str]:
    """The loops of these runs that a schedule will start again, and a canceled round with them."""
    loops = filter(None, map(_loop_of, runs))
    return [loop_id for loop_id in sorted(set(loops)) if active_schedule(client, loop_id)]


def _loop_of(run: FlowRun) -> str | None:
    """The loop that this run is, or a round of."""
    round_of = of_designs_address(str(run.parameters.get("designs")))
    return round_of[0] if round_of else run.parameters.get("loop_id")


def _cancel(client: SyncPrefectClient, runs: list[FlowRun], *, alone: bool = False) -> list[Remains]:
    """From the parents to their experiments: a canceled parent starts nothing more, and cancels what only it needs."""
    lines: list[Remains] = []
    while runs:
        started: dict[UUID, FlowRun] = {}  # parents may share a child
        for run in _ended(client, runs):
            if is_experiment(run):
                lines.append(_remains(client, run, alone=alone))
                continue
            if not has_ended(run):
                lines.append(_line(run, "canceling", f"its worker has not stopped it yet; {_SWEEP}"))
            if has_ended(run) and run.state is not None and run.state.is_cancelled():
                settle_canceled_run(client, run, datetime.now(UTC))
            elif not is_open(run):
                cancel_children(client, run)
            started |= {child.id: child for child in children_of(client, run)}
        lines += [
            _line(run, "goes on", "goes on: another run waits for it, or somebody has started it again")
            for run in started.values()
            if is_open(run)
        ]
        runs = [run for run in started.values() if not is_open(run)]
    return lines


def _ended(client: SyncPrefectClient, runs: list[FlowRun]) -> list[FlowRun]:
    """Cancel the open runs, also one that crashes meanwhile, until all have ended or the patience is over."""
    end = time.monotonic() + _PATIENCE_SECONDS
    while True:
        for run in filter(is_open, runs):
            cancel(client, run)
        runs = [client.read_flow_run(run.id) for run in runs]
        if all(map(has_ended, runs)) or time.monotonic() > end:
            return runs
        time.sleep(_POLL_SECONDS)


def _remains(client: SyncPrefectClient, run: FlowRun, *, alone: bool = False) -> Remains:
    if not has_ended(run):
        return _line(run, "canceling", f"its worker has not stopped it yet; {_SWEEP}")
    if run.state is not None and not run.state.is_cancelled():
        return _line(run, "ended", f"had ended as {_state(run)}")
    try:
        if not _archive_is_here(run):
            return _line(run, "canceled", f"this machine does not reach its archive; {_SWEEP}")
        settled = settle_canceled_run(client, run, datetime.now(UTC), alone=alone)
    except AssayError as error:
        return _line(run, "canceled", f"{error}; {_SWEEP}")
    return _of(run, settled) if settled else _line(run, "canceled", _SWEEP)


def _archive_is_here(run: FlowRun) -> bool:
    """Whether this machine sees the run's archive: a folder of the same name elsewhere has other books."""
    archive = archive_of(run)
    if tagged := tag_values(run.tags, ARCHIVE_TAG):  # since its order
        return known_archive_id(archive.get_store(), archive.prefix) in tagged
    return kept_plan(archive, str(run.parameters.get("campaign_id"))) is not None


def _of(run: FlowRun, settled: SettledCancellation) -> Remains:
    remains = settled.remains
    invoice = remains.payment.invoice
    text = _text(remains)
    if settled.shared_with:
        text += f"; {', '.join(settled.shared_with)} goes on with the order"
    if settled.elsewhere:
        text += ". If that home is gone for good, cancel again with --even-if-shared"
    return _line(
        run,
        str(remains.state),
        text,
        experiment=remains.order.experiment_code or remains.order.experiment_id if remains.order else None,
        billed_cents=invoice.amount if invoice and not remains.must_not_be_paid else None,
        paid=remains.payment.paid,
    )


def _text(remains: CancellationReport) -> str:  # noqa: PLR0911 - one text per state
    match remains.state:
        case CanceledOrderState.NOTHING:
            return "not ordered: nothing is billed"
        case CanceledOrderState.DRAFT:
            return "a draft at the laboratory: nothing is billed"
        case CanceledOrderState.QUOTE_PENDING:
            return "its quote is still to come: nothing is billed unless somebody accepts it"
        case CanceledOrderState.QUOTE_OPEN:
            price = usd(remains.quote.total if remains.quote else None)
            return f"its quote over {price} is open: nothing is billed unless somebody accepts it"
        case CanceledOrderState.QUOTE_REJECTED:
            return "withdrawn, its quote is rejected: nothing is billed"
        case CanceledOrderState.QUOTE_ENDED:
            return "its quote has expired: nothing is billed"
        case CanceledOrderState.INVOICED:
            return _billed(remains)
        case CanceledOrderState.CANCELED:
            return "canceled by the laboratory"
        case never:
            assert_never(never)


def _billed(remains: CancellationReport) -> str:
    invoice = remains.payment.invoice
    amount = usd(invoice.amount if invoice else None)
    doubt = "; a payment was sent and may have been made" if remains.payment.in_doubt else ""
    if remains.must_not_be_paid:
        return f"canceled by the laboratory; its invoice over {amount} must not be paid{doubt}"
    if remains.must_be_refunded:
        return f"canceled by the laboratory, and {amount} is paid: ask it for a refund"
    if remains.payment.paid:
        return f"ordered and billed: {amount}, paid; run the campaign again to get its results"
    billed = f"ordered and billed: {amount}, invoice {in_words(invoice.status) if invoice else 'not listed'}{doubt}"
    if remains.order is None:
        return billed
    if remains.order.status == ExperimentStatus.DONE:
        return f"{billed}; the work is done: pay it"
    status = in_words(remains.order.status)
    return f"{billed}; the laboratory may be at work ({status}): ask it whether it can stop, or pay it"


def _line(
    run: FlowRun,
    outcome: str,
    text: str,
    *,
    experiment: str | None = None,
    billed_cents: int | None = None,
    paid: bool = False,
) -> Remains:
    code = run.labels.get(EXPERIMENT_CODE_LABEL)
    return Remains(
        run=run.name,
        flow_run_id=str(run.id),
        experiment=experiment or (str(code) if code else None),
        outcome=outcome,
        text=text,
        billed_cents=billed_cents,
        paid=paid,
    )


def _confirm(running: Sequence[FlowRun], *, scheduled: bool) -> None:
    if not sys.stdin.isatty():
        raise InputError(
            "nothing was canceled: there is no terminal to confirm it; repeat the command with --yes"
        )
    console = plain()
    for run in running:
        console.print(f"{run.name}  {_state(run)}")
    if running:
        console.print(
            "The laboratory does and bills what it has an order for; canceling a run withdraws open quotes only."
        )
    what = [f"cancel {'these runs' if len(running) > 1 else 'this run'}"] if running else []
    what += ["deactivate the loop's schedule"] if scheduled else []
    if not typer.confirm(f"{' and '.join(what).capitalize()}?"):
        TerminalConsole(stderr=True).print("Nothing was canceled.")
        raise SystemExit(FAILED)


def _show(which: str, lines: Sequence[Remains], money: OpenMoney) -> None:
    console = TerminalConsole(highlight=False)
    if not lines and not money.paid and not money.items:
        console.print(
            f"{which} is canceled. It had started no experiment: nothing was ordered.", markup=False
        )
        return
    table = plain_table()
    table.add_column("Run", overflow="fold")
    table.add_column("Experiment", overflow="fold")
    table.add_column("What remains", overflow="fold", ratio=1)
    for line in lines:
        table.add_row(Text(line.run), Text(line.experiment or ""), Text(line.text))
    if lines:
        console.print(table)
    # Runs may share an order. The logs also have those of runs that had ended; the lines those of an archive elsewhere.
    due, paid = (
        {
            line.experiment: line.billed_cents
            for line in lines
            if line.billed_cents is not None and line.paid is wanted
        }
        for wanted in (False, True)
    )
    unpaid = max(money.cents(OpenKind.TO_PAY), sum(due.values()))
    settled = max(sum(money.paid.values()), sum(paid.values()))
    if unpaid or settled:
        plain().print(f"Billed together: {usd(unpaid + settled)}, of which {usd(settled)} is paid.")
    elif money.complete:
        plain().print("Nothing is billed.")
    show_open_money(money)


def _state(run: FlowRun) -> str:
    return (run.state.name if run.state else None) or "unknown"
