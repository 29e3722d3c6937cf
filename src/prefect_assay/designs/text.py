"""Bytes to lines of text, in blocks: decoding, line ends, and the limits that stop a wrong file early.

A block at a time, because a pool of a million designs has millions of lines and a call for each is what takes the
time. What is wrong with the bytes is an error at its line, after the lines before it have been read.
"""

import codecs
import io
import re
from collections.abc import Iterator
from typing import BinaryIO, Final

from prefect_assay.designs.records import Halt

MAX_LINE: Final = 1024 * 1024
# Bytes; smaller than a line may be, so that only a block's first line can be too long.
_BLOCK: Final = 256 * 1024

# The number of the first line, counted from 1, and the lines without their ends.
Block = tuple[int, list[str]]

# The error handler leaves surrogates of bytes that are not UTF-8.
_FAULT = re.compile("[\0\ud800-\udfff]")
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
    # https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md: the first line of every pointer
    (
        b"version https://git-lfs.github.com/spec/",
        "is a Git LFS pointer, not the designs; run 'git lfs pull' where the file was cloned",
    ),
)


def blocks(stream: BinaryIO, limit: int) -> Iterator[Block]:
    """Lines without their ends or byte order mark; Halt names the line that is no UTF-8 text or beyond `limit`.

    Args:
        stream: any readable stream of bytes.
        limit: the most characters in all.
    """
    buffered = io.BufferedReader(stream)  # type: ignore[type-var]  # any readable binary stream will do
    decoder = io.IncrementalNewlineDecoder(
        codecs.getincrementaldecoder("utf-8-sig")("surrogateescape"), translate=True
    )
    number, rest, left = 1, "", limit
    data = buffered.read(_BLOCK)
    _check_magic(data)
    while True:
        text = decoder.decode(data, final=not data)
        text, fault = _up_to_fault(text, left)
        left -= len(text)
        found = (rest + text).split("\n")
        rest = found.pop()
        if found and len(found[0]) > MAX_LINE:
            raise _too_long(number)
        if found:
            yield number, found
            number += len(found)
        if fault is not None:
            raise _halt(fault, number, len(rest) + 1, limit)
        if len(rest) > MAX_LINE:
            raise _too_long(number)
        if not data:
            break
        data = buffered.read(_BLOCK)
    if rest:
        yield number, [rest]


def _check_magic(head: bytes) -> None:
    for magic, cause in _MAGIC:
        if head.startswith(magic):
            raise Halt(f"this {cause}")


def _up_to_fault(text: str, left: int) -> tuple[str, str | None]:
    """The text before its first fault, and the faulty character; it is empty for the end of the limit."""
    wrong = None if text.isascii() and "\0" not in text else _FAULT.search(text)
    if wrong and wrong.start() < left:
        return text[: wrong.start()], wrong.group()
    return (text[:left], "") if len(text) > left else (text, None)


def _halt(fault: str, line: int, character: int, limit: int) -> Halt:
    if not fault:
        return Halt(f"the source is larger than {limit:,} characters; divide it into several files", line)
    if fault == "\0":
        return Halt("the file is binary, not text; give a FASTA or CSV file", line)
    byte = ord(fault) & 0xFF
    return Halt(f"not UTF-8: byte 0x{byte:02x} at character {character}; save the file as UTF-8", line)


def _too_long(line: int) -> Halt:
    return Halt(f"the line is longer than {MAX_LINE:,} characters; wrap sequences over several lines", line)
