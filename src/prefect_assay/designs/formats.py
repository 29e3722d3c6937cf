"""The formats of designs: which one a source has, and the rows of a table.

The content decides, not the file's name. Tables are CSV and its dialects, and words separated by spaces.
"""

import csv
import itertools
import re
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Final

from prefect_assay.designs.columns import (
    COMMENTS,
    SPACE,
    ColumnNames,
    Header,
    explain,
    find_header,
    metadata_of,
    reader,
    repeated,
)
from prefect_assay.designs.fasta import is_header, name_records, read_fasta
from prefect_assay.designs.records import Halt, Rows, SourceErrors
from prefect_assay.designs.text import Block
from prefect_assay.models.spec_rules import quoted
from prefect_assay.models.vocabulary import AMINO_ACIDS

_EMPTY: Final = frozenset({"", "null", "none", "n/a"})  # none of them is a peptide; "na" and "nan" are
_TRUE: Final = frozenset({"true", "t", "yes", "y", "1", "1.0", "control"})
_FALSE: Final = frozenset({"false", "f", "no", "n", "0", "0.0", "nan", "na", "design"})
_DELIMITER_HINT = re.compile(r"sep=.", re.IGNORECASE)  # Excel's own first line
_BARE = re.compile(f"[{''.join(sorted(AMINO_ACIDS))}:*]{{10,}}", re.IGNORECASE)
_UNIT: Final = "\x1f"  # between the cells of one row; ASCII's own separator, which no spreadsheet writes


def fill(
    rows: Rows,
    blocks: Iterator[Block],
    errors: SourceErrors,
    columns: ColumnNames,
    *,
    keep_native: bool,
) -> None:
    """Add the designs of either format to `rows`; the first meaningful line decides which.

    Raises:
        Halt: reading cannot go on; `rows` holds what was read before.
    """
    for first, lines in blocks:
        for at, line in enumerate(lines):
            if not line.strip():
                continue
            rest = itertools.chain([(first + at, lines[at:])], blocks)
            if is_header(line):
                read_fasta(rows, rest)
                name_records(rows, keep_native=keep_native)
                return
            header = _table_header(line, first + at, columns)
            if header:
                _read_table(rows, header, _after_header(rest), errors)
                return
    raise Halt("empty; give a FASTA file, or a table with a name and a sequence column")


def _table_header(line: str, number: int, columns: ColumnNames) -> Header | None:
    """The columns of a table; None for a line that may come before its header."""
    header = find_header(line, columns)
    if header:
        twice = repeated(line, header)
        if twice:
            raise Halt(f"two columns are called {twice!r}; rename one", number)
        return header
    if line.startswith(COMMENTS) or _DELIMITER_HINT.fullmatch(line):
        return None
    if _BARE.fullmatch(line.strip()):
        raise Halt("a sequence without a name; put a line '>name' above it", number)
    raise Halt(explain(line, columns), number)


def _after_header(blocks: Iterator[Block]) -> Iterator[Block]:
    number, lines = next(blocks)
    yield number + 1, lines[1:]
    yield from blocks


def _read_table(rows: Rows, header: Header, blocks: Iterable[Block], errors: SourceErrors) -> None:
    """Add the rows below the header; Halt for broken quoting, after which no row can be trusted."""
    rows.unpack = partial(_unpacked, tuple(title for _, title in header.others))
    at = _Position()
    table = reader(at.feed(blocks), header.delimiter)
    while True:
        at.begin()
        try:
            row = next(table, None)
        except csv.Error as error:
            raise Halt(
                f"the row does not parse ({error}); check its quotes, and quote cells that contain "
                f"{quoted(header.delimiter)}",
                at.line,
            ) from None
        if row is None:
            return
        if any(cell.strip() for cell in row) and _fits(row, header, at.line, errors):
            _add(rows, header, row, at.line, errors)
            rows.check_number()


class _Position:
    """The line on which the current row starts; a quoted cell may span several."""

    def __init__(self) -> None:
        self.line = 0
        self._fresh = True

    def begin(self) -> None:
        self._fresh = True

    def feed(self, blocks: Iterable[Block]) -> Iterator[str]:
        for first, lines in blocks:
            for number, line in enumerate(lines, first):
                if self._fresh:
                    self.line, self._fresh = number, False
                yield line + "\n"


def _fits(row: list[str], header: Header, line: int, errors: SourceErrors) -> bool:
    """Cells beyond the header are an error; without delimiters between them, missing ones as well."""
    if header.delimiter == SPACE and len([cell for cell in row if cell]) < header.width:
        errors.add(
            f"{len(row)} words under {header.width} columns; write 'nan' for an empty cell, or save the table as CSV",
            line=line,
        )
        return False
    if len(row) > header.width and any(cell.strip() for cell in row[header.width :]):
        errors.add(
            f"{len(row)} cells under {header.width} columns; quote cells that contain {quoted(header.delimiter)}",
            line=line,
        )
        return False
    return True


def _add(rows: Rows, header: Header, row: list[str], line: int, errors: SourceErrors) -> None:
    name = _cell(row, header.name)
    if header.optional:
        given = {field: cell for field, at in header.optional.items() if _filled(cell := _cell(row, at))}
        if _control(given.get("control"), line, name, errors):
            rows.controls.add(len(rows.names))
        metadata: dict[str, Any] = metadata_of(given, line, name, errors)
        if metadata:
            rows.metadata[len(rows.names)] = metadata
    rows.lines.append(line)
    rows.names.append(name)
    rows.residues.append(_cell(row, header.sequence))
    rows.extras.append(_UNIT.join([_cell(row, at).replace(_UNIT, " ") for at, _ in header.others]))


def _unpacked(titles: tuple[str, ...], extra: str) -> dict[str, str]:
    """The designer's columns of one row, without empty cells."""
    return {title: cell for title, cell in zip(titles, extra.split(_UNIT), strict=True) if _filled(cell)}


def _cell(row: list[str], at: int) -> str:
    return row[at].strip() if at < len(row) else ""


def _filled(cell: str) -> bool:
    return cell.casefold() not in _EMPTY


def _control(cell: str | None, line: int, name: str, errors: SourceErrors) -> bool:
    word = (cell or "false").casefold()
    if word not in _TRUE | _FALSE:
        errors.add(f"control is {quoted(word)}; write true or false", line=line, name=name)
    return word in _TRUE
