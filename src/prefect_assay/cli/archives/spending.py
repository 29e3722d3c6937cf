"""`prefect-assay spending`: the orders and payments in an archive's log, for finance as CSV, and what counts against the rolling cap."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.table import Table

from prefect_assay.analysis.results.tables import format_cell, write_people_csv
from prefect_assay.archive.store import Store
from prefect_assay.cli.archives.archive import open_archive
from prefect_assay.cli.archives.results import write_table
from prefect_assay.cli.open_money import as_json as money_as_json
from prefect_assay.cli.open_money import show_open_money
from prefect_assay.cli.output import TerminalConsole, make_plain_console, plain_table, print_json
from prefect_assay.cli.prefect_api import saved_account
from prefect_assay.errors import InputError
from prefect_assay.orders.ledger import Ledgers, OrderLedger
from prefect_assay.orders.ledger.campaign_log import CampaignLog, Started
from prefect_assay.orders.ledger.open_money import describe_status, of_logs
from prefect_assay.service.models.billing import usd
from prefect_assay.service.models.vocabulary import PaymentMethod
from prefect_assay.service.words import many

if TYPE_CHECKING:
    from prefect_assay.blocks import SpendingPolicy

DEFAULT_DAYS: Final = 30
_VAT: Final = "not included: it is computed at invoicing, and the invoice shows it"
_AS_RECORDED: Final = (
    "this is what the archive has. prefect-assay status asks the service as well, and has the links",
)


@dataclass(frozen=True, slots=True)
class OrderLine:
    """One order, with the words of the report for its `state`.

    `amount_cents` is what was paid or is to be paid, or else what was approved; None while no price is known. `simulated` is
    None where the campaign's log is lost.
    """

    when: str
    campaign_id: str
    order_key: str
    experiment_id: str | None
    experiment_code: str | None
    invoice_id: str | None
    rail: str | None
    state: str
    amount_cents: int | None
    ordered_at: str | None
    paid_at: str | None
    account: str | None
    simulated: bool | None
    service: str | None
    organisation: str | None
    owner: str | None
    purchase_order: str | None
    cost_center: str | None
    requested_by: str | None
    approved_by: str | None
    approved_how: str | None
    approved_cents: int | None


@dataclass(frozen=True, slots=True)
class Window:
    """What counts against the rolling cap: machine payments since `since` that were made, or may have been.

    `cap_cents` and `left_cents`, which is never negative, are None without a cap.
    """

    days: int
    since: str
    counted_cents: int
    cap_cents: int | None
    left_cents: int | None


def show_spending(
    path: Path | None,
    archive: str | None,
    account: str | None,
    *,
    days: int | None,
    csv_file: str | None = None,
    as_json: bool,
) -> None:
    """Print the log of an archive, given as a folder or a block; or write its orders as CSV."""
    if as_json and csv_file is not None:
        raise InputError("choose --json or --csv")
    chosen = saved_account(account) if account else None
    by_account = account if path is None and archive is None else None
    store, prefix = open_archive(path, archive, by_account)
    ledgers = Ledgers.list_all(store, prefix)
    logs = [ledger for b in ledgers for ledger in b.list_orders()]
    for ledger in logs:
        ledger.read()  # a damaged log is an error here, and not a smaller sum
    starts = _read_starts(store, prefix, logs)
    lines = sorted((_make_line(ledger, starts) for ledger in logs), key=lambda line: line.when)
    if csv_file is not None:
        write_table(csv_file, orders_csv(lines), len(lines))
        return
    money = of_logs(logs)
    window = sum_rolling_payments(
        ledgers, chosen.policy if chosen else None, days=days, now=datetime.now(UTC)
    )
    if as_json:
        shown = {"orders": [asdict(line) for line in lines], "window": asdict(window)}
        print_json(shown | {"open_money": money_as_json(money)})
        return
    if lines:
        TerminalConsole().print(make_table(lines))
    show_open_money(money.model_copy(update={"notes": _AS_RECORDED if money.items else ()}))
    make_plain_console().print(describe_sum(window, any_order=bool(lines)))


def sum_rolling_payments(
    ledgers: Iterable[Ledgers], policy: "SpendingPolicy | None", *, days: int | None, now: datetime
) -> Window:
    """Read the machine payments of the last days from all budgets, and what the policy's cap leaves."""
    length = days or (policy.rolling_days if policy else DEFAULT_DAYS)
    since = now - timedelta(days=length)
    counted = sum(one.budget.read().paid_cents(since) for one in ledgers)
    cap = policy.rolling_cents if policy else None
    return Window(
        days=length,
        since=since.isoformat(timespec="seconds"),
        counted_cents=counted,
        cap_cents=cap,
        left_cents=None if cap is None else max(cap - counted, 0),
    )


def make_table(lines: Sequence[OrderLine]) -> Table:
    """One line per order, oldest first; 80 columns are enough."""
    shown = plain_table()
    for name in ("When (UTC)", "Campaign", "Paid by", "State"):
        shown.add_column(name, no_wrap=name == "When (UTC)", overflow="fold")
    shown.add_column("Amount", justify="right", no_wrap=True)
    for line in lines:
        amount = "" if line.amount_cents is None else usd(line.amount_cents)
        payer = "a person" if line.rail == PaymentMethod.ASYNC_INVOICE else line.rail or ""
        state = f"{line.state}, simulated" if line.simulated else line.state
        shown.add_row(line.when[:16].replace("T", " "), line.campaign_id, payer, state, amount)
    return shown


def orders_csv(lines: Iterable[OrderLine]) -> bytes:
    """The orders for finance: one line for each, amounts in USD without VAT, which is computed at invoicing (contract 1)."""
    names = [field.name for field in fields(OrderLine)]
    rows = [[_in_usd(name, getattr(line, name)) for name in names] for line in lines]
    after = names.index("amount_cents") + 1
    for row in rows:
        row.insert(after, _VAT)
    titles = [name.replace("_cents", "_usd") for name in names]
    titles.insert(after, "vat")
    return write_people_csv(titles, (map(format_cell, row) for row in rows))


def _in_usd(name: str, value: object) -> object:
    return f"{value / 100:.2f}" if name.endswith("_cents") and isinstance(value, int) else value


def describe_sum(window: Window, *, any_order: bool) -> str:
    """The sum in words."""
    if not any_order:
        return "The archive has no order in its log."
    counted = f"{usd(window.counted_cents)} paid by machine in the last {many(window.days, 'day')}"
    if window.cap_cents is None:
        return f"{counted}."
    return f"{counted}, of {usd(window.cap_cents)} allowed: {usd(window.left_cents or 0)} left."


def _read_starts(store: Store, prefix: str, ledgers: Iterable[OrderLedger]) -> dict[str, Started]:
    """How each campaign was started, by its id; one whose log is lost is left out."""
    names = {ledger.state.planned.campaign_id for ledger in ledgers if ledger.state.planned}
    states = {name: CampaignLog(store, prefix, name).read() for name in sorted(names)}
    return {name: state.started for name, state in states.items() if state.started}


def _make_line(ledger: OrderLedger, starts: Mapping[str, Started]) -> OrderLine:
    state = ledger.state
    started = starts.get(state.planned.campaign_id) if state.planned else None
    terms, approved = started.terms if started else None, state.approved
    ordered, rail = state.ordered, state.payment.rail if state.payment else state.rail
    moment = state.settled or ordered or state.planned
    return OrderLine(
        when=moment.at.isoformat(timespec="seconds") if moment else "",
        campaign_id=state.planned.campaign_id if state.planned else "",
        order_key=ledger.order_key,
        experiment_id=ordered.experiment_id if ordered else None,
        invoice_id=state.invoice_id,
        rail=str(rail) if rail else None,
        state=describe_status(state),
        experiment_code=state.delivered.experiment_code if state.delivered else None,
        amount_cents=state.amount_cents,
        ordered_at=ordered.at.isoformat(timespec="seconds") if ordered else None,
        paid_at=state.settled.at.isoformat(timespec="seconds") if state.settled else None,
        account=terms.account_name if terms else None,
        simulated=terms.simulated if terms else None,
        service=terms.service if terms else None,
        organisation=terms.organisation if terms else None,
        owner=terms.owner if terms else None,
        purchase_order=terms.purchase_order if terms else None,
        cost_center=terms.cost_centre if terms else None,
        requested_by=(approved and approved.requester) or (started.requester if started else None),
        approved_by=approved.approver if approved else None,
        approved_how=approved.how if approved else None,
        approved_cents=approved.amount_cents if approved else None,
    )
