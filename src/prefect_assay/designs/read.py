"""`read_sequences`: a path, an s3:// address or pasted text to checked sequences.

This module opens sources and chooses the reader; encoding, formats and rules stand in `text`, `fasta`, `table`
and `checks`. It must not know what happens to the sequences afterwards.
"""

import io
import itertools
import re
from collections.abc import Iterator
from typing import BinaryIO, Final

from prefect_assay.designs import fasta, table
from prefect_assay.designs.checks import checked
from prefect_assay.designs.columns import explain, find_header, repeated
from prefect_assay.designs.findings import Findings
from prefect_assay.designs.records import Record
from prefect_assay.designs.sources import opened
from prefect_assay.designs.text import Line, lines
from prefect_assay.models.sequences import Sequences
from prefect_assay.models.vocabulary import AMINO_ACIDS

PASTED: Final = "pasted text"
_DELIMITER_HINT = re.compile(r"sep=.", re.IGNORECASE)  # Excel's own first line
_BARE = re.compile(f"[{''.join(sorted(AMINO_ACIDS))}:*]{{10,}}", re.IGNORECASE)


def read_sequences(source: str, *, text: str | None = None, data: bytes | None = None) -> Sequences:
    """Read and check the designs of one source.

    Args:
        source: a path, an `s3://bucket/key` address, or the text itself (it starts with `>` or has a newline).
        text: the content, when it is at hand already; `source` then only names it in messages.
        data: the content as bytes, likewise.

    Returns:
        The designs in the order of the source: names unique, residues upper case. A design with the residues and
        tag location of an earlier one is set aside in `duplicates` (contract 2.3).

    Raises:
        InvalidSequences: every finding with file, line and sequence.
        ServiceUnavailable: the object storage did not answer; try again later.
    """
    if text is not None and data is not None:
        raise TypeError("read_sequences takes text or data, not both")
    if text is not None:
        return _read(io.BytesIO(text.encode("utf-8", "surrogatepass")), source or PASTED)
    if data is not None:
        return _read(io.BytesIO(data), source or "given bytes")
    if is_pasted(source):
        return _read(io.BytesIO(source.encode("utf-8", "surrogatepass")), PASTED)
    with opened(source, Findings(source)) as stream:
        return _read(stream, source)


def is_pasted(source: str) -> bool:
    """Whether a source is the designs themselves and not the place where they are."""
    return source.lstrip("\ufeff \t").startswith(fasta.HEADER) or "\n" in source or "\r" in source


def _read(stream: BinaryIO, source: str) -> Sequences:
    findings = Findings(source)
    return checked(_records(lines(stream, findings), findings), source, findings)


def _records(numbered: Iterator[Line], findings: Findings) -> Iterator[Record]:
    """Choose the reader by the first meaningful line; the file's name decides nothing."""
    for number, line in numbered:
        if not line.strip():
            continue
        if fasta.is_header(line):
            return fasta.records(itertools.chain([(number, line)], numbered))
        header = find_header(line)
        if header:
            twice = repeated(line, header)
            if twice:
                raise findings.stop(f"two columns are called {twice!r}; rename one", line=number)
            return table.records(header, numbered, findings)
        if line.startswith((fasta.COMMENT, "#")) or _DELIMITER_HINT.fullmatch(line):
            continue
        if _BARE.fullmatch(line.strip()):
            raise findings.stop("a sequence without a name; put a line '>name' above it", line=number)
        raise findings.stop(explain(line), line=number)
    raise findings.stop("empty; give a FASTA file, or a table with a name and a sequence column")
