"""The list of open money on a command line: one place for `status`, `--problems`, `spending` and `cancel`."""

import shutil
import textwrap
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from prefect_assay.cli.output import make_plain_console
from prefect_assay.orders.ledger.open_money import WORDS, OpenKind, OpenMoney
from prefect_assay.service.models.billing import usd


def show_open_money(money: OpenMoney, *, nothing: str | None = None) -> None:
    """Print the sums, then each item with what to do and its link in a line of its own; `nothing` if there is none."""
    say = make_plain_console().print
    if money.line:
        for part in _wrap_line(f"Open money, without VAT: {money.line}"):
            say(part)
    elif nothing and money.complete:
        say(nothing)
    for line in _list_lines(money, datetime.now(UTC)):
        for part in _wrap_line(f"  {line}"):
            say(part)


def as_json(money: OpenMoney) -> dict[str, Any]:
    """The list for programs: sums in US cents by kind, the items, and what could not be read."""
    return {
        "cents": {kind.value: money.sum_cents(kind) for kind in OpenKind},
        "items": [item.model_dump(mode="json") for item in money.items],
        "notes": list(money.notes),
        "complete": money.complete,
    }


def _list_lines(money: OpenMoney, now: datetime) -> Iterator[str]:
    """Each item in lines that fit a terminal; a link has a line of its own, which can be copied whole."""
    for item in money.items:
        days = max(0, (now - item.since).days)
        age = f" ({days} days)" if days > 1 else ""
        amount = "amount not known" if item.amount_cents is None else usd(item.amount_cents)
        yield f"{amount}  {WORDS[item.kind]}: {item.name}"
        until = f", until {item.until:%Y-%m-%d %H:%M} UTC" if item.until else ""
        yield f"  since {item.since:%Y-%m-%d}{age}{until}, campaign {item.campaign_id}"
        if item.remark:
            yield f"  {item.remark}"
        if item.url:
            yield f"  {item.url}"
    for note in money.notes:
        yield f"Note: {note}"


def _wrap_line(line: str) -> Iterable[str]:
    if line.lstrip().startswith("http"):
        return [line]
    indent = " " * (len(line) - len(line.lstrip()))
    return textwrap.wrap(
        line,
        shutil.get_terminal_size().columns,
        subsequent_indent=f"{indent}  ",
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
    )
