"""The formats of designs: bytes to numbered lines, and those to records. One line is in memory at a time.

FASTA as pipelines write it: the whole header line is the name, because they put parameters with spaces and `|` there.
Tables in CSV and its dialects. The limits make a wrong file an error with its place instead of a full memory.
"""

import csv
import io
import itertools
import re
from collections.abc import Iterable, Iterator
from typing import BinaryIO, Final

from prefect_assay.designs.columns import Header, explain, find_header, metadata_of, reader, repeated
from prefect_assay.designs.records import MAX_RESIDUES, Record, SourceErrors
from prefect_assay.models.spec_rules import quoted
from prefect_assay.models.vocabulary import AMINO_ACIDS

MAX_CHARACTERS: Final = 64 * 1024 * 1024
MAX_LINE: Final = 1024 * 1024

Line = tuple[int, str]

_UNDECODED = re.compile("[\ud800-\udfff]")  # what the error handler leaves of bytes that are not UTF-8
_MAGIC: Final = (
    (b"\x1f\x8b", "is gzip-compressed; unpack it first (gunzip)"),
    (b"PK\x03\x04", "is a zip archive or an Excel workbook; unpack it, or save the sheet as CSV UTF-8"),
    (b"\xd0\xcf\x11\xe0", "is an old Excel workbook; save the sheet as CSV UTF-8"),
    (b"%PDF", "is a PDF; give the FASTA or CSV file instead"),
    (b"PAR1", "is a Parquet file; write the table as CSV"),
    (b"BZh", "is bzip2-compressed; unpack it first (bunzip2)"),
    (b"\xfd7zXZ", "is xz-compressed; unpack it first (unxz)"),
    (b"\xff\xfe", "is UTF-16 text; save it as UTF-8 (in Excel: CSV UTF-8)"),
    (b"\xfe\xff", "is UTF-16 text; save it as UTF-8 (in Excel: CSV UTF-8)"),
)
_EMPTY: Final = frozenset({"", "null", "none", "n/a"})  # none of them is a peptide; "na" and "nan" are
_TRUE: Final = frozenset({"true", "t", "yes", "y", "1", "1.0", "control"})
_FALSE: Final = frozenset({"false", "f", "no", "n", "0", "0.0", "nan", "na", "design"})

HEADER = ">"
COMMENT = ";"
_DELIMITER_HINT = re.compile(r"sep=.", re.IGNORECASE)  # Excel's own first line
_BARE = re.compile(f"[{''.join(sorted(AMINO_ACIDS))}:*]{{10,}}", re.IGNORECASE)


def lines(stream: BinaryIO, errors: SourceErrors) -> Iterator[Line]:
    """Numbered lines without their ends or byte order mark; InvalidSequences names the line that is no UTF-8 text."""
    buffered = io.BufferedReader(stream)  # type: ignore[type-var]  # any readable binary stream will do
    head = buffered.peek(8)
    for magic, cause in _MAGIC:
        if head.startswith(magic):
            raise errors.stop(f"this {cause}")
    text = io.TextIOWrapper(buffered, encoding="utf-8-sig", errors="surrogateescape", newline=None)
    total = 0
    number = 0
    while line := text.readline(MAX_LINE + 1):
        number += 1
        total += len(line)
        if len(line) > MAX_LINE:
            raise errors.stop(
                f"the line is longer than {MAX_LINE:,} characters; wrap sequences over several lines",
                line=number,
            )
        if total > MAX_CHARACTERS:
            raise errors.stop(
                f"the source is larger than {MAX_CHARACTERS:,} characters; divide it into several files",
                line=number,
            )
        _check_line(line, number, errors)
        yield number, line.removesuffix("\n")


def _check_line(line: str, number: int, errors: SourceErrors) -> None:
    if "\0" in line:
        raise errors.stop("the file is binary, not text; give a FASTA or CSV file", line=number)
    wrong = _UNDECODED.search(line)
    if wrong:
        byte = ord(wrong.group()) & 0xFF
        raise errors.stop(
            f"not UTF-8: byte 0x{byte:02x} at character {wrong.start() + 1}; save the file as UTF-8",
            line=number,
        )


def records(numbered: Iterator[Line], errors: SourceErrors) -> Iterator[Record]:
    """Records of either format; the first meaningful line decides which, not the file's name."""
    for number, line in numbered:
        if not line.strip():
            continue
        if is_header(line):
            return fasta_records(itertools.chain([(number, line)], numbered))
        header = find_header(line)
        if header:
            twice = repeated(line, header)
            if twice:
                raise errors.stop(f"two columns are called {twice!r}; rename one", line=number)
            return table_records(header, numbered, errors)
        if line.startswith((COMMENT, "#")) or _DELIMITER_HINT.fullmatch(line):
            continue
        if _BARE.fullmatch(line.strip()):
            raise errors.stop("a sequence without a name; put a line '>name' above it", line=number)
        raise errors.stop(explain(line), line=number)
    raise errors.stop("empty; give a FASTA file, or a table with a name and a sequence column")


def is_header(line: str) -> bool:
    """Return True if a FASTA record starts on this line."""
    return line.lstrip().startswith(HEADER)


def fasta_records(numbered: Iterable[Line]) -> Iterator[Record]:
    """Records of FASTA lines, the first of which is a header."""
    start: Line | None = None
    chunks: list[str] = []
    length = 0
    for number, line in numbered:
        if is_header(line):
            if start is not None:
                yield _fasta_record(start, chunks)
            start, chunks, length = (number, line), [], 0
        # One residue over the limit is enough to refuse.
        elif not line.startswith(COMMENT) and length <= MAX_RESIDUES:
            chunk = "".join(line.split())
            chunks.append(chunk)
            length += len(chunk)
    if start is not None:
        yield _fasta_record(start, chunks)


def _fasta_record(start: Line, chunks: list[str]) -> Record:
    number, header = start
    return Record(line=number, name=header.lstrip()[len(HEADER) :].strip(), residues="".join(chunks))


def table_records(header: Header, numbered: Iterable[Line], errors: SourceErrors) -> Iterator[Record]:
    """Records of the rows below the header; InvalidSequences for broken quoting, after which no row can be trusted."""
    at = _Position()
    rows = reader(at.feed(numbered), header.delimiter)
    while True:
        at.begin()
        try:
            row = next(rows, None)
        except csv.Error as error:
            raise errors.stop(
                f"the row does not parse ({error}); check its quotes, and quote cells that contain "
                f"{quoted(header.delimiter)}",
                line=at.line,
            ) from None
        if row is None:
            return
        if not any(cell.strip() for cell in row):
            continue
        if len(row) > header.width and any(cell.strip() for cell in row[header.width :]):
            errors.add(
                f"{len(row)} cells under {header.width} columns; quote cells that contain {quoted(header.delimiter)}",
                line=at.line,
            )
            continue
        yield _table_record(header, row, at.line, errors)


class _Position:
    """The line on which the current row starts; a quoted cell may span several."""

    def __init__(self) -> None:
        self.line = 0
        self._fresh = True

    def begin(self) -> None:
        self._fresh = True

    def feed(self, numbered: Iterable[Line]) -> Iterator[str]:
        for number, line in numbered:
            if self._fresh:
                self.line, self._fresh = number, False
            yield line + "\n"


def _table_record(header: Header, row: list[str], line: int, errors: SourceErrors) -> Record:
    name = _cell(row, header.name)
    given = {field: cell for field, at in header.optional.items() if _filled(cell := _cell(row, at))}
    return Record(
        line=line,
        name=name,
        residues="".join(_cell(row, header.sequence).split()),
        control=_control(given.get("control"), line, name, errors),
        metadata=metadata_of(given, line, name, errors),
        attributes={title: cell for at, title in header.others if _filled(cell := _cell(row, at))},
    )


def _cell(row: list[str], at: int) -> str:
    return row[at].strip() if at < len(row) else ""


def _filled(cell: str) -> bool:
    return cell.casefold() not in _EMPTY


def _control(cell: str | None, line: int, name: str, errors: SourceErrors) -> bool:
    word = (cell or "false").casefold()
    if word not in _TRUE | _FALSE:
        errors.add(f"control is {quoted(word)}; write true or false", line=line, name=name)
    return word in _TRUE
