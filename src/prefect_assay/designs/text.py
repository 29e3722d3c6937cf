"""Bytes to lines: encoding, line ends and limits. Reads forward only and keeps one line in memory.

The limits exist so that a wrong file (a structure archive, a model checkpoint, one endless line) ends in a
message that names the place instead of in a full memory.
"""

import io
import re
from collections.abc import Iterator
from typing import BinaryIO, Final

from prefect_assay.designs.findings import Findings

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


def lines(stream: BinaryIO, findings: Findings) -> Iterator[Line]:
    """Numbered lines without their ends, for Unix, Windows and old Mac line ends alike; a byte order mark is dropped.

    Raises:
        InvalidSequences: not text, not UTF-8, or over a limit; names the line.
    """
    buffered = io.BufferedReader(stream)  # type: ignore[type-var]  # any readable binary stream will do
    head = buffered.peek(8)
    for magic, cause in _MAGIC:
        if head.startswith(magic):
            raise findings.stop(f"this {cause}")
    text = io.TextIOWrapper(buffered, encoding="utf-8-sig", errors="surrogateescape", newline=None)
    total = 0
    number = 0
    while line := text.readline(MAX_LINE + 1):
        number += 1
        total += len(line)
        if len(line) > MAX_LINE:
            raise findings.stop(
                f"the line is longer than {MAX_LINE:,} characters; wrap sequences over several lines",
                line=number,
            )
        if total > MAX_CHARACTERS:
            raise findings.stop(
                f"the source is larger than {MAX_CHARACTERS:,} characters; divide it into several files",
                line=number,
            )
        _check(line, number, findings)
        yield number, line.removesuffix("\n")


def _check(line: str, number: int, findings: Findings) -> None:
    if "\0" in line:
        raise findings.stop("the file is binary, not text; give a FASTA or CSV file", line=number)
    wrong = _UNDECODED.search(line)
    if wrong:
        byte = ord(wrong.group()) & 0xFF
        raise findings.stop(
            f"not UTF-8: byte 0x{byte:02x} at character {wrong.start() + 1}; save the file as UTF-8",
            line=number,
        )
