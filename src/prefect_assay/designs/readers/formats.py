"""The formats of designs: which one a source has, and the rows of a table.

The content decides, not the file's name. Tables are CSV and its dialects, and words separated by spaces.
"""

import itertools
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from prefect_assay.designs.candidate import METHOD, PARENT_COLUMNS
from prefect_assay.designs.doubt import split_target
from prefect_assay.designs.options import ReadingOptions
from prefect_assay.designs.readers.columns import (
    MUTATIONS,
    OPTIONAL,
    RUNS,
    Beside,
    ColumnNames,
    Header,
    explain_missing,
    find_header,
    find_repeated,
    fold_residues,
    is_control,
    is_missing,
    metadata_of,
    sequence_of,
    without_loose_words,
)
from prefect_assay.designs.readers.complexes import (
    chains_of_headers,
    looks_like_document,
    read_complex_file,
    take_fasta_chains,
)
from prefect_assay.designs.readers.fasta import is_header, name_records, read_fasta
from prefect_assay.designs.readers.records import Rows, SourceErrors, name_key
from prefect_assay.designs.scores import score_direction
from prefect_assay.designs.tables.content import Content
from prefect_assay.designs.tables.errors import NoHeader, UnreadableFile
from prefect_assay.designs.tables.table import (
    Accepts,
    Table,
    is_above_header,
    key_of,
    note_json_metadata,
    sheet_table,
    text_table,
)
from prefect_assay.designs.tables.text import Block
from prefect_assay.service.models.spec_rules import quoted
from prefect_assay.service.models.vocabulary import AMINO_ACIDS
from prefect_assay.service.words import listed, many

_EMPTY: Final = frozenset({"", "null", "none", "n/a"})  # none of them is a peptide; "na" and "nan" are
_BARE = re.compile(f"[{''.join(sorted(AMINO_ACIDS))}:*]{{10,}}", re.IGNORECASE)
# Files that are neither FASTA nor a table, by how their first line begins.
_KINDS: Final = (
    (
        re.compile(r"(?:HEADER|ATOM  |HETATM|REMARK|CRYST1|MODEL  )"),
        "a structure (PDB); give the designs as FASTA or a table",
    ),
    (re.compile(r"data_\S*$"), "a structure (mmCIF); give the designs as FASTA or a table"),
    (re.compile(r"@\S+"), "reads of a sequencer (FASTQ): nucleotides; give proteins as FASTA or a table"),
    (re.compile(r"(?:LOCUS|ID   )\S*\s"), "an entry of GenBank or EMBL; give the protein as FASTA"),
    (re.compile(r"# STOCKHOLM|CLUSTAL"), "an alignment; give the designs as FASTA, without gaps"),
)
_SAMPLE: Final = 200  # rows that show what columns hold
_TARGETS: Final = 50  # chains of targets that designs are compared with
_LETTER = re.compile("[A-Za-z]")  # which scores, such as design_to_target_iptm, do not have
_LISTED: Final = 5
_SHOWN: Final = 3
_DOCUMENT: Final = 16 * 1024 * 1024
_UNIT: Final = "\x1f"  # between the cells of one row; ASCII's own separator, which no spreadsheet writes


def read_rows(rows: Rows, content: Content, errors: SourceErrors, reading: ReadingOptions, stem: str) -> None:
    """Add the designs of any format to `rows`; the first meaningful line decides which. `stem` names what has no name.

    Raises:
        UnreadableFile: reading cannot go on; `rows` holds what was read before.
    """
    columns = ColumnNames(reading.name_column, reading.sequence_column)

    def accepts(titles: Sequence[str]) -> bool:
        return find_header(titles, columns) is not None

    try:
        if content.lines is None:
            table = sheet_table(content.sheets, accepts, content.notes)
        else:
            first = _first_line(content.lines, accepts, content.notes)
            if is_header(first.line):
                _read_records(rows, first.rest, errors, reading, stem)
                rows.notes += content.notes
                return
            if looks_like_document(first.line):
                read_complex_file(rows, _join_text(first.rest), stem, reading.chain)
                rows.notes += content.notes
                return
            table = text_table(first.rest, accepts, content.notes)
    except NoHeader as error:
        raise UnreadableFile(_no_table(error, columns), error.line) from None
    _read_table(rows, table, columns, reading.chain, errors)
    rows.read.format = _format_of(content, table)
    rows.notes += table.notes


def _no_table(error: NoHeader, columns: ColumnNames) -> str:
    if _BARE.fullmatch(error.text.strip()):
        return "a sequence without a name; put a line '>name' above it"
    kind = next((what for pattern, what in _KINDS if pattern.match(error.text)), None)
    return f"this looks like {kind}" if kind else explain_missing(error.titles, columns)


def _format_of(content: Content, table: Table) -> str:
    if table.delimiter is None:
        return content.kind
    return {",": "CSV", ";": "CSV with semicolons", "\t": "TSV"}.get(
        table.delimiter, f"table with {table.delimiter!r}"
    )


def _join_text(blocks: Iterator[Block]) -> str:
    lines: list[str] = []
    size = 0
    for _, block in blocks:
        lines += block
        size += sum(map(len, block))
        if size > _DOCUMENT:
            raise UnreadableFile(f"a document of more than {_DOCUMENT:,} characters; give FASTA or a table")
    return "\n".join(lines)


def _read_records(
    rows: Rows, blocks: Iterator[Block], errors: SourceErrors, reading: ReadingOptions, stem: str
) -> None:
    read_fasta(rows, blocks)
    rows.read.format = "FASTA"
    rows.extras = [""] * len(rows.names)
    chains = None if reading.as_is else chains_of_headers(rows.names)
    if chains:
        take_fasta_chains(rows, *chains, stem, reading.chain)
        return
    name_records(rows, keep_native=reading.keep_native)
    for index, extra in enumerate(rows.extras):
        if "control" in extra.casefold():
            words = [
                cell for title, cell in rows.unpack(extra).items() if key_of(title) in OPTIONAL["control"]
            ]
            if any(is_control(word, rows.lines[index], rows.names[index], errors) for word in words):
                rows.controls.add(index)


@dataclass(frozen=True, slots=True)
class _First:
    """The first line that is neither empty nor a comment or metadata, and the lines from there on."""

    line: str
    rest: Iterator[Block]


def _first_line(blocks: Iterator[Block], accepts: Accepts, notes: list[str]) -> _First:
    for first, lines in blocks:
        for index, line in enumerate(lines if any(lines) else ()):
            if line.strip() and is_above_header(lines[index : index + 2], first + index, accepts):
                notes += note_json_metadata(line, first + index)
            elif line.strip():
                return _First(line, itertools.chain([(first + index, lines[index:])], blocks))
    raise UnreadableFile("empty; give a FASTA file, or a table with a name and a sequence column")


def _read_table(
    rows: Rows, table: Table, columns: ColumnNames, chain: str | None, errors: SourceErrors
) -> None:
    """Add the rows below the header."""
    header = find_header(table.titles, columns)
    if header is None:
        raise UnreadableFile(explain_missing(table.titles, columns), table.line)
    if twice := find_repeated(table.titles, header):
        raise UnreadableFile(f"two columns are called {twice!r}; rename one", table.line)
    sample = list(itertools.islice(table.rows, _SAMPLE))
    cells = [row for _, row in sample]
    header, own_titles = without_loose_words(header, table.titles, cells)
    if own_titles:
        rows.notes.append(f"kept as columns of the designer's own: {', '.join(own_titles)}")
    aside = Beside(header, table.titles, cells)
    reader = _Reader(rows, table, header, aside, errors, chain)
    for line, row in itertools.chain(sample, table.rows):
        if misfit := table.misfit(row):
            errors.add(misfit, line=line)
        else:
            reader.add(row, line)
            rows.check_number()
    _note_columns(rows, table, header, aside, reader)
    reader.say_missing_chains()
    reader.tell_runs_apart()


def _note_columns(rows: Rows, table: Table, header: Header, aside: Beside, reader: "_Reader") -> None:
    """Note in `rows.read` which columns were taken, and in `rows.notes` what was not."""
    producer, titles = header.producer, table.titles
    read = rows.read
    read.producer = producer.name if producer else None
    read.columns = {
        "name": ", ".join(titles[index] for index in header.names),
        "sequence": ", ".join(titles[index] for index in header.sequences),
        **{field: titles[index] for field, index in header.optional.items()},
        **reader.roles(),
    }
    read.others = tuple(title for _, title in header.others)
    read.other_sequences = tuple(aside.titles)
    for title in titles:
        better = score_direction(title, read.producer)
        if better is not None:
            read.scores[title] = better
    if producer and read.other_sequences and not header.chosen:
        rows.notes.append(
            f"a table of {producer.name}: {read.columns['sequence']} holds the proteins; not taken: {', '.join(read.other_sequences)}"
        )


class _Reader:
    """Adds rows of one table, with the columns that the producer's rule adds."""

    def __init__(
        self,
        rows: Rows,
        table: Table,
        header: Header,
        aside: Beside,
        errors: SourceErrors,
        chain: str | None,
    ) -> None:
        self._rows, self._header, self._errors, self._chain = rows, header, errors, chain
        self._titles = table.titles
        self._parts, self._part_of = table.parts, list[int]()
        self._aside = aside
        keys = {key_of(title) for title in table.titles}
        producer = header.producer
        self._parent = (
            producer if producer and producer.parent_of and not keys & {"parent", "parents"} else None
        )
        self._method = producer.method if producer and METHOD not in keys else None
        self._run = next(
            (index for index, title in enumerate(table.titles) if key_of(title) in map(key_of, RUNS)), None
        )
        self._mutations = next(
            (
                index
                for index, title in enumerate(table.titles)
                if key_of(title) in MUTATIONS and index not in header.names
            ),
            None,
        )
        self._runs: list[str] = []
        self._without: dict[int, list[str]] = {}  # names of designs without a chain, by its column
        titles = tuple(title for _, title in header.others)
        added = ((METHOD, self._method),) if self._method else ()
        parents = PARENT_COLUMNS[1] if self._parent else None
        rows.unpack = partial(_unpack_columns, titles, added, parents)

    def roles(self) -> dict[str, str]:
        """The columns of parent and method, for the report."""
        keys = {key_of(title): title for title in self._titles}
        parent = "part of the name" if self._parent else None
        titles_by_role = {
            "parent": parent or next((keys[key] for key in PARENT_COLUMNS if key in keys), None),
            "method": keys.get(METHOD) or (f"{self._method}, by the columns" if self._method else None),
        }
        return {role: title for role, title in titles_by_role.items() if title}

    def add(self, row: list[str], line: int) -> None:
        """Add one design."""
        rows, header = self._rows, self._header
        name = "_".join(_get_cell(row, index) for index in header.names)
        if header.optional:
            self._add_optional(row, line, name)
        residues = sequence_of(header, row)
        if len(header.sequences) > 1:
            self._look_for_missing_chains(row, line, name)
        self._look_aside(row, residues, line)
        if self._mutations is not None:
            rows.read.mutations.append(_get_cell(row, self._mutations))
        if self._parts or self._run is not None:
            self._keep_run(row, line)
        cells = [_get_cell(row, column).replace(_UNIT, " ") for column, _ in header.others]
        if self._parent:
            cells.append(self._parent.parent_in(name) or "")
        rows.lines.append(line)
        rows.names.append(name)
        rows.residues.append(residues)
        rows.extras.append(_UNIT.join(cells))

    def _add_optional(self, row: list[str], line: int, name: str) -> None:
        """Add whether the next design is a control, and its metadata."""
        rows = self._rows
        cells = {
            field: cell
            for field, index in self._header.optional.items()
            if not is_missing(cell := _get_cell(row, index))
        }
        if is_control(cells.get("control"), line, name, self._errors):
            rows.controls.add(len(rows.names))
        if metadata := metadata_of(cells, line, name, self._errors):
            rows.metadata[len(rows.names)] = metadata

    def _look_for_missing_chains(self, row: list[str], line: int, name: str) -> None:
        """Keep which columns of chains are empty; where a chain is chosen by its number, one before another is an error."""
        columns = self._header.sequences
        missing = [is_missing(_get_cell(row, index)) for index in columns]
        for index in itertools.compress(columns, missing):
            self._without.setdefault(index, []).append(name)
        if self._chain is not None and missing != sorted(missing):
            title = self._titles[columns[missing.index(True)]]
            raise UnreadableFile(
                f"sequence {quoted(name)} has no {title}, so that its chains have other numbers than --chain "
                f"{self._chain} means; fill the column in, leave the design out, or take one column with --sequence-column",
                line,
            )

    def say_missing_chains(self) -> None:
        """Say which designs lack a chain, so that the others alone are ordered."""
        for index, names in self._without.items():
            self._rows.notes.append(
                f"{many(len(names), 'design has', 'designs have')} no {self._titles[index]}, and the other chain alone is ordered: "
                f"{listed([*map(quoted, names)], _SHOWN)}"
            )

    def _look_aside(self, row: list[str], residues: str, line: int) -> None:
        """Compare the row's sequence with those of other columns, and keep its targets."""
        if self._aside.empty:
            self._aside.look_at_empty(row)
        if self._aside.rivals:
            self._refuse_other_sequence(row, residues, line)
        targets = self._rows.read.targets
        for target in self._aside.targets:
            if len(targets) < _TARGETS and _LETTER.search(cell := _get_cell(row, target)):
                targets |= dict.fromkeys(split_target(cell))

    def _refuse_other_sequence(self, row: list[str], residues: str, line: int) -> None:
        """Stop where another column of sequences differs: either may be the design."""
        for index in self._aside.rivals:
            other = _get_cell(row, index)
            if not is_missing(other) and fold_residues(other) != fold_residues(residues):
                taken = ", ".join(self._titles[column] for column in self._header.sequences)
                rival = self._titles[index]
                raise UnreadableFile(
                    f"the columns {taken!r} ({len(residues)} letters) and {rival!r} ({len(other)} letters) hold different "
                    f"sequences, and no rule says which is the design; choose with --sequence-column {quoted(rival)} "
                    f"or {quoted(taken)} (in a form: sequence_column)",
                    line,
                )

    def _keep_run(self, row: list[str], line: int) -> None:
        missing = len(self._rows.names) - len(self._runs)
        self._runs += [""] * missing  # rows before the first repeated header
        self._part_of += [0] * (len(self._rows.names) - len(self._part_of))
        self._runs.append(_get_cell(row, self._run) if self._run is not None else "")
        self._part_of.append(bisect_right(self._parts, line))

    def tell_runs_apart(self) -> None:
        """Names that several runs use get the run behind them; of joined tables that is said."""
        rows = self._rows
        if self._parts:
            listed = ", ".join(map(str, self._parts[:_LISTED]))
            rows.notes.append(
                f"line {listed} repeats the header: {len(self._parts) + 1} tables were read, and their runs told apart"
            )
            self._runs += [""] * (len(rows.names) - len(self._runs))
            self._part_of += [0] * (len(rows.names) - len(self._part_of))
            self._label_parts()
        elif self._run is None:
            return
        counts = Counter(map(name_key, rows.names))
        if len(counts) == len(rows.names):
            return
        again = [index for index, name in enumerate(rows.names) if counts[name_key(name)] > 1]
        labels = [self._runs[index] or f"run{self._part_of[index] + 1}" for index in again]
        if len(
            {(name_key(rows.names[index]), label) for index, label in zip(again, labels, strict=True)}
        ) < len(again):
            labels = [f"run{self._part_of[index] + 1}" for index in again]
        for index, label in zip(again, labels, strict=True):
            written = rows.names[index]
            rows.names[index] = f"{written}_{label}"
            rows.read.rename(written, rows.names[index])
        rows.notes.append(
            f"{many(len(again), 'name is', 'names are')} in several runs: the run was put behind, as in {rows.names[again[0]]!r}"
        )

    def _label_parts(self) -> None:
        """The run as a column of the designer's own, where the tables have none."""
        if self._run is not None:
            return
        self._rows.extras = [
            _UNIT.join((extra, f"run{part + 1}") if extra or self._header.others else (f"run{part + 1}",))
            for extra, part in zip(self._rows.extras, self._part_of, strict=True)
        ]
        unpack = self._rows.unpack
        self._rows.unpack = partial(_with_run, unpack)


def _with_run(unpack: Callable[[str], dict[str, str]], extra: str) -> dict[str, str]:
    rest, _, run = extra.rpartition(_UNIT)
    return {**unpack(rest), "run": run}


def _unpack_columns(
    titles: tuple[str, ...],
    added: tuple[tuple[str, str], ...],
    parent: str | None,
    extra: str,
) -> dict[str, str]:
    """The designer's columns of one row, without empty cells, and those that the producer's rule adds.

    The parent is the last cell.
    """
    cells = extra.split(_UNIT)
    attributes = {title: cell for title, cell in zip(titles, cells, strict=False) if _is_filled(cell)}
    if parent and len(cells) > len(titles) and cells[-1]:
        attributes[parent] = cells[-1]
    attributes.update(added)
    return attributes


def _get_cell(row: list[str], index: int) -> str:
    return row[index] if index < len(row) else ""


def _is_filled(cell: str) -> bool:
    return cell.casefold() not in _EMPTY
