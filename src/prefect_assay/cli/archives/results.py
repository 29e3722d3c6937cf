"""`prefect-assay results`: the summary table of one campaign or of all, compared campaigns, or the laboratory's rows."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from prefect_assay.analysis.results import (
    DesignSummary,
    Outcome,
    count_hits,
    describe_outcomes,
    make_rich_table,
    write_summary_csv,
)
from prefect_assay.analysis.results.compare import (
    Comparison,
    compare_campaigns,
    format_value_with_interval,
    write_comparison_csv,
)
from prefect_assay.analysis.results.formats import (
    OUTCOME_WORDS,
    format_molar,
    format_quantity,
    make_one_line,
    write_parquet,
)
from prefect_assay.analysis.results.hits import Tally
from prefect_assay.analysis.results.tables import encode_summary_parquet, format_cell, write_people_csv
from prefect_assay.analysis.tables.rows import Query, describe_no_results, query_rows
from prefect_assay.analysis.tables.summary import SummaryTable, read_designs
from prefect_assay.archive import Store
from prefect_assay.archive.sources import local_path
from prefect_assay.cli.archives.archive import open_archive
from prefect_assay.cli.output import TerminalConsole, make_plain_console, print_json
from prefect_assay.errors import ArchiveError, ArchiveUnavailable, InputError
from prefect_assay.orders.ledger.campaign_log import Terms, read_terms
from prefect_assay.service.assays import TM
from prefect_assay.service.words import describe_mode, listed, many

_SHOWN = 50
_CAMPAIGNS_SHOWN = 6
_STDOUT = "-"


class Place(NamedTuple):
    """Which archive is read: a block or a folder, or that of an account; that of the account main without both."""

    archive: str | None = None
    account: str | None = None


class Files(NamedTuple):
    """Where results go besides the screen; `-` is stdout."""

    csv: str | None
    parquet: str | None
    as_json: bool

    def refuse_several_on_stdout(self) -> None:
        """InputError if more than one of them is printed."""
        if self.as_json + (self.csv == _STDOUT) + (self.parquet == _STDOUT) > 1:
            raise InputError("only one of --json, --csv - and --parquet - can be printed")

    @property
    def is_screen(self) -> bool:
        """Whether a table for people is shown."""
        return not self.as_json and self.csv is None and self.parquet is None


def show_results(place: Place, campaigns: Sequence[str], query: Query, files: Files) -> None:
    """Print the summary table of campaigns, or of all, as it is filtered; or write it."""
    files.refuse_several_on_stdout()
    store, prefix = open_archive(None, place.archive, place.account)
    table = _read_designs(store, prefix, campaigns)
    designs = [design for design in table.designs if _is_match(design, query)]
    shown = designs[: query.limit]
    if files.csv is not None:
        write_table(files.csv, write_summary_csv(shown), len(shown))
    if files.parquet is not None:
        write_table(files.parquet, encode_summary_parquet(shown), len(shown))
    if files.as_json:
        rate = count_hits(designs).rate.as_json()
        print_json({"results": [design.model_dump(mode="json") for design in shown], "rate": rate})
    if files.is_screen:
        console = TerminalConsole()
        console.print(make_rich_table(designs, limit=query.limit or _SHOWN) if designs else "No results.")
        if designs:
            make_plain_console().print(f"{describe_outcomes(designs)}{_interval_words(count_hits(designs))}")
            _print_accounts(store, prefix, {design.campaign_id: None for design in designs})
    _print_notes(table.notes)


def show_comparison(place: Place, campaigns: Sequence[str], files: Files) -> None:
    """Print what campaigns have in common, each value against the first campaign's, and their hit rates; or write it."""
    files.refuse_several_on_stdout()
    store, prefix = open_archive(None, place.archive, place.account)
    table = _read_designs(store, prefix, campaigns)
    compared = compare_campaigns(
        {name: [design for design in table.designs if design.campaign_id == name] for name in campaigns}
    )
    if files.csv is not None:
        write_table(files.csv, write_comparison_csv(compared), len(compared.common))
    if files.as_json:
        rates = [
            {"campaign": name, **counted.rate.as_json()}
            for name, counted in zip(compared.campaigns, compared.tallies, strict=True)
        ]
        common = [design.model_dump(mode="json") for design in compared.common]
        print_json({"campaigns": rates, "common": common})
    if files.is_screen:
        _show_comparison(TerminalConsole(), compared)
        _print_accounts(store, prefix, compared.campaigns)
    _print_notes(table.notes)


def show_rows(place: Place, campaigns: Sequence[str], query: Query, files: Files) -> None:
    """Print the laboratory's own rows, summaries and replicates; or write them."""
    files.refuse_several_on_stdout()
    if len(campaigns) > 1:
        raise InputError("the laboratory's rows are those of one campaign, or of all: name one, or none")
    store, prefix = open_archive(None, place.archive, place.account)
    table = query_rows(store, prefix, query.model_copy(update={"campaign": next(iter(campaigns), None)}))
    rows = table.to_pylist()
    if files.csv is not None:
        body = write_people_csv(table.column_names, (map(format_cell, row.values()) for row in rows))
        write_table(files.csv, body, len(rows))
    if files.parquet is not None:
        write_table(files.parquet, write_parquet(table), len(rows))
    if files.as_json:
        print_json({"rows": [row | {"archived_at": row["archived_at"].isoformat()} for row in rows]})
    if files.is_screen:
        _show_rows(TerminalConsole(), rows)


def _known_terms(store: Store, prefix: str, campaign_id: str) -> Terms | None:
    """The terms by the campaign's log; None without one that can be read."""
    try:
        return read_terms(store, prefix, campaign_id)
    except ArchiveUnavailable:
        raise
    except ArchiveError:  # `archive verify` names it
        return None


def _account_lines(store: Store, prefix: str, campaigns: Iterable[str]) -> Iterator[str]:
    """Each account with its mode and its campaigns: `account lab, simulated: egf-a, egf-b`."""
    by_account: dict[str, list[str]] = {}
    for campaign_id in campaigns:
        terms = _known_terms(store, prefix, campaign_id)
        by_account.setdefault(_account_words(terms), []).append(campaign_id)
    for words, names in by_account.items():
        yield f"{words}: {listed(names, _CAMPAIGNS_SHOWN)}"


def _account_words(terms: Terms | None) -> str:
    if terms is None:
        return "account not known, no log that can be read"
    return f"account {make_one_line(terms.account_name or 'without a name')}, {describe_mode(is_simulated=terms.simulated)}"


def _read_designs(store: Store, prefix: str, campaigns: Sequence[str]) -> SummaryTable:
    def is_simulated(campaign_id: str) -> bool:
        terms = _known_terms(store, prefix, campaign_id)
        return bool(terms and terms.simulated)

    table = read_designs(store, prefix, campaigns or None, is_simulated=is_simulated)
    known = {design.campaign_id for design in table.designs}
    missing = [name for name in campaigns if name not in known]
    if missing or not known:
        raise describe_no_results(store, prefix, missing[0] if missing else None)
    return table


def _is_match(design: DesignSummary, query: Query) -> bool:
    parts = ((query.name, design.name), (query.target, design.target))
    whole = ((query.experiment, design.experiment_code), (query.result_type, design.result_type))
    return (
        all(part is None or part.casefold() in (text or "").casefold() for part, text in parts)
        and all(text is None or text.casefold() == value.casefold() for text, value in whole)
        and query.outcome in {None, design.outcome}
    )


def _interval_words(counted: Tally) -> str:
    """The hit rate in percent with its interval, after the outcome in one line."""
    share, interval = counted.rate.cells
    return f"; hit rate {share} ({interval}, 95 % interval)" if share else ""


def _show_comparison(console: Console, compared: Comparison) -> None:
    first, *others = compared.campaigns
    for name, counted in zip(compared.campaigns, compared.tallies, strict=True):
        make_plain_console().print(f"{name}: {counted.words}{_interval_words(counted)}")
    if not compared.common:
        make_plain_console().print("No design is in two of these campaigns.")
        return
    table = Table(
        "Design",
        first if len(others) == 1 else "First",
        *(others if len(others) == 1 else ["Campaign", "Later"]),
    )
    table.add_column("K_D ratio")
    table.add_column("Overlap")
    for one in compared.common:
        for number, change in enumerate(one.changes):
            begin = (one.first.name, format_value_with_interval(one.first)) if not number else ("", "")
            campaign = () if len(others) == 1 else (change.design.campaign_id,)
            cells = (
                *begin,
                *campaign,
                format_value_with_interval(change.design),
                change.words,
                change.overlap_words,
            )
            table.add_row(*(Text(make_one_line(text)) for text in cells))  # Text: names are not markup
    console.print(table)
    make_plain_console().print(
        f"{len(compared.common):,} in common. K_D ratio: K_D over that of the first campaign; above 1 is weaker. "
        "Overlap: whether the 95 % intervals do."
    )


def _print_accounts(store: Store, prefix: str, campaigns: Iterable[str]) -> None:
    for line in _account_lines(store, prefix, campaigns):
        make_plain_console().print(line)


def _print_notes(notes: Iterable[str]) -> None:
    for note in notes:
        make_plain_console(stderr=True).print(note)


def write_table(file: str, content: bytes, rows: int) -> None:
    """Write a table into a file, or with `-` to stdout; a line says how many rows it has."""
    if file == _STDOUT:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    try:
        local_path(file).write_bytes(content)
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error.strerror}") from None
    make_plain_console(stderr=True).print(f"{many(rows, 'row')} in {file}")


def _show_rows(console: Console, rows: list[dict[str, Any]]) -> None:
    """Print the first rows, without columns that are empty in all of them."""
    lines = [_format_row(row) for row in rows[:_SHOWN]]
    titles = [title for title in lines[0] if any(line[title] for line in lines)] if lines else []
    table = Table(*titles, caption=f"… and {len(rows) - _SHOWN} more" if len(rows) > _SHOWN else None)
    for line in lines:
        table.add_row(*(Text(make_one_line(line[title])) for title in titles))  # Text: names are not markup
    console.print(table if lines else "No results.")


def _format_row(row: Mapping[str, Any]) -> dict[str, str]:
    replicate = "" if row["replicate"] is None else f" ({row['replicate']})"
    # the fitted number of a non-binder is not an affinity
    has_kd = row["kd_M"] is not None and row["outcome"] == Outcome.MEASURED
    return {
        "Campaign": row["campaign_id"],
        "Experiment": row["experiment_code"],
        "Design": f"{row['name']}{replicate}",
        "Target": row["target"] or "",
        "Outcome": OUTCOME_WORDS[Outcome(row["outcome"])],
        "K_D": format_molar(row["kd_M"], row["qualifier"]) if has_kd else "",
        "Tm": ""
        if row["tm_C"] is None
        else format_quantity(row["tm_C"], TM, row["qualifier"] if row["kd_M"] is None else None),
        "Expression": row["expression"] or "",
    }
