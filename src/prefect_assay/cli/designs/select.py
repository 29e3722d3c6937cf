"""`prefect-assay designs select`: the designs of the next round, from a pool and the tables of earlier rounds."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

from pydantic import ValidationError
from rich.table import Table
from rich.text import Text

from prefect_assay.analysis.selection import History, read_history, select_designs
from prefect_assay.archive.sources import local_path
from prefect_assay.cli.output import TerminalConsole, make_plain_console, print_json
from prefect_assay.designs.options import ReadingOptions
from prefect_assay.designs.proposed import choices_csv
from prefect_assay.designs.read import read_pool
from prefect_assay.designs.report import order_lines
from prefect_assay.designs.selection import Selection, SelectionSettings
from prefect_assay.errors import ConfigurationError, InputError
from prefect_assay.service.models.billing import usd
from prefect_assay.service.words import in_words, many

_SHOWN: Final = 50


def show_selection(
    pool: str,
    n: int,
    settings: SelectionSettings,
    reading: ReadingOptions,
    *,
    tables: Sequence[str],
    kd_unit: str | None,
    price_cents: int | None,
    budget_cents: int | None,
    rounds_left: int | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Select at most `n` designs, write the file that is named, and print the choices with their reasons.

    `tables` are those of earlier rounds; without a `kd_unit` their titles give it. A price is in cents without VAT.
    """
    history = read_history(*map(expand_home, tables), kd_unit=kd_unit)
    candidates = read_pool(expand_home(pool), reading=reading)
    selection = select_designs(
        candidates,
        history,
        n,
        settings,
        price_cents=price_cents if price_cents is not None else _known_price(history),
        budget_cents=budget_cents,
        rounds_left=rounds_left,
    )
    if not selection.choices:
        raise InputError(
            f"no candidate is left to buy: {_count_chosen(selection)}; widen the pool or the limits"
        )
    if output is not None:
        _write_output(output, choices_csv(selection.choices))
    if as_json:
        print_json(
            {**_summarize_selection(selection, history, output), "reading": list(order_lines(candidates))}
        )
    else:
        _show_selection(selection, history, output)
        for line in order_lines(candidates):
            make_plain_console().print(f"pool: {line}", style="yellow")


def make_settings(chosen: Mapping[str, Any]) -> SelectionSettings:
    """The settings that options give; InputError names the option that is wrong."""
    try:
        return SelectionSettings.model_validate(dict(chosen))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = f"{first['loc'][0]}: " if first["loc"] else ""
        raise InputError(where + first["msg"].removeprefix("Value error, ")) from None


def expand_home(source: str) -> str:
    """A source whose home folder is written out."""
    return str(local_path(source)) if source.startswith("~") else source


def _known_price(history: History) -> int | None:
    """The median of what designs cost in the history, in whole cents, rounded up."""
    prices = [design.price_cents for design in history.designs if design.price_cents is not None]
    return math.ceil(median(prices)) if prices else None


def _write_output(file: Path, content: bytes) -> None:
    try:
        local_path(file).write_bytes(content)
    except OSError as error:
        raise ConfigurationError(
            f"{file} cannot be written ({error.strerror}); choose another file with --output"
        ) from None


def _summarize_selection(selection: Selection, history: History, output: Path | None) -> dict[str, Any]:
    return {
        "policy": selection.policy,
        "seed": selection.seed,
        "pool": selection.pool_size,
        "history": len(history),
        "counts": selection.counts(),
        "price_cents": selection.price_cents,
        "notes": list(selection.notes),
        "file": None if output is None else str(output),
        "choices": [choice.model_dump(mode="json") for choice in selection.choices],
    }


def _show_selection(selection: Selection, history: History, output: Path | None) -> None:
    console = TerminalConsole()
    table = Table()
    for title in ("Rank", "Design", "Why"):
        table.add_column(title)
    for choice in selection.choices[:_SHOWN]:
        table.add_row(str(choice.rank), Text(choice.candidate.name), Text(choice.reason))
    console.print(table)
    if len(selection.choices) > _SHOWN:
        console.print(f"… and {len(selection.choices) - _SHOWN} more")
    lines = [
        f"{many(selection.pool_size, 'candidate')}, {len(history):,} in the history: {_count_chosen(selection)}"
    ]
    if selection.price_cents is not None:
        lines.append(f"price: {usd(selection.price_cents)} without VAT")
    if output is not None:
        lines.append(f"written to {output}")
    for line in (*lines, *selection.notes):
        make_plain_console().print(line)


def _count_chosen(selection: Selection) -> str:
    return ", ".join(f"{number:,} {in_words(fate)}" for fate, number in selection.counts().items())
