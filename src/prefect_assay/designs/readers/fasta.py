"""FASTA as pipelines write it: wrapped lines, comments, parameters behind the name; and PIR, which has a line of title.

A block of lines is divided into records at once, because a call for each line would be slow. What is rare (comments, indented
headers) is looked for once per record.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from prefect_assay.designs.readers.chain_text import STOP, USUAL_WIDTHS
from prefect_assay.designs.readers.headers import (
    add_parents,
    header_fields,
    is_mpnn,
    name_colab,
    name_samples,
    split_headers,
)
from prefect_assay.designs.readers.records import MAX_RESIDUES, Rows
from prefect_assay.designs.tables.errors import UnreadableFile
from prefect_assay.designs.tables.text import Block
from prefect_assay.service.words import many

HEADER: Final = ">"
COMMENT: Final = ";"
# https://www.bioinformatics.nl/tools/crab_pir.html: type and code, then a line of title, then the sequence up to `*`.
_PIR = re.compile(r"(?P<kind>P1|F1|DL|DC|RL|RC|N1|N3|XX);(?P<code>.*)")
_PIR_PROTEINS: Final = frozenset({"P1", "F1", "XX"})
_LONG_LINE: Final = 90  # two lines from here on may be two chains
_SHORT_LINE: Final = 30  # a line that is followed by longer ones may be a title
_CHAIN_MARKS: Final = (
    ":",
    "/",
    STOP,
)  # where chains end, if a body has one of them; its line ends are then layout
_HAND_WRAPPED: Final = 80  # lines up to here of nearly one width are a sequence that was edited by hand


def is_header(line: str) -> bool:
    """Return True if a record starts on this line."""
    return line.lstrip().startswith(HEADER)


@dataclass(slots=True)
class _Wrapping:
    """The number of bodies in several lines, and those that may be several chains, by position."""

    wrapped: int = 0
    doubtful: dict[int, str] = field(default_factory=dict)
    all_begin_with_m: dict[int, tuple[int, str]] = field(default_factory=dict)  # width and body
    two_lines: dict[int, tuple[int, str]] = field(default_factory=dict)  # the same, of an unusual width
    widths: set[int] = field(default_factory=set)  # of bodies in more than two lines
    pir: list[str] = field(default_factory=list)


def read_fasta(rows: Rows, blocks: Iterable[Block]) -> None:
    """Add the records of lines of which the first is a header; names are whole header lines, to be named next.

    Bodies that may be several chains keep their line ends, so that the checks refuse them.
    """
    wrapping = _Wrapping()
    line, cut, rest = 0, 0, ""
    for first, lines in blocks:
        text = "\n".join(lines)
        if line:
            text = f"{rest}\n{text}"
        else:  # the first header of a file may be indented
            line, text = first, text.lstrip()[1:]
        *records, rest = text.split(f"\n{HEADER}")
        line = _add_records(rows, line, records, cut, wrapping)
        cut = 0 if records else cut
        rows.check_number()
        if len(rest) > 2 * MAX_RESIDUES:
            rest, gone = _shorten_record(rest)
            cut += gone
    _add_records(rows, line, [rest], 0, wrapping)
    _settle_wrapping(rows, wrapping)
    rows.check_number()


def _add_records(rows: Rows, line: int, records: Sequence[str], cut: int, wrapping: _Wrapping) -> int:
    """Add records without their `>`; of the first, `cut` lines are gone. Returns the line of the record behind them.

    This loop is the cost of reading: it calls nothing for records of letters alone in lines of one width.
    """
    add_line, add_name, add_residues = rows.lines.append, rows.names.append, rows.residues.append
    wrapped = 0
    for record in records:
        header, end, body = record.partition("\n")
        residues = body.replace("\n", "")
        ends = len(body) - len(residues)
        is_usual = not (COMMENT in record or HEADER in residues or " " in residues)
        if ends and is_usual:
            width = body.index("\n")
            is_usual = 0 < len(body) - (width + 1) * ends <= width < _LONG_LINE and body[0] != body[width + 1]
            if ends == 1:
                is_usual = is_usual and width in USUAL_WIDTHS
            elif is_usual:
                wrapping.widths.add(width)
            wrapped += 1
        if is_usual:
            add_line(line)
            add_name(header.strip())
            add_residues(residues)
        else:
            _add_record(rows, line, header, body, wrapping)
        line += ends + (2 if end else 1)
        if cut:
            line, cut = line + cut, 0
    wrapping.wrapped += wrapped
    return line


def name_records(rows: Rows, *, keep_native: bool) -> None:
    """Turn header lines into names and the designer's columns."""
    rows.unpack = header_fields
    if is_mpnn(rows.names):
        name_samples(rows, keep_native=keep_native)
        return
    if name_colab(rows):
        return
    named = split_headers(rows.names)
    if named is not None:
        rows.names, rows.extras = named
        add_parents(rows)


def _add_record(rows: Rows, line: int, header: str, body: str, wrapping: _Wrapping) -> None:
    if header[2:3] == COMMENT and (pir := _PIR.match(header)):
        header, body = _split_pir_record(pir, line, body, wrapping)
    if COMMENT in body or HEADER in body:
        _add_by_line(rows, line, header, body, wrapping)
        return
    _append_row(rows, line, header, body, wrapping)


def _append_row(rows: Rows, line: int, header: str, body: str, wrapping: _Wrapping) -> None:
    _note_wrapping(len(rows.names), body, wrapping)
    rows.lines.append(line)
    rows.names.append(header.strip())
    rows.residues.append(body.replace("\n", ""))


def _add_by_line(rows: Rows, start: int, header: str, body: str, wrapping: _Wrapping) -> None:
    """The same for a body with comments, or with indented headers, which start records of their own."""
    kept: list[str] = []
    for number, line in enumerate(body.split("\n"), start + 1):
        if is_header(line):
            _append_row(rows, start, header, "\n".join(kept), wrapping)
            start, header, kept = number, line.lstrip()[1:], []
        elif not line.startswith(COMMENT):
            kept.append(line)
    _append_row(rows, start, header, "\n".join(kept), wrapping)


def _split_pir_record(pir: re.Match[str], line: int, body: str, wrapping: _Wrapping) -> tuple[str, str]:
    """The code and the residues of a PIR record, without its line of title."""
    title, _, body = body.partition("\n")
    if pir["kind"] not in _PIR_PROTEINS:
        raise UnreadableFile(f"a PIR record of nucleotides ({pir['kind']}); translate it", line)
    if not body.rstrip().endswith(STOP):
        raise UnreadableFile(
            f"a PIR record ({pir['kind']}) has a line of title, then its sequence up to a closing '*', which is missing here; write "
            "the design as FASTA",
            line,
        )
    wrapping.pir.append(title.strip())
    lines = [part.strip() for part in body.split("\n")]
    return pir["code"], "\n".join([*filter(None, lines)])


def _note_wrapping(index: int, body: str, wrapping: _Wrapping) -> None:
    """Keep a body that may be several chains, a title and a chain, or words."""
    is_marked = any(mark in body for mark in _CHAIN_MARKS)
    body = body.rstrip("\n*")
    if " " in body or "\n\n" in body:
        wrapping.doubtful[index] = body
        return
    ends = body.count("\n")
    if not ends:
        return
    width = body.index("\n")
    last = len(body) - (width + 1) * ends
    if ends > 1 and 0 < last <= width:
        wrapping.widths.add(width)
    if not 0 < last <= width:
        lengths = [len(part) for part in body.split("\n")]
        if ends == 1 or min(lengths[:-1]) < _SHORT_LINE or max(lengths) > _HAND_WRAPPED:
            wrapping.doubtful[index] = body
    elif width >= _SHORT_LINE:
        is_long = width >= _LONG_LINE and (ends > 1 or last >= _LONG_LINE)
        if body[0] == "M" and body.count("\nM") == ends:
            wrapping.all_begin_with_m[index] = (width, body)
        elif is_long or body.startswith(body[:width], width + 1):
            wrapping.doubtful[index] = body
        elif ends == 1 and width not in USUAL_WIDTHS and not is_marked:
            wrapping.two_lines[index] = (width, body)


def _settle_wrapping(rows: Rows, wrapping: _Wrapping) -> None:
    """Give doubtful bodies their line ends back.

    Of many records of one usual width, some have M at the beginning of a line. Two lines of an unusual width are one chain
    where longer records have this width.
    """
    doubtful = wrapping.doubtful
    are_many = 3 * len(wrapping.all_begin_with_m) > wrapping.wrapped
    for index, (width, body) in wrapping.all_begin_with_m.items():
        if are_many or width not in USUAL_WIDTHS:
            doubtful[index] = body
    for index, (width, body) in wrapping.two_lines.items():
        if width not in wrapping.widths:
            doubtful[index] = body
    for index, body in doubtful.items():
        rows.residues[index] = body
    if wrapping.pir:
        rows.notes.append(
            f"PIR: the line of title of {many(len(wrapping.pir), 'record')} was left out, as {wrapping.pir[0]!r}; names are the codes behind '>P1;'"
        )


def _shorten_record(record: str) -> tuple[str, int]:
    """A record that is longer than any protein, cut to what is enough to refuse it, and the number of lines that are gone."""
    header, _, body = record.partition("\n")
    if len(body) <= 2 * MAX_RESIDUES or HEADER in body or COMMENT in body:
        return record, 0
    return f"{header}\n{''.join(body.split())[: MAX_RESIDUES + 1]}", body.count("\n")
