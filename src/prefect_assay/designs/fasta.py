"""FASTA as pipelines write it: wrapped lines, comments, parameters behind the name; and PIR, which has a line of title.

A block of lines is divided into records at once, because a call for each line would be slow. What is rare (comments, indented
headers) is looked for once per record.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from prefect_assay.designs.chain_text import STOP, USUAL_WIDTHS
from prefect_assay.designs.headers import (
    add_parents,
    first_words,
    header_fields,
    is_mpnn,
    name_colab,
    name_samples,
)
from prefect_assay.designs.records import MAX_RESIDUES, Rows
from prefect_assay.models.words import many
from prefect_assay.tables import UnreadableFile
from prefect_assay.tables.text import Block

HEADER: Final = ">"
COMMENT: Final = ";"
# https://www.bioinformatics.nl/tools/crab_pir.html: type and code, then a line of title, then the sequence up to `*`.
_PIR = re.compile(r"(?P<kind>P1|F1|DL|DC|RL|RC|N1|N3|XX);(?P<code>.*)")
_PIR_PROTEINS: Final = frozenset({"P1", "F1", "XX"})
_LONG_LINE: Final = 90  # two lines from here on may be two chains
_SHORT_LINE: Final = 30  # a line that is followed by longer ones may be a title
_HAND_WRAPPED: Final = 80  # lines up to here of nearly one width are a sequence that was edited by hand


def is_header(line: str) -> bool:
    """Return True if a record starts on this line."""
    return line.lstrip().startswith(HEADER)


@dataclass(slots=True)
class _Wrapping:
    """How bodies of several lines are wrapped: all of them by their width, and those that may be several chains."""

    widths: dict[int, int] = field(default_factory=dict)
    doubtful: dict[int, str] = field(default_factory=dict)  # by position
    all_begin_with_m: dict[int, tuple[int, str]] = field(default_factory=dict)  # width and body
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
        for record in records:
            _add(rows, line, record, wrapping)
            line += record.count("\n") + 1 + cut
            cut = 0
        rows.check_number()
        if len(rest) > 2 * MAX_RESIDUES:
            rest, gone = _shortened(rest)
            cut += gone
    _add(rows, line, rest, wrapping)
    _settle_wrapping(rows, wrapping)
    rows.check_number()


def name_records(rows: Rows, *, keep_native: bool) -> None:
    """Turn header lines into names and the designer's columns."""
    rows.unpack = header_fields
    if is_mpnn(rows.names):
        name_samples(rows, keep_native=keep_native)
        return
    if name_colab(rows):
        return
    named = first_words(rows.names)
    if named is not None:
        rows.names, rows.extras = named
        add_parents(rows)


def _add(rows: Rows, line: int, record: str, wrapping: _Wrapping) -> None:
    header, _, body = record.partition("\n")
    if header[2:3] == COMMENT and (pir := _PIR.match(header)):
        header, body = _open_pir(pir, line, body, wrapping)
    if COMMENT in body or HEADER in body:
        _add_by_line(rows, line, header, body, wrapping)
        return
    residues = body.replace("\n", "")
    if " " in residues or body.find("\n", 0, -1) >= 0:
        _note_wrapping(len(rows.names), body, wrapping)
    rows.lines.append(line)
    rows.names.append(header.strip())
    rows.residues.append(residues)


def _add_by_line(rows: Rows, start: int, header: str, body: str, wrapping: _Wrapping) -> None:
    """The same for a body with comments, or with indented headers, which start records of their own."""
    kept: list[str] = []
    for number, line in enumerate(body.split("\n"), start + 1):
        if is_header(line):
            _add(rows, start, "\n".join([header, *kept]), wrapping)
            start, header, kept = number, line.lstrip()[1:], []
        elif not line.startswith(COMMENT):
            kept.append(line)
    _note_wrapping(len(rows.names), "\n".join(kept), wrapping)
    rows.lines.append(start)
    rows.names.append(header.strip())
    rows.residues.append("".join(kept))


def _open_pir(pir: re.Match[str], line: int, body: str, wrapping: _Wrapping) -> tuple[str, str]:
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


def _note_wrapping(at: int, body: str, wrapping: _Wrapping) -> None:
    """Keep a body that may be several chains, a title and a chain, or words."""
    body = body.rstrip("\n*")
    if " " in body or "\n\n" in body:
        wrapping.doubtful[at] = body
        return
    ends = body.count("\n")
    if not ends:
        return
    width = body.index("\n")
    wrapping.widths[width] = wrapping.widths.get(width, 0) + 1
    last = len(body) - (width + 1) * ends
    if not 0 < last <= width:
        lengths = [len(part) for part in body.split("\n")]
        if ends == 1 or min(lengths[:-1]) < _SHORT_LINE or max(lengths) > _HAND_WRAPPED:
            wrapping.doubtful[at] = body
    elif width >= _SHORT_LINE:
        is_long = width >= _LONG_LINE and (ends > 1 or last >= _LONG_LINE)
        if body[0] == "M" and body.count("\nM") == ends:
            wrapping.all_begin_with_m[at] = (width, body)
        elif is_long or body.startswith(body[:width], width + 1):
            wrapping.doubtful[at] = body


def _settle_wrapping(rows: Rows, wrapping: _Wrapping) -> None:
    """Give doubtful bodies their line ends back. Of many records of one usual width, some have M at the beginning of a line."""
    doubtful = wrapping.doubtful
    together: dict[int, int] = {}
    for width, _ in wrapping.all_begin_with_m.values():
        together[width] = together.get(width, 0) + 1
    for at, (width, body) in wrapping.all_begin_with_m.items():
        if width not in USUAL_WIDTHS or 3 * together[width] > wrapping.widths[width]:
            doubtful[at] = body
    for at, body in doubtful.items():
        rows.residues[at] = body
    if wrapping.pir:
        rows.notes.append(
            f"PIR: the line of title of {many(len(wrapping.pir), 'record')} was left out, as {wrapping.pir[0]!r}; names are the codes behind '>P1;'"
        )


def _shortened(record: str) -> tuple[str, int]:
    """A record that is longer than any protein, cut to what is enough to refuse it, and the number of lines that are gone."""
    header, _, body = record.partition("\n")
    if len(body) <= 2 * MAX_RESIDUES or HEADER in body or COMMENT in body:
        return record, 0
    return f"{header}\n{''.join(body.split())[: MAX_RESIDUES + 1]}", body.count("\n")
