"""FASTA as pipelines write it: wrapped lines, comments, parameters behind the name.

The loop over lines does as little as it can: what is rare (comments, indented headers) is looked for once per record.
"""

from collections.abc import Iterable
from typing import Final

from prefect_assay.designs.headers import (
    add_parents,
    first_words,
    header_fields,
    is_mpnn,
    name_colab,
    name_samples,
)
from prefect_assay.designs.records import MAX_RESIDUES, Rows
from prefect_assay.tables.text import Block

HEADER: Final = ">"
COMMENT: Final = ";"


def is_header(line: str) -> bool:
    """Return True if a record starts on this line."""
    return line.lstrip().startswith(HEADER)


def read_fasta(rows: Rows, blocks: Iterable[Block]) -> None:
    """Add the records of lines of which the first is a header; names are whole header lines, to be named next."""
    start, header, body = 0, "", list[str]()
    for first, lines in blocks:
        for number, line in enumerate(lines, first):
            if line[:1] == HEADER:
                if start:
                    _add(rows, start, header, body)
                start, header, body = number, line, []
            elif start:
                body.append(line)
            else:  # the first header of a file may be indented
                start, header = number, line
        rows.check_number()
        body = _shortened(body)
    _add(rows, start, header, body)
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


def _add(rows: Rows, start: int, header: str, body: list[str]) -> None:
    residues = "".join(body)
    if COMMENT in residues or HEADER in residues:
        _add_by_line(rows, start, header, body)
        return
    rows.lines.append(start)
    rows.names.append(header.lstrip()[1:].strip())
    rows.residues.append(residues)


def _add_by_line(rows: Rows, start: int, header: str, body: list[str]) -> None:
    """The same for a body with comments, or with indented headers, which start records of their own."""
    kept: list[str] = []
    for number, line in enumerate(body, start + 1):
        if is_header(line):
            _add(rows, start, header, kept)
            start, header, kept = number, line, []
        elif not line.startswith(COMMENT):
            kept.append(line)
    rows.lines.append(start)
    rows.names.append(header.lstrip()[1:].strip())
    rows.residues.append("".join(kept))


def _shortened(body: list[str]) -> list[str]:
    """A body that is longer than any protein, cut to what is enough to refuse it."""
    residues = "".join(body)
    if len(residues) <= 2 * MAX_RESIDUES or HEADER in residues or COMMENT in residues:
        return body
    return ["".join(residues.split())[: MAX_RESIDUES + 1]]
