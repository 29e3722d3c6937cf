"""The formats of designs: which one a source has, and the rows of a table.

The content decides, not the file's name. Tables are CSV and its dialects, and words separated by spaces.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from prefect_assay.designs.columns import ColumnNames, Header, explain, find_header, metadata_of, repeated
from prefect_assay.designs.fasta import is_header, name_records, read_fasta
from prefect_assay.designs.records import Rows, SourceErrors
from prefect_assay.models.spec_rules import quoted
from prefect_assay.models.vocabulary import AMINO_ACIDS
from prefect_assay.tables import Content, NoHeader, Table, UnreadableFile, sheet_table, text_table
from prefect_assay.tables.table import Accepts, is_comment
from prefect_assay.tables.text import Block

_EMPTY: Final = frozenset({"", "null", "none", "n/a"})  # none of them is a peptide; "na" and "nan" are
_TRUE: Final = frozenset({"true", "t", "yes", "y", "1", "1.0", "control"})
_FALSE: Final = frozenset({"false", "f", "no", "n", "0", "0.0", "nan", "na", "design"})
_BARE = re.compile(f"[{''.join(sorted(AMINO_ACIDS))}:*]{{10,}}", re.IGNORECASE)
_UNIT: Final = "\x1f"  # between the cells of one row; ASCII's own separator, which no spreadsheet writes


def fill(
    rows: Rows,
    found: Content,
    errors: SourceErrors,
    columns: ColumnNames,
    *,
    keep_native: bool,
) -> None:
    """Add the designs of either format to `rows`; the first meaningful line decides which.

    Raises:
        UnreadableFile: reading cannot go on; `rows` holds what was read before.
    """

    def accepts(titles: Sequence[str]) -> bool:
        return find_header(titles, columns) is not None

    try:
        if found.lines is None:
            table = sheet_table(found.sheets, accepts, found.notes)
        else:
            first = _first_line(found.lines, accepts)
            if is_header(first.line):
                read_fasta(rows, first.rest)
                name_records(rows, keep_native=keep_native)
                rows.notes += found.notes
                return
            table = text_table(first.rest, accepts, found.notes)
    except NoHeader as error:
        if _BARE.fullmatch(error.text.strip()):
            raise UnreadableFile(
                "a sequence without a name; put a line '>name' above it", error.line
            ) from None
        raise UnreadableFile(explain(error.titles, columns), error.line) from None
    _read_table(rows, table, columns, errors)
    rows.notes += table.notes


@dataclass(frozen=True, slots=True)
class _First:
    """The first line that is neither empty nor a comment, and the lines from there on."""

    line: str
    rest: Iterator[Block]


def _first_line(blocks: Iterator[Block], accepts: Accepts) -> _First:
    for first, lines in blocks:
        for at, line in enumerate(lines):
            if line.strip() and not is_comment(line, accepts):
                return _First(line, itertools.chain([(first + at, lines[at:])], blocks))
    raise UnreadableFile("empty; give a FASTA file, or a table with a name and a sequence column")


def _read_table(rows: Rows, table: Table, columns: ColumnNames, errors: SourceErrors) -> None:
    """Add the rows below the header."""
    header = find_header(table.titles, columns)
    if header is None:
        raise UnreadableFile(explain(table.titles, columns), table.line)
    if twice := repeated(table.titles, header):
        raise UnreadableFile(f"two columns are called {twice!r}; rename one", table.line)
    rows.unpack = partial(_unpacked, tuple(title for _, title in header.others))
    for line, cells in table.rows:
        if misfit := table.misfit(cells):
            errors.add(misfit, line=line)
        else:
            _add(rows, header, cells, line, errors)
            rows.check_number()


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
    return row[at] if at < len(row) else ""


def _filled(cell: str) -> bool:
    return cell.casefold() not in _EMPTY


def _control(cell: str | None, line: int, name: str, errors: SourceErrors) -> bool:
    word = (cell or "false").casefold()
    if word not in _TRUE | _FALSE:
        errors.add(f"control is {quoted(word)}; write true or false", line=line, name=name)
    return word in _TRUE
