"""`read_sequences` and `read_pool`: open a file, an object in S3-compatible storage or pasted text, and check its designs."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import BinaryIO, Final

from prefect_assay.archive.sources import UnreadableSource, open_source
from prefect_assay.designs.chains import choose_chains, settle_chains
from prefect_assay.designs.options import AS_WRITTEN, ReadingOptions
from prefect_assay.designs.readers.chain_records import ask_about_repeated, settle_chain_records
from prefect_assay.designs.readers.fasta import HEADER
from prefect_assay.designs.readers.formats import read_rows
from prefect_assay.designs.readers.mutations import check_mutations
from prefect_assay.designs.readers.records import Rows, SourceErrors, check_rows
from prefect_assay.designs.readers.row_checks import compare_rows_with_columns
from prefect_assay.designs.tables.content import read_content
from prefect_assay.designs.tables.errors import UnreadableFile
from prefect_assay.service.models.sequences import Duplicate, Pool, Sequences

PASTED: Final = "pasted text"
MAX_SEQUENCES: Final = 100_000
MAX_CHARACTERS: Final = 64 * 1024 * 1024
POOL_SEQUENCES: Final = 1_000_000
POOL_CHARACTERS: Final = 2 * 1024 * 1024 * 1024


def read_sequences(
    source: str, *, text: str | None = None, data: bytes | None = None, reading: ReadingOptions = AS_WRITTEN
) -> Sequences:
    """Read and check the designs of one source, in its order: names unique, residues upper case.

    A design with the residues and tag location of an earlier one is set aside in `duplicates` (contract 2.3).

    Args:
        source: a path, an `s3://bucket/key` address, or the text itself (it starts with `>` or has a newline).
        text: the content; `source` then only names it in messages.
        data: the content as bytes, likewise.
        reading: the user's choices of columns and chains.

    Raises:
        InvalidSequences: every error with file, line and sequence, or a doubt that needs a choice.
        ServiceUnavailable: the object storage did not answer; try again later.
    """
    with _open_stream(source, text, data) as (stream, name):
        pool = _read_stream(stream, name, reading, MAX_SEQUENCES, MAX_CHARACTERS)
    return Sequences(
        source=pool.source,
        items=tuple(pool),
        duplicates=tuple(Duplicate(name=left, same_as=kept) for left, kept in pool.duplicates),
        notes=pool.notes,
        report=pool.report,
    )


def read_pool(
    source: str, *, text: str | None = None, data: bytes | None = None, reading: ReadingOptions = AS_WRITTEN
) -> Pool:
    """Read and check up to a million designs to choose from, with the checks and errors of `read_sequences`."""
    with _open_stream(source, text, data) as (stream, name):
        return _read_stream(stream, name, reading, POOL_SEQUENCES, POOL_CHARACTERS)


def is_pasted(source: str) -> bool:
    """Return True if the source is the designs themselves and not their location."""
    return source.lstrip("\ufeff \t").startswith(HEADER) or "\n" in source or "\r" in source


@contextmanager
def _open_stream(source: str, text: str | None, data: bytes | None) -> Iterator[tuple[BinaryIO, str]]:
    """The content, and the name of the source in messages."""
    if text is not None and data is not None:
        raise TypeError("give text or data, not both")
    if text is None and data is None and is_pasted(source):
        source, text = PASTED, source
    if text is not None:
        yield io.BytesIO(text.encode("utf-8", "surrogatepass")), source or PASTED
    elif data is not None:
        yield io.BytesIO(data), source or "given bytes"
    else:
        try:
            with open_source(source) as stream:
                yield stream, source
        except UnreadableSource as error:
            raise SourceErrors(source).stop(str(error)) from None


def _read_stream(
    stream: BinaryIO, source: str, reading: ReadingOptions, sequences: int, characters: int
) -> Pool:
    errors = SourceErrors(source)
    rows = Rows(limit=sequences)
    try:
        stem = PurePosixPath(source).name.partition(".")[0] or "complex"
        read_rows(rows, read_content(stream, characters), errors, reading, stem)
        settle_chain_records(rows, reading, stem)
        compare_rows_with_columns(rows)
        choose_chains(rows, reading)
    except UnreadableFile as halt:
        rows.extras = [""] * len(rows.names)
        check_rows(
            rows, source, errors, as_protein=reading.as_protein
        )  # what is wrong before that line is also listed
        raise errors.stop(halt.message, line=halt.line) from None
    if not rows.names:
        errors.add("no sequences; give a FASTA file, or a table with at least one row below its header")
    mutated = check_mutations(rows.read.mutations or rows.names, rows.residues)
    if mutated.refused and not reading.as_is:
        raise errors.stop(mutated.refused)
    remarks = [line for line in (mutated.refused, mutated.note) if line]
    pool = check_rows(rows, source, errors, as_protein=reading.as_protein)
    errors.check()
    if pool.duplicates:
        ask_about_repeated(rows)
    return settle_chains(pool, rows, reading, remarks)
