"""`prefect-assay spending`: the orders and payments in an archive's log, and what counts against the rolling cap."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.table import Table

from prefect_assay.books import Books, OrderBook
from prefect_assay.books.open_money import of_logs, status_words
from prefect_assay.cli.archives.archive import opened
from prefect_assay.cli.open_money import as_json as money_as_json
from prefect_assay.cli.open_money import show_open_money
from prefect_assay.cli.output import TerminalConsole, plain, plain_table, print_json
from prefect_assay.cli.prefect_api import saved_block
from prefect_assay.models.billing import usd
from prefect_assay.models.vocabulary import PaymentMethod

if TYPE_CHECKING:
    from prefect_assay.blocks import SpendingPolicy

DEFAULT_DAYS: Final = 30
_AS_RECORDED: Final = (
    "this is what the archive has. prefect-assay status asks the service as well, and has the links",
)


@dataclass(frozen=True, slots=True)
class OrderLine:
    """One order, with the words of the report for its `state`.

    `amount_cents` is what was paid or is to be paid, or else what was approved; None while no price is known.
    """

    when: str
    campaign_id: str
    order_key: str
    experiment_id: str | None
    invoice_id: str | None
    rail: str | None
    state: str
    amount_cents: int | None
    approved_by: str | None


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
    path: Path | None, archive: str | None, policy: str | None, *, days: int | None, as_json: bool
) -> None:
    """Print the log of an archive, given as a folder or a block."""
    chosen = None
    if policy:
        from prefect_assay.blocks import SpendingPolicy

        chosen = saved_block(SpendingPolicy, policy)
    books = Books.every(*opened(path, archive))
    logs = [book for b in books for book in b.orders()]
    for book in logs:
        book.read()  # a damaged log is an error here, and not a smaller sum
    lines = sorted(map(_line, logs), key=lambda line: line.when)
    money = of_logs(logs)
    window = window_of(books, chosen, days=days, now=datetime.now(UTC))
    if as_json:
        shown = {"orders": [asdict(line) for line in lines], "window": asdict(window)}
        print_json(shown | {"open_money": money_as_json(money)})
        return
    if lines:
        TerminalConsole().print(table(lines))
    show_open_money(money.model_copy(update={"notes": _AS_RECORDED if money.items else ()}))
    plain().print(sentence(window, any_order=bool(lines)))


def window_of(
    books: Iterable[Books], policy: "SpendingPolicy | None", *, days: int | None, now: datetime
) -> Window:
    """The sum of the window, compared with the policy's cap."""
    length = days or (policy.rolling_days if policy else DEFAULT_DAYS)
    since = now - timedelta(days=length)
    counted = sum(b.budget.read().paid_cents(since) for b in books)
    cap = policy.rolling_cents if policy else None
    return Window(
        days=length,
        since=since.isoformat(timespec="seconds"),
        counted_cents=counted,
        cap_cents=cap,
        left_cents=None if cap is None else max(cap - counted, 0),
    )


def table(lines: Sequence[OrderLine]) -> Table:
    """One line per order, oldest first; 80 columns are enough."""
    shown = plain_table()
    for name in ("When (UTC)", "Campaign", "Paid by", "State"):
        shown.add_column(name, no_wrap=name == "When (UTC)", overflow="fold")
    shown.add_column("Amount", justify="right", no_wrap=True)
    for line in lines:
        amount = "" if line.amount_cents is None else usd(line.amount_cents)
        payer = "a person" if line.rail == PaymentMethod.ASYNC_INVOICE else line.rail or ""
        shown.add_row(line.when[:16].replace("T", " "), line.campaign_id, payer, line.state, amount)
    return shown


def sentence(window: Window, *, any_order: bool) -> str:
    """The sum in words."""
    if not any_order:
        return "The archive has no order in its log."
    counted = f"{usd(window.counted_cents)} paid by machine in the last {window.days} days"
    if window.cap_cents is None:
        return f"{counted}."
    return f"{counted}, of {usd(window.cap_cents)} allowed: {usd(window.left_cents or 0)} left."


def _line(book: OrderBook) -> OrderLine:
    state = book.state
    ordered, rail = state.ordered, state.payment.rail if state.payment else state.rail
    moment = state.settled or ordered or state.planned
    return OrderLine(
        when=moment.at.isoformat(timespec="seconds") if moment else "",
        campaign_id=state.planned.campaign_id if state.planned else "",
        order_key=book.order_key,
        experiment_id=ordered.experiment_id if ordered else None,
        invoice_id=state.invoice_id,
        rail=str(rail) if rail else None,
        state=status_words(state),
        amount_cents=state.amount_cents,
        approved_by=state.approved.approver if state.approved else None,
    )
