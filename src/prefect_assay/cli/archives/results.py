"""`prefect-assay results`: the results of all campaigns in an archive's lake, on the screen or in a file."""

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
from prefect_assay.cli.archives.archive import opened
from prefect_assay.cli.output import plain
from prefect_assay.errors import InputError
from prefect_assay.results import Outcome
from prefect_assay.results.formats import molar, parquet_bytes
from prefect_assay.results.tables import cell, people_csv
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
        _show(Console(), rows)


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
