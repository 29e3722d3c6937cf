"""Reading a text table with one row of titles: comma, semicolon or tab; UTF-8 or Windows-1252; plain or gzip."""

import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

DELIMITERS: Final = (",", ";", "\t")
_GZIP: Final = b"\x1f\x8b"
_WORKBOOKS: Final = (b"PK\x03\x04", b"PAR1", b"\xd0\xcf\x11\xe0")


class UnreadableTable(ValueError):
    """A file is not such a table, or is damaged. `line` counts from 1; None is the whole file."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.line = line


@dataclass(frozen=True, slots=True)
class TextTable:
    """Titles and rows, all cells without white space around them; each row has a cell per title."""

    titles: tuple[str, ...]
    title_line: int
    delimiter: str
    rows: tuple[tuple[int, tuple[str, ...]], ...]  # each with the line on which it starts


def read_text_table(path: Path) -> TextTable:
    """Read a whole file.

    Raises:
        UnreadableTable: it is empty, binary, damaged, or a row has more cells than there are titles.
        OSError: it cannot be read.
    """
    text = _decode_text(path.read_bytes())
    delimiter = max(DELIMITERS, key=lambda each: len(_first_cells(text, each)))
    rows = _read_rows(text, delimiter)
    title_line, titles = next(rows, (0, ()))
    if not titles:
        raise UnreadableTable("the file is empty")
    return TextTable(
        titles=titles,
        title_line=title_line,
        delimiter=delimiter,
        rows=tuple((line, _fit_cells(cells, len(titles), line)) for line, cells in rows),
    )


def _decode_text(data: bytes) -> str:
    if data.startswith(_GZIP):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise UnreadableTable(f"the compressed file is damaged ({error})") from error
    if data.startswith(_WORKBOOKS):
        raise UnreadableTable("a workbook or a Parquet file; save the table as CSV")
    if b"\0" in data:
        raise UnreadableTable("binary data", data[: data.index(b"\0")].count(b"\n") + 1)
    for encoding in ("utf-8-sig", "cp1252"):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise UnreadableTable("neither UTF-8 nor Windows-1252; save it as CSV in UTF-8")


def _first_cells(text: str, delimiter: str) -> tuple[str, ...]:
    try:
        return next(_read_rows(text, delimiter), (0, ()))[1]
    except UnreadableTable:
        return ()


def _read_rows(text: str, delimiter: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The rows that have a filled cell."""
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True, strict=True
    )
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise UnreadableTable(
                f"the row does not parse ({error}); check its quotes, and quote cells that contain {delimiter!r}",
                line,
            ) from error
        if cells is None:
            return
        stripped = tuple(cell.strip() for cell in cells)
        if any(stripped):
            yield line, stripped


def _fit_cells(cells: tuple[str, ...], width: int, line: int) -> tuple[str, ...]:
    if any(cells[width:]):
        raise UnreadableTable(f"{len(cells)} cells under {width} columns; quote cells with delimiters", line)
    return (*cells[:width], *[""] * (width - len(cells)))
