"""CSV and its dialects to records: delimiter from the header, quoting, optional columns to metadata.

Optional columns become the metadata of contract 2.3; everything else in the file (scores, ranks) stays behind.
"""

import csv
from collections.abc import Iterable, Iterator
from typing import Final

from prefect_assay.designs.columns import Header, reader
from prefect_assay.designs.findings import Findings, shown
from prefect_assay.designs.metadata import metadata_of
from prefect_assay.designs.records import Record
from prefect_assay.designs.text import Line

_EMPTY: Final = frozenset({"", "null", "none", "n/a"})  # none of them is a peptide; "na" and "nan" are
_TRUE: Final = frozenset({"true", "t", "yes", "y", "1", "1.0", "control"})
_FALSE: Final = frozenset({"false", "f", "no", "n", "0", "0.0", "nan", "na", "design"})


def records(header: Header, numbered: Iterable[Line], findings: Findings) -> Iterator[Record]:
    """Records of the rows below the header.

    Raises:
        InvalidSequences: the quoting is broken, so that no later row can be trusted; names the row's line.
    """
    at = _Position()
    rows = reader(at.feed(numbered), header.delimiter)
    while True:
        at.begin()
        try:
            row = next(rows, None)
        except csv.Error as error:
            raise findings.stop(
                f"the row does not parse ({error}); check its quotes, and quote cells that contain "
                f"{shown(header.delimiter)}",
                line=at.line,
            ) from None
        if row is None:
            return
        if not any(cell.strip() for cell in row):
            continue
        if len(row) > header.width and any(cell.strip() for cell in row[header.width :]):
            findings.add(
                f"{len(row)} cells under {header.width} columns; quote cells that contain {shown(header.delimiter)}",
                line=at.line,
            )
            continue
        yield _record(header, row, at.line, findings)


class _Position:
    """Knows on which line of the source the current row starts; a quoted cell may span several."""

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


def _record(header: Header, row: list[str], line: int, findings: Findings) -> Record:
    name = _cell(row, header.name)
    given = {field: cell for field, at in header.optional.items() if _filled(cell := _cell(row, at))}
    return Record(
        line=line,
        name=name,
        residues="".join(_cell(row, header.sequence).split()),
        control=_control(given.get("control"), line, name, findings),
        metadata=metadata_of(given, line, name, findings),
    )


def _cell(row: list[str], at: int) -> str:
    return row[at].strip() if at < len(row) else ""


def _filled(cell: str) -> bool:
    return cell.casefold() not in _EMPTY


def _control(cell: str | None, line: int, name: str, findings: Findings) -> bool:
    word = (cell or "false").casefold()
    if word not in _TRUE | _FALSE:
        findings.add(f"control is {shown(word)}; write true or false", line=line, name=name)
    return word in _TRUE
