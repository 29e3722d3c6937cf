"""`prefect-assay results`: the results of all campaigns in an archive's lake, on the screen or in a file."""

import csv
import json
import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from prefect_assay import lake
from prefect_assay.archive import Store
from prefect_assay.cli.archives.archive import opened
from prefect_assay.cli.output import TerminalConsole, plain
from prefect_assay.errors import ArchiveError, InputError
from prefect_assay.results import DesignSummary, Outcome, rich_table, summarize
from prefect_assay.results.design import order_of
from prefect_assay.results.formats import molar, parquet_bytes
from prefect_assay.results.row import read_row
from prefect_assay.results.tables import cell, guarded, people_csv
from prefect_assay.sources import local_path

_SHOWN = 50
_STDOUT = "-"


def show_results(
    path: Path | None,
    archive: str | None,
    wanted: lake.Query,
    *,
    csv_file: str | None,
    parquet_file: str | None,
    as_json: bool,
) -> None:
    """Query the lake; write the files that are named, else print a table or JSON."""
    if as_json + (csv_file == _STDOUT) + (parquet_file == _STDOUT) > 1:
        raise InputError("only one of --json, --csv - and --parquet - can be printed")
    store, prefix = opened(path, archive)
    is_ranked = not (wanted.sort or wanted.replicates or wanted.all_versions)
    if is_ranked and not as_json and csv_file is None and parquet_file is None:
        _show_ranked(TerminalConsole(), store, prefix, wanted)
        return
    table = lake.query(store, prefix, wanted)
    rows = table.to_pylist()
    if csv_file is not None:
        write_table(
            csv_file, people_csv(table.column_names, (map(cell, row.values()) for row in rows)), len(rows)
        )
    if parquet_file is not None:
        write_table(parquet_file, parquet_bytes(table), len(rows))
    if as_json:
        print(json.dumps({"results": rows}, indent=2, default=datetime.isoformat))
    elif csv_file is None and parquet_file is None:
        _show(TerminalConsole(), rows)


def _show_ranked(console: Console, store: Store, prefix: str, wanted: lake.Query) -> None:
    """Print the designs as they are ranked, with what the reports of their campaigns say of them."""
    every = wanted.model_copy(update={"replicates": True, "outcome": None, "limit": None})
    found = lake.query(store, prefix, every).to_pylist()
    rows = [read_row(row) for row in found]
    campaigns = {(row["name"], row["experiment_code"]): row["campaign_id"] for row in found}
    targets = {row["experiment_code"]: row["target"] for row in found}
    reports = {campaign: _report_of(store, prefix, campaign) for campaign in sorted({*campaigns.values()})}
    designs = [
        _as_reported(each, reports[campaigns[each.name, each.experiment_code]])
        for each in summarize(rows, targets=targets)
    ]
    if len(reports) > 1:  # groups of one campaign
        designs = [each.model_copy(update={"group": None}) for each in designs]
    kept = [each for each in sorted(designs, key=order_of) if wanted.outcome in {None, each.outcome}]
    limit = wanted.limit or _SHOWN
    console.print(rich_table(kept, limit=limit, campaigns=campaigns) if kept else "No results.")


def _report_of(store: Store, prefix: str, campaign: str) -> Mapping[tuple[str, str], DesignSummary]:
    try:
        return lake.reported_designs(store, prefix, campaign)
    except (ArchiveError, ValueError, csv.Error):  # the values are those of the rows, without a verdict
        return {}


def _as_reported(design: DesignSummary, report: Mapping[tuple[str, str], DesignSummary]) -> DesignSummary:
    """The design with value and verdict of its report, unless its results have changed since."""
    found = report.get((design.experiment_code, guarded(design.name)))
    same = ("outcome", "reported_kd_M", "reported_tm_C", "replicates", "binding_strength")
    if found is None or any(getattr(found, field) != getattr(design, field) for field in same):
        return design
    return found.model_copy(update={"name": design.name, "target": design.target})


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
    plain(stderr=True).print(f"{rows} rows in {file}")


def _show(console: Console, rows: list[dict[str, Any]]) -> None:
    """Print the first rows, without columns that are empty in all of them."""
    lines = [_texts(row) for row in rows[:_SHOWN]]
    titles = [title for title in lines[0] if any(line[title] for line in lines)] if lines else []
    table = Table(*titles, caption=f"… and {len(rows) - _SHOWN} more" if len(rows) > _SHOWN else None)
    for line in lines:
        table.add_row(*(Text(" ".join(line[title].split())) for title in titles))  # Text: names are no markup
    console.print(table if lines else "No results.")


def _texts(row: Mapping[str, Any]) -> dict[str, str]:
    replicate = "" if row["replicate"] is None else f" ({row['replicate']})"
    # the fitted number of a non-binder is no affinity
    has_kd = row["kd_M"] is not None and row["outcome"] == Outcome.MEASURED
    return {
        "Campaign": row["campaign_id"],
        "Experiment": row["experiment_code"],
        "Design": f"{row['name']}{replicate}",
        "Target": row["target"] or "",
        "Outcome": row["outcome"].replace("_", " "),
        "K_D": molar(row["kd_M"], row["qualifier"]) if has_kd else "",
        "Tm": "" if row["tm_C"] is None else f"{row['tm_C']:.1f} °C",
        "Expression": row["expression"] or "",
    }
