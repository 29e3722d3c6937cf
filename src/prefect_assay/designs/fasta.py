"""FASTA to records, as pipelines write it: wrapped lines, spaces after `>`, `;` comments, a closing `*`.

The whole header line is the name: design pipelines put parameters with spaces and `|` there, and only the whole
line is unique. Letters are checked elsewhere.
"""

from collections.abc import Iterable, Iterator

from prefect_assay.designs.records import MAX_RESIDUES, Record
from prefect_assay.designs.text import Line

HEADER = ">"
COMMENT = ";"


def is_header(line: str) -> bool:
    """Whether a record starts on this line."""
    return line.lstrip().startswith(HEADER)


def records(numbered: Iterable[Line]) -> Iterator[Record]:
    """Records of a text whose first meaningful line is a header; constant memory per record."""
    start: Line | None = None
    chunks: list[str] = []
    length = 0
    for number, line in numbered:
        if is_header(line):
            if start is not None:
                yield _record(start, chunks)
            start, chunks, length = (number, line), [], 0
        elif (
            not line.startswith(COMMENT) and length <= MAX_RESIDUES
        ):  # one over the limit is enough to refuse
            chunk = "".join(line.split())
            chunks.append(chunk)
            length += len(chunk)
    if start is not None:
        yield _record(start, chunks)


def _record(start: Line, chunks: list[str]) -> Record:
    number, header = start
    return Record(line=number, name=header.lstrip()[len(HEADER) :].strip(), residues="".join(chunks))
