"""The tidy table as a file: CSV, Parquet, and back; and the tables of a campaign put together.

CSV is UTF-8 with CRLF line ends (RFC 4180). Numbers are written so that reading gives the same number back.
"""

import csv
import io
from collections.abc import Iterable
from typing import Any, Final

from pydantic import ValidationError

from prefect_assay.errors import ConfigurationError, InputError
from prefect_assay.results.row import COLUMNS, Level, Outcome, ResultRow

_FLOATS: Final = frozenset(
    {"kd_M", "log10_kd", "kd_log_std", "kon_per_M_s", "koff_per_s", "tm_C", "concentration_nM"}
)
_REQUIRED: Final = frozenset(name for name, field in ResultRow.model_fields.items() if field.is_required())
_FIELD_LIMIT: Final = 2**31 - 1


def to_csv(rows: Iterable[ResultRow]) -> bytes:
    """The rows as CSV with a header. An empty cell means "not reported"."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer)
    writer.writerow(COLUMNS)
    writer.writerows([_cell(getattr(row, column)) for column in COLUMNS] for row in rows)
    return buffer.getvalue().encode()


def from_csv(data: bytes) -> tuple[ResultRow, ...]:
    """Read a table that `to_csv` wrote, also one of an earlier version, which may lack optional columns.

    Raises:
        InputError: the file is no such table; the message names the line.
    """
    csv.field_size_limit(_FIELD_LIMIT)  # `extra` may hold more than the module's 128 KiB
    try:
        lines = list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")))
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"not a results table: {error}") from None
    header = lines[0] if lines else []
    if wrong := sorted((_REQUIRED - set(header)) | (set(header) - set(COLUMNS))):
        raise InputError(f"not a results table: these columns are missing or unknown: {', '.join(wrong)}")
    found = []
    for number, cells in enumerate(lines[1:], start=1):
        try:
            found.append(ResultRow.model_validate(dict(zip(header, cells, strict=True)), strict=False))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise InputError(f"row {number}, column {first['loc'][0]}: {first['msg']}") from None
        except ValueError:
            raise InputError(f"row {number} has {len(cells)} cells, the header {len(header)}") from None
    return tuple(found)


def to_parquet(rows: Iterable[ResultRow]) -> bytes:
    """The rows as one Parquet file, with the columns of the CSV.

    Raises:
        ConfigurationError: the `parquet` extra is not installed.
    """
    try:
        import pyarrow as pa  # noqa: PLC0415  an optional extra
        import pyarrow.parquet as pq  # noqa: PLC0415  an optional extra
    except ImportError:
        raise ConfigurationError.missing_extra("parquet", "writing Parquet") from None
    kinds = {"replicate": pa.int64(), "control": pa.bool_()} | dict.fromkeys(_FLOATS, pa.float64())
    schema = pa.schema([(column, kinds.get(column, pa.string())) for column in COLUMNS])
    table = pa.Table.from_pylist([row.model_dump(mode="json") for row in rows], schema=schema)
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def collate(tables: Iterable[Iterable[ResultRow]]) -> tuple[ResultRow, ...]:
    """One table of many, for a campaign. Of a row that comes twice, the later one stays, in the first's place.

    A row is the same when experiment, result, design, level and replicate are; an open row (`pending`, `missing`)
    goes when its design has a result.
    """
    merged: dict[tuple[Any, ...], ResultRow] = {}
    counts: dict[tuple[Any, ...], int] = {}
    for table in tables:
        counts.clear()
        for row in table:
            identity = (
                row.experiment_code,
                row.result_id,
                row.result_type,
                row.name,
                row.level,
                row.replicate,
            )
            counts[identity] = counts.get(identity, 0) + 1  # replicates may come without a number
            merged[*identity, counts[identity]] = row
    answered = {(row.experiment_code, row.name) for row in merged.values() if row.result_id}
    return tuple(
        row for row in merged.values() if row.result_id or (row.experiment_code, row.name) not in answered
    )


def summaries(rows: Iterable[ResultRow]) -> tuple[ResultRow, ...]:
    """Only the summary rows: one per design and result."""
    return tuple(row for row in rows if row.level is Level.SUMMARY)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else str(value)


_TIERS: Final = {Outcome.MEASURED: 0, Outcome.BINDING: 1}
_STRENGTHS: Final = {"strong": 0, "medium": 1, "weak": 2}


def best_binders(
    rows: Iterable[ResultRow], *, limit: int | None = None, controls: bool = False
) -> tuple[ResultRow, ...]:
    """Summary rows of binders: measured ones by K_D (M, ascending), then those with only a binding call.

    A screening call is not an affinity: designs without a K_D stand behind all that have one, strong before
    medium before weak. Non-binders, designs that did not express and unknown outcomes are left out.

    Args:
        rows: rows of one experiment or of a whole campaign.
        limit: how many to return; all by default.
        controls: whether control sequences take part.
    """
    candidates = [
        row
        for row in rows
        if row.level is Level.SUMMARY
        and (row.outcome is Outcome.BINDING or (row.outcome is Outcome.MEASURED and (row.kd_M or 0) > 0))
        and (controls or not row.control)
    ]
    return tuple(sorted(candidates, key=_order)[:limit])


def _order(row: ResultRow) -> tuple[int, float, int, str]:
    affinity = row.kd_M if row.kd_M is not None else float("inf")
    strength = _STRENGTHS.get(row.binding_strength or "", len(_STRENGTHS))
    return _TIERS[row.outcome], affinity, strength, row.name
