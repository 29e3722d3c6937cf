"""Tells by its first bytes what a file is: text, compressed text, a workbook or Parquet; and reads its content.

The name of the file decides nothing. Compressed text is read as a stream. A zip archive is read if it holds one file.
"""

import bz2
import datetime as dt
import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final

from prefect_assay.designs.tables.errors import UnreadableFile
from prefect_assay.designs.tables.text import Block, read_blocks
from prefect_assay.designs.tables.workbook import Layout, layouts_of
from prefect_assay.service.words import many

# A workbook and a Parquet file are held in memory as a whole.
WHOLE_BYTES: Final = 256 * 1024 * 1024
UNPACKED_BYTES: Final = 1024 * 1024 * 1024
_RATIO: Final = 100  # of a workbook; real ones unpack to five to twenty times their size
_RATIO_FROM: Final = 16 * 1024 * 1024
_BATCH_ROWS: Final = 65_536
_BATCH_BYTES: Final = 64 * 1024 * 1024
_NESTED: Final = 3  # a gzip file in a zip archive is two
_LISTED: Final = 8
_HEAD: Final = 64
_GZIP, _BZIP2, _XZ, _ZIP = (
    b"\x1f\x8b",
    b"BZh",
    b"\xfd7zXZ\x00",
    (b"PK\x03\x04", b"PK\x05\x06"),
)  # the second is an empty archive
_OLD_WORKBOOK, _PARQUET = b"\xd0\xcf\x11\xe0", b"PAR1"
_STREAMS: Final = ((_GZIP, "gzip", gzip.open), (_BZIP2, "bzip2", bz2.open), (_XZ, "xz", lzma.open))
_DAMAGED: Final = (EOFError, OSError, lzma.LZMAError, zlib.error)
_REFUSED: Final = (
    (b"%PDF", "is a PDF; give the FASTA or CSV file instead"),
    # https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md: the first line of every pointer
    (
        b"version https://git-lfs.github.com/spec/",
        "is a Git LFS pointer, not the file itself; run 'git lfs pull' where it was cloned",
    ),
)

Cells = list[str]


@dataclass(frozen=True, slots=True)
class Sheet:
    """A sheet of a workbook, or the one table of a Parquet file: its rows as text, the first of them the first line."""

    name: str
    rows: Iterable[Cells]
    is_hidden: bool = False
    layout: Layout = field(default_factory=Layout)


@dataclass(slots=True)
class Content:
    """The lines of a text, or the sheets of a workbook; `notes` says how it was unpacked, and grows while it is read."""

    kind: str
    lines: Iterator[Block] | None = None
    sheets: tuple[Sheet, ...] = ()
    notes: list[str] = field(default_factory=list)


def read_content(stream: BinaryIO, limit: int) -> Content:
    """The content of any file that is read here; `limit` is the most characters of text.

    Raises:
        UnreadableFile: it is something else, or is damaged; also later, while lines are read.
    """
    return _content(stream, limit, [], _NESTED)


def _content(stream: BinaryIO, limit: int, notes: list[str], depth: int) -> Content:
    buffered = io.BufferedReader(stream)  # type: ignore[type-var]  # any readable binary stream will do
    try:
        head = buffered.peek(_HEAD)[:_HEAD]
    except _DAMAGED as error:
        raise _report_damage(error) from None
    for magic, cause in _REFUSED:
        if head.startswith(magic):
            raise UnreadableFile(f"this {cause}")
    for magic, kind, unpack in _STREAMS:
        if head.startswith(magic):
            _check_depth(depth)
            notes.append(f"unpacked from {kind}")
            return _content(_Unpacked(unpack(buffered), kind), limit, notes, depth - 1)  # type: ignore[arg-type]
    if head.startswith(_ZIP):
        return _from_zip(_read_whole(buffered), limit, notes, depth)
    if head.startswith(_OLD_WORKBOOK):
        notes.append(
            "rows that are hidden in an xls file are not told apart: save it as xlsx if rows were filtered"
        )
        return Content("xls", sheets=_read_sheets(_read_whole(buffered), {}), notes=notes)
    if head.startswith(_PARQUET):
        return Content(
            "Parquet", sheets=(Sheet("", _parquet_rows(_read_whole(buffered), limit)),), notes=notes
        )
    return Content("text", lines=read_blocks(buffered, limit, notes), notes=notes)


class _Unpacked(io.RawIOBase):
    """A stream that names damaged data as such."""

    def __init__(self, stream: Any, kind: str) -> None:
        self._stream = stream
        self._kind = kind

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._stream.read(len(buffer))
        except _DAMAGED as error:
            raise _report_damage(error, self._kind) from None
        buffer[: len(data)] = data
        return len(data)


def _report_damage(error: Exception, kind: str = "") -> UnreadableFile:
    what = f"the {kind} data are" if kind else "the file is"
    return UnreadableFile(
        f"{what} damaged or incomplete ({type(error).__name__}); copy or write the file again"
    )


def _check_depth(depth: int) -> None:
    if not depth:
        raise UnreadableFile("a compressed file in a compressed file in another one; unpack it first")


def _read_whole(stream: Any) -> bytes:
    try:
        data: bytes = stream.read(WHOLE_BYTES + 1)
    except _DAMAGED as error:
        raise _report_damage(error) from None
    if len(data) > WHOLE_BYTES:
        raise UnreadableFile(f"larger than {WHOLE_BYTES:,} bytes; write the table as CSV")
    return data


def _from_zip(data: bytes, limit: int, notes: list[str], depth: int) -> Content:
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except zipfile.BadZipFile as error:
        raise _report_damage(error, "zip") from None
    names = [member.filename for member in archive.infolist()]
    if sum(member.file_size for member in archive.infolist()) > UNPACKED_BYTES:
        raise UnreadableFile(
            f"larger than {UNPACKED_BYTES:,} bytes when it is unpacked; divide it into several files"
        )
    if "[Content_Types].xml" in names or "content.xml" in names:
        kind = "ods" if "content.xml" in names else "xlsx"
        _check_ratio(sum(member.file_size for member in archive.infolist()), len(data))
        return Content(kind, sheets=_read_sheets(data, layouts_of(archive)), notes=notes)
    _check_depth(depth)
    members = [member for member in archive.infolist() if _is_member(member)]
    if len(members) != 1:
        listed = ", ".join(member.filename for member in members[:_LISTED])
        more = f" and {len(members) - _LISTED} more" if len(members) > _LISTED else ""
        raise UnreadableFile(
            f"a zip archive of {many(len(members), 'file')} ({listed}{more}); unpack it, and give one of them"
            if members
            else "a zip archive without a file in it"
        )
    try:
        stream = archive.open(members[0])
    except (RuntimeError, NotImplementedError, zipfile.BadZipFile) as error:
        raise UnreadableFile(
            f"{members[0].filename} in the zip archive cannot be read: {error}; unpack it"
        ) from None
    notes.append(f"{members[0].filename} was read from the zip archive")
    return _content(_Unpacked(stream, "zip"), limit, notes, depth - 1)  # type: ignore[arg-type]


def _is_member(member: zipfile.ZipInfo) -> bool:
    """Not a folder, and not what archivers add of their own."""
    name = member.filename
    return not (member.is_dir() or name.startswith("__MACOSX/") or name.rpartition("/")[2].startswith("."))


def _check_ratio(unpacked: int, packed: int) -> None:
    if unpacked > _RATIO_FROM and unpacked > _RATIO * packed:
        raise UnreadableFile(
            f"the workbook unpacks to {unpacked // packed:,} times its size; save the sheet as CSV UTF-8"
        )


def _read_sheets(data: bytes, layouts: Mapping[str, Layout]) -> tuple[Sheet, ...]:
    """The sheets, whose rows are read when they are asked for, one sheet after the other."""
    try:
        import python_calamine as calamine  # noqa: PLC0415  an optional extra
    except ImportError:
        raise UnreadableFile(
            "a workbook; install the extra `spreadsheets` to read it, or save the sheet as CSV UTF-8"
        ) from None
    with _named_workbook_errors(calamine):
        book = calamine.CalamineWorkbook.from_filelike(io.BytesIO(data))
        sheets = [
            (sheet.name, sheet.visible != calamine.SheetVisibleEnum.Visible) for sheet in book.sheets_metadata
        ]

    def rows(name: str, layout: Layout) -> Iterator[Cells]:
        with _named_workbook_errors(calamine):
            table = book.get_sheet_by_name(name).to_python(skip_empty_area=False)
        for number, row in enumerate(table, 1):
            cells = [_format_cell(cell) for cell in row]
            for column, error in layout.errors.get(number, {}).items():
                cells[column - 1] = error
            yield cells

    entries = [(name, is_hidden, layouts.get(name, Layout())) for name, is_hidden in sheets]
    return tuple(Sheet(name, rows(name, layout), is_hidden, layout) for name, is_hidden, layout in entries)


@contextmanager
def _named_workbook_errors(calamine: Any) -> Iterator[None]:
    try:
        yield
    except calamine.PasswordError:
        raise UnreadableFile("the workbook is protected by a password; save the sheet as CSV UTF-8") from None
    except (calamine.CalamineError, OSError, ValueError, MemoryError, OverflowError) as error:
        raise UnreadableFile(f"the workbook cannot be read: {error}; save the sheet as CSV UTF-8") from None


def _parquet_rows(data: bytes, limit: int) -> Iterator[Cells]:
    try:
        from pyarrow import ArrowException  # noqa: PLC0415  an optional extra
        from pyarrow.parquet import ParquetFile  # noqa: PLC0415
    except ImportError:
        raise UnreadableFile(
            "a Parquet file; install the extra `parquet` to read it, or write the table as CSV"
        ) from None
    try:
        file = ParquetFile(io.BytesIO(data))
        groups = [file.metadata.row_group(index) for index in range(file.metadata.num_row_groups)]
        # A value that is repeated is stored once, and takes at most the room of its column.
        largest = max(
            (
                group.column(index).total_uncompressed_size
                for group in groups
                for index in range(group.num_columns)
            ),
            default=0,
        )
        if largest > UNPACKED_BYTES:
            raise UnreadableFile(
                f"a column of more than {UNPACKED_BYTES:,} bytes; divide the file into several"
            )
        yield list(file.schema_arrow.names)
        for batch in file.iter_batches(batch_size=max(1, min(_BATCH_ROWS, _BATCH_BYTES // (largest + 1)))):
            columns = [[_format_cell(cell) for cell in column.to_pylist()] for column in batch.columns]
            limit -= sum(len(cell) for column in columns for cell in column)
            if limit < 0:
                raise UnreadableFile("more characters than are read; divide the file into several")
            yield from map(list, zip(*columns, strict=True))
    except (ArrowException, OSError, MemoryError) as error:
        raise UnreadableFile(
            f"the Parquet file cannot be read ({type(error).__name__}); write it again"
        ) from None


def _format_cell(cell: Any) -> str:
    """A cell as a person would type it: 12 for 12.0, a day without its midnight."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 2**53 else repr(cell)
    if isinstance(cell, dt.datetime) and cell.time() == dt.time():
        return cell.date().isoformat()
    return str(cell)
