"""Rows as CSV and Parquet files, and values as people read them.

CSV is UTF-8 with CRLF line ends (RFC 4180), and reading it gives the same numbers back. People see three significant
digits, and 7.4 nM instead of 7.4e-9.
"""

import csv
import io
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, assert_never

from pydantic import ValidationError

from prefect_assay.analysis.kinetics.analysis import Estimate, Verdict
from prefect_assay.analysis.results.row import (
    COLUMNS,
    Outcome,
    ResultRow,
    read_row,
)
from prefect_assay.archive.read import csv_lines
from prefect_assay.archive.sources import UnreadableSource, open_source
from prefect_assay.errors import ConfigurationError, InputError
from prefect_assay.foreign_text import clean_text
from prefect_assay.service.assays import QUANTITIES, Objective, QuantityKind

_FLOATS: Final = frozenset({"log10_kd", "kd_log_std"} | {kind.column for kind in QUANTITIES})
_REQUIRED: Final = frozenset(name for name, field in ResultRow.model_fields.items() if field.is_required())


def to_csv(rows: Iterable[ResultRow]) -> bytes:
    """The rows as CSV with a header. An empty cell means "not reported"."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer)
    writer.writerow(COLUMNS)
    writer.writerows([_format_cell(getattr(row, column)) for column in COLUMNS] for row in rows)
    return buffer.getvalue().encode()


def from_csv(source: str | bytes | Path) -> tuple[ResultRow, ...]:
    """Read a table of `to_csv`, also one of another version that has a column more or less.

    Args:
        source: the table as bytes or as text (which has line ends), a path, or an `s3://bucket/key` address.

    Raises:
        InputError: there is no such file, or it is not a results table; the faulty row is named.
        ServiceUnavailable: the object storage did not answer; try again later.
    """
    data = read_content(source)
    try:
        lines = csv_lines(data)
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"not a results table: {error}") from None
    header = lines[0] if lines else []
    if missing := sorted(_REQUIRED - set(header)):
        raise InputError(f"not a results table: these columns are missing: {', '.join(missing)}")
    rows = []
    for number, cells in enumerate(lines[1:], start=1):
        try:
            rows.append(read_row(dict(zip(header, cells, strict=True))))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise InputError(f"row {number}, column {first['loc'][0]}: {first['msg']}") from None
        except ValueError:
            raise InputError(f"row {number} has {len(cells)} cells, the header {len(header)}") from None
    return tuple(rows)


def read_content(source: str | bytes | Path) -> bytes:
    """A table given as bytes or text, or by a path or an `s3://bucket/key` address; InputError if it cannot be read."""
    if isinstance(source, bytes):
        return source
    if isinstance(source, str) and ("\n" in source or "\r" in source):
        return source.encode()
    try:
        with open_source(str(source)) as stream:
            return stream.read()
    except UnreadableSource as error:
        raise InputError(f"{source}: {error}") from None


def make_row_schema() -> tuple[tuple[str, Any], ...]:
    """Name and Arrow type of each column of a row."""
    pa = import_pyarrow()
    kinds = {"replicate": pa.int64(), "control": pa.bool_()} | dict.fromkeys(_FLOATS, pa.float64())
    return tuple((column, kinds.get(column, pa.string())) for column in COLUMNS)


def write_parquet(table: Any) -> bytes:
    """A pyarrow table as a Parquet file: the same table and the same pyarrow give the same bytes."""
    import pyarrow.parquet as pq  # noqa: PLC0415  an optional extra

    sink = io.BytesIO()
    pq.write_table(table, sink, write_page_checksum=True)
    return sink.getvalue()


def import_pyarrow() -> Any:
    """The module pyarrow; ConfigurationError without the `parquet` extra."""
    try:
        import pyarrow as pa  # noqa: PLC0415  an optional extra
    except ImportError:
        raise ConfigurationError.missing_extra("parquet", "reading and writing Parquet") from None
    return pa


def _format_cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else str(value)


_MOLAR: Final = (("M", 1.0), ("mM", 1e-3), ("µM", 1e-6), ("nM", 1e-9), ("pM", 1e-12), ("fM", 1e-15))
_DIGITS: Final = 3
OUTCOME_WORDS: Final = {
    Outcome.MEASURED: "measured",
    Outcome.BINDING: "binds",
    Outcome.NO_BINDING: "no binding",
    Outcome.NO_EXPRESSION: "no expression",
    Outcome.UNKNOWN: "unknown",
    Outcome.PENDING: "pending",
    Outcome.MISSING: "not reported",
}
VERDICT_WORDS: Final = {
    Verdict.AGREES: "agrees",
    Verdict.REVIEW: "to review",
    Verdict.NOT_1_TO_1: "not 1:1",
    Verdict.NO_BINDING: "no response",
}
EMPTY: Final = "–"  # noqa: RUF001  a dash, not a minus: a missing value is not a number


def format_molar(value: float | None, qualifier: str | None = None) -> str:
    """A concentration in M for people: `7.4e-8` gives `74.0 nM`."""
    if value is None:
        return EMPTY
    prefix = f"{qualifier} " if qualifier else ""
    if value <= 0:
        return f"{prefix}{_round_significant(value)} M"
    for unit, size in _MOLAR:
        if float(f"{value / size:.{_DIGITS - 1}e}") >= 1:  # rounded first: 999.9 nM is 1.00 µM
            return f"{prefix}{_round_significant(value / size)} {unit}"
    return f"{prefix}{value:.{_DIGITS - 1}e} M"


def format_molar_range(low: float | None, high: float | None) -> str:
    """An interval in M for people: `62.1 to 104 nM`, `975 pM to 1.20 nM`, `open to 1.91 nM`; empty without one."""
    if low is None and high is None:
        return ""
    first, last = ("open" if end is None else format_molar(end) for end in (low, high))
    value, _, unit = first.partition(" ")
    return f"{value if unit == last.partition(' ')[2] else first} to {last}"


def format_quantity(value: float, quantity: QuantityKind, qualifier: str | None = None) -> str:
    """A value in the unit of its column for people: `74.1 nM`, `61.4 °C`, a limit as `< 5.00 nM`."""
    if "M" in quantity.units:
        return format_molar(value * quantity.units["M"], qualifier)
    text = f"{value:{quantity.number_format}} {quantity.shown[0]}"
    return f"{qualifier} {text}" if qualifier else text


def format_objective(value: float, objective: Objective) -> str:
    """The value of an objective for people: K_D given in M, a melting temperature in °C, a concentration in nM."""
    match objective:
        case Objective.AFFINITY:
            return format_molar(value)
        case Objective.MELTING:
            return f"{value:.1f} °C"
        case Objective.EXPRESSION:
            return format_molar(value * 1e-9)
        case _:
            assert_never(objective)


def format_fold(fold: float, qualifier: str | None = None) -> str:
    """How many times one value is another one, for people: `2.4`, `> 12`."""
    digits = f"{fold:.2g}" if fold < 100 else f"{fold:.0f}"  # noqa: PLR2004  no exponent
    return f"{qualifier} {digits}" if qualifier else digits


def format_molar_estimate(estimate: Estimate) -> str:
    """A K_D in M for people: `62.1 nM (50.0 to 71.4 nM)`, a limit as `< 71.4 nM`."""
    if estimate.value is None:
        return estimate.text(format_molar)
    ends = format_molar_range(estimate.low, estimate.high)
    return f"{format_molar(estimate.value)} ({ends})" if ends else format_molar(estimate.value)


def format_rate(value: float | None, unit: str) -> str:
    """A rate constant for people: `7.00e+04 /M/s`."""
    return EMPTY if value is None else f"{value:.{_DIGITS - 1}e} {unit}"


def format_rate_estimate(estimate: Estimate, unit: str) -> str:
    """A fitted rate constant for people, a limit as `< 1.00e-05 /s`."""
    return estimate.text(lambda number: format_rate(number, unit), "{}")


# Of a text of this package, such as K_D; its underscore may be escaped for Markdown.
CONSTANT: Final = re.compile(r"\b([Kk]|T)\\?_(D|on|off|m)\b")


def format_celsius_estimate(estimate: Estimate) -> str:
    """A melting temperature for people: `61.4 °C (60.9 to 61.9)`, a limit as `> 95.0 °C`."""
    text = estimate.text("{:.1f}".format, "{} °C ({} to {})")
    return text if text.endswith(")") else f"{text} °C"


def _round_significant(value: float) -> str:
    """Three significant digits, without an exponent in the range of a unit prefix."""
    rounded = float(f"{value:.{_DIGITS - 1}e}")
    if not 1 <= rounded < 1000:  # noqa: PLR2004  the range of a unit prefix
        return f"{value:.{_DIGITS}g}"
    return f"{rounded:.{_DIGITS - len(str(int(rounded)))}f}"


def make_one_line(text: str) -> str:
    """Text of others without line ends."""
    return " ".join(clean_text(text).split())


def make_markdown_cell(text: str) -> str:
    """A cell of a Markdown table. Names come from users: a pipe or a bracket must not break the table or make a link."""
    escaped = make_one_line(text)
    for character in "\\|[]<`*_":
        escaped = escaped.replace(character, "&lt;" if character == "<" else f"\\{character}")
    return escaped
