"""Tables that people open: one row per design as CSV or Parquet.

The CSV files are for spreadsheets, so no text cell can run as a formula there; `results.csv` and Parquet keep every value
exactly. Knows neither where a table is kept nor who asked for it.
"""

import csv
import io
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pydantic import TypeAdapter

from prefect_assay.analysis.results.design import DesignSummary
from prefect_assay.analysis.results.formats import import_pyarrow, write_parquet
from prefect_assay.foreign_text import clean_text
from prefect_assay.service.assays import QUANTITIES

_BOM: Final = "\ufeff"
_DESIGNS: Final = TypeAdapter(tuple[DesignSummary, ...])
_COLUMNS: Final = tuple(column for column in DesignSummary.model_fields if column != "attributes")
_NUMBERS: Final = frozenset(
    {"kd_M", "kd_low_M", "kd_high_M", "reported_kd_M", "kon_per_M_s", "koff_per_s", "fold", "price_cents"}
    | {"tm_low_C", "tm_high_C", "reported_tm_C"}
    | {kind.column for kind in QUANTITIES}
)
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
# Full-width signs also count. A semicolon, a tab or a line end begins a cell where a spreadsheet program splits lines
# its own way, and some drop blanks and invisible characters before the sign.
_BREAK: Final = r"[;\t\r\n\v\f\x85\u2028\u2029]"
_INVISIBLE: Final = r"[\s\x00-\x1f\x7f-\xa0\xad\u180e\u200b-\u200f\u2060-\u2064\ufeff]"
_FORMULA: Final = re.compile(
    rf"(?P<start>^|{_BREAK})(?P<cell>(?:(?!{_BREAK}){_INVISIBLE})*[=+\-@\uff1d\uff0b\uff0d\uff20])"
)


def guard_cell(text: str) -> str:
    """The text with an apostrophe before everything that a spreadsheet program could take for a formula."""
    return clean_text(_FORMULA.sub(r"\g<start>'\g<cell>", text))


def write_summary_csv(summaries: Iterable[DesignSummary]) -> bytes:
    """One line per design in the given order, then the designer's own columns; UTF-8 with a byte order mark.

    An empty cell means "not reported". Numbers have all their digits; a designer's own cell that is a number remains one.
    """
    designs = tuple(summaries)
    designer_titles = _list_designer_columns(designs)
    return write_people_csv(
        (*_COLUMNS, *designer_titles.values()),
        (
            [
                *(format_cell(getattr(design, column)) for column in _COLUMNS),
                *(_format_designer_cell(design.attributes.get(column, "")) for column in designer_titles),
            ]
            for design in designs
        ),
    )


def write_summary_json(summaries: Iterable[DesignSummary]) -> bytes:
    """The same table for programs, with every text and number exactly as it is; `read_summary_json` reads it back."""
    return _DESIGNS.dump_json(tuple(summaries), indent=1, exclude_defaults=True) + b"\n"


def read_summary_json(data: bytes) -> tuple[DesignSummary, ...]:
    """The table of `write_summary_json`; ValueError if it is something else."""
    return _DESIGNS.validate_json(data)


def write_people_csv(header: Iterable[str], lines: Iterable[Iterable[str | float]]) -> bytes:
    """Lines of cells, each made with `format_cell`, as CSV for a spreadsheet program: UTF-8 with a byte order mark."""
    buffer = io.StringIO(newline="")
    buffer.write(_BOM)  # without it, spreadsheet programs read another encoding
    writer = csv.writer(buffer)
    writer.writerow(map(guard_cell, header))
    writer.writerows(lines)
    return buffer.getvalue().encode()


def encode_summary_parquet(summaries: Iterable[DesignSummary]) -> bytes:
    """One row per design as Parquet bytes, with the columns of the CSV and texts unchanged; needs the `parquet` extra.

    `reasons` and `doubts` are lists of strings. The designer's own columns are strings.
    """
    pa = import_pyarrow()
    designs = tuple(summaries)
    designer_titles = _list_designer_columns(designs)
    schema = pa.schema(
        [*make_summary_schema(), *((title, pa.string()) for title in designer_titles.values())]
    )
    lines = [
        design.model_dump(mode="json", exclude={"attributes"})
        | {title: design.attributes.get(column) for column, title in designer_titles.items()}
        for design in designs
    ]
    return write_parquet(pa.Table.from_pylist(lines, schema=schema))


def make_summary_schema() -> tuple[tuple[str, Any], ...]:
    """Name and Arrow type of each column of the table, without the designer's own."""
    pa = import_pyarrow()
    kinds = dict.fromkeys(_NUMBERS, pa.float64()) | {
        **dict.fromkeys(("control", "expects_binding", "simulated", "extrapolated"), pa.bool_()),
        **dict.fromkeys(("replicates", "replicates_averaged", "replicates_reported"), pa.int64()),
        **dict.fromkeys(("reasons", "doubts"), pa.list_(pa.string())),
    }
    return tuple((column, kinds.get(column, pa.string())) for column in _COLUMNS)


def format_cell(value: Any) -> str | float:
    """The cell of a value: numbers as they are, texts guarded, empty for None and for what is not a finite number."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return value if math.isfinite(value) else ""
    if value is None:
        return ""
    return guard_cell("; ".join(value) if isinstance(value, tuple) else str(value))


def _format_designer_cell(text: str) -> str:
    return text if _NUMBER.fullmatch(text) else guard_cell(text)


def _list_designer_columns(designs: Iterable[DesignSummary]) -> Mapping[str, str]:
    """The title of each of the designer's columns, in the order of the designs; one that is taken gets `design_`."""
    titles: dict[str, str] = {}
    taken = {column.lower() for column in _COLUMNS}
    for design in designs:
        for column in design.attributes:
            if column in titles:
                continue
            title = clean_text(column) or "column"  # two titles may differ by control characters only
            while title.lower() in taken:
                title = f"design_{title}"
            taken.add(title.lower())
            titles[column] = title
    return titles
