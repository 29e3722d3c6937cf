"""Bytes to lines of text, in blocks: decoding, line ends, and the limits that stop a wrong file early.

A block at a time, because a pool of a million designs has millions of lines, and a call for each would be slow. What is
wrong with the bytes is an error at its line, after the lines before it have been read.
"""

import codecs
import io
import re
from collections.abc import Iterator
from typing import Any, Final

from prefect_assay.designs.tables.errors import UnreadableFile

MAX_LINE: Final = 1024 * 1024
# Bytes; smaller than a line may be, so that only a block's first line can be too long.
_BLOCK: Final = 256 * 1024

# The number of the first line, counted from 1, and the lines without their ends.
Block = tuple[int, list[str]]

# The error handler leaves surrogates of bytes that are not UTF-8.
_FAULT = re.compile("[\0\ud800-\udfff]")
_BYTES = re.compile("[\udc80-\udcff]")
# UTF-8's own form of surrogates, which only a broken program writes.
_BROKEN = re.compile("\udced[\udca0-\udcbf][\udc80-\udcbf]")
_WESTERN: Final = "cp1252"


class _Decoded:
    """Blocks of bytes as text. Bytes that are not UTF-8 are read as Windows-1252 if nothing else was beyond ASCII."""

    def __init__(self, head: bytes, notes: list[str]) -> None:
        wide = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        encoding, handler = ("utf-16", "replace") if wide else ("utf-8-sig", "surrogateescape")
        self._decoder = io.IncrementalNewlineDecoder(
            codecs.getincrementaldecoder(encoding)(handler), translate=True
        )
        self._notes = notes
        self._western: bool | None = False if wide else None
        if wide:
            notes.append("read as UTF-16 text")

    def decode_block(self, data: bytes) -> str:
        """Text of a block; Windows-1252 from the first byte on that is not UTF-8, if it is that."""
        text = self._decoder.decode(data, final=not data)
        if text.isascii() or self._western is False:
            return text
        if self._western is None:
            if not _BYTES.search(text):
                self._western = False  # it is UTF-8, and so must be what comes later
                return text
            self._western = not _BROKEN.search(text) and _BYTES.sub("", text).isascii()
            if not self._western:
                return text
            self._notes.append(
                "not UTF-8: read as Windows-1252, the usual encoding of Western European spreadsheets"
            )
        return _BYTES.sub(_decode_western, text)


def _decode_western(match: re.Match[str]) -> str:
    return bytes([ord(match.group()) & 0xFF]).decode(_WESTERN, "surrogateescape")


def read_blocks(stream: Any, limit: int, notes: list[str]) -> Iterator[Block]:
    """Lines without their ends or byte order mark; UnreadableFile names the line that is not text or beyond `limit`.

    Args:
        stream: a readable stream of bytes.
        limit: the most characters in all.
        notes: what is said of the encoding.
    """
    number, rest, left = 1, "", limit
    data = stream.read(_BLOCK)
    decoded = _Decoded(data[:2], notes)
    while True:
        text = decoded.decode_block(data)
        text, fault = _up_to_fault(text, left)
        left -= len(text)
        lines = (rest + text).split("\n")
        rest = lines.pop()
        if lines and len(lines[0]) > MAX_LINE:
            raise _too_long(number)
        if lines:
            yield number, lines
            number += len(lines)
        if fault is not None:
            raise _report_line(fault, number, len(rest) + 1, limit)
        if len(rest) > MAX_LINE:
            raise _too_long(number)
        if not data:
            break
        data = stream.read(_BLOCK)
    if rest:
        yield number, [rest]


def _up_to_fault(text: str, left: int) -> tuple[str, str | None]:
    """The text before its first bad character, and that character; it is empty for the end of the limit."""
    wrong = None if text.isascii() and "\0" not in text else _FAULT.search(text)
    if wrong and wrong.start() < left:
        return text[: wrong.start()], wrong.group()
    return (text[:left], "") if len(text) > left else (text, None)


def _report_line(fault: str, line: int, character: int, limit: int) -> UnreadableFile:
    if not fault:
        return UnreadableFile(
            f"the source is larger than {limit:,} characters; divide it into several files", line
        )
    if fault == "\0":
        return UnreadableFile("the file is binary, not text; give a FASTA or CSV file", line)
    byte = ord(fault) & 0xFF
    return UnreadableFile(
        f"not UTF-8: byte 0x{byte:02x} at character {character}; save the file as UTF-8", line
    )


def _too_long(line: int) -> UnreadableFile:
    return UnreadableFile(
        f"the line is longer than {MAX_LINE:,} characters; wrap sequences over several lines", line
    )
