"""Shows at a terminal what is about to be bought, before anything is ordered."""

from collections.abc import Mapping

from prefect_assay.campaigns.approval.purchase_text import price_table, purchase_rows
from prefect_assay.cli.output import TerminalConsole, plain_table
from prefect_assay.orders.purchase import PurchaseSummary


def show_purchase(purchase: PurchaseSummary, *, stderr: bool = True) -> None:
    """Print the purchase summary; 80 columns are enough."""
    show_rows("To be bought", purchase_rows(purchase), stderr=stderr)
    if len(purchase.experiments) == 1:
        return
    headings, rows = price_table(purchase)
    table = plain_table()
    for heading in headings[:-1]:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column(headings[-1], overflow="fold")
    for row in rows:
        table.add_row(*row)
    _console(stderr=stderr).print(table)


def show_rows(title: str, rows: Mapping[str, str], *, stderr: bool = True) -> None:
    """A table of two columns, without the empty rows."""
    table = plain_table(show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold", ratio=1)
    for name, value in rows.items():
        if value:
            table.add_row(f"  {name}", value)
    console = _console(stderr=stderr)
    console.print(title)
    console.print(table)


def _console(*, stderr: bool) -> TerminalConsole:
    return TerminalConsole(stderr=stderr, highlight=False, markup=False, emoji=False)
