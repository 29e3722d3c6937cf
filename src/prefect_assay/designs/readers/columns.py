"""The columns of a table: which header means what, without case and separators, and cells as metadata (contract 2.3).

A known producer's rule comes first, then usual titles. What other columns hold is found out from their cells, because a
second column of sequences may be the one that is meant.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from prefect_assay.designs.readers.chain_text import MISSING_WORDS, judge_chain
from prefect_assay.designs.readers.producers import Producer, producer_of
from prefect_assay.designs.readers.records import FAB, SourceErrors, is_nucleotides
from prefect_assay.designs.tables.table import key_of
from prefect_assay.service.models.spec_rules import quoted
from prefect_assay.service.models.vocabulary import AMINO_ACIDS

# In order of preference: a file may have several of them.
NAME: Final = (
    "name",
    "design",
    "design name",
    "binder name",
    "sequence name",
    "design id",
    "binder id",
    "sequence id",
    "seq id",
    "protein id",
    "id",
    "identifier",
    "mutant",
    "variant",
    "description",
)
SEQUENCE: Final = (
    "sequence",
    "aa string",
    "aa sequence",
    "amino acid sequence",
    "protein sequence",
    "mutated sequence",
    "designed chain sequence",  # BoltzGen: the full chain
    "full sequence",
    "binder sequence",
    "seq",
)
# Columns of a heavy and of a light chain, pair by pair.
PAIRS: Final = (
    ("vh", "vl"),
    ("heavy", "light"),
    ("heavy chain", "light chain"),
    ("heavy sequence", "light sequence"),
    ("heavy chain sequence", "light chain sequence"),
    ("vh sequence", "vl sequence"),
    ("vh aa", "vl aa"),
    ("heavy seq", "light seq"),
    ("heavy aa", "light aa"),
    ("hc", "lc"),
    ("hc sequence", "lc sequence"),
    ("fv heavy", "fv light"),
    ("sequence aa heavy", "sequence aa light"),
    ("sequence heavy", "sequence light"),
)
OPTIONAL: Final = {
    "control": ("control", "is control"),
    "type": ("type", "sequence type"),
    "molecule_class": ("molecule class",),
    "tag_location": ("tag location", "tag"),
    "VH": ("vh",),
    "VL": ("vl",),
    "linker": ("linker",),
    "chain_order": ("chain order",),
    "ch": ("ch", "framework ch"),
    "cl": ("cl", "framework cl"),
}
CONTROL_WORDS: Final = {
    **dict.fromkeys(("true", "t", "yes", "y", "1", "1.0", "control"), True),
    **dict.fromkeys(("false", "f", "no", "n", "0", "0.0", "nan", "na", "design"), False),
}
"""What the cells of a column `control` say."""
# Words that designers also use for other things: a cell that the service does not know makes the column their own.
_LOOSE: Final = {"type": "type", "tag_location": "tag"}
# BoltzGen writes the designed residues without the rest of the chain under this name: never the protein to order.
PARTIAL: Final = "designed sequence"
MUTATIONS: Final = frozenset(
    map(key_of, ("mutant", "mutation", "mutations", "variant", "substitution", "substitutions"))
)
RUNS: Final = (
    "run",
    "run id",
    "batch",
    "round",
    "job",
    "job id",
    "campaign",
    "library",
    "experiment",
    "trajectory",
)
# Titles of what designs bind. A `target_binder_sequence` is a design, as are `receptor_alpha` and `receptor_beta`.
_TARGET = re.compile(
    "^(?!.*(?:bind|specific|cdr|epitope|paratope|motif|hotspot|interface|alpha|beta)).*(?:target|antigen|receptor)"
)
# Titles of sequences that are not designs.
_OTHER = re.compile(
    "target|antigen|receptor|wildtype|^wt|parent|native|template|scaffold|reference|germline|cdr|^fw?r[1-4]|framework|junction"
    "|linker|signal|struct|3di|foldseek|dna|nucleotide|codon|cds|secondary|dssp|msa|align|epitope|paratope|hotspot|motif|interface|^np|^[vdjc]seq"
)
_SEQUENCE_CELL = re.compile(
    f"[{''.join(sorted(AMINO_ACIDS))}X]{{10,}}(?:[:/][{''.join(sorted(AMINO_ACIDS))}X]+)*\\*?"
)
_LONG_CELL = re.compile("[A-Z]{20,}(?:[:/][A-Z]+)*\\*?")
_LONG: Final = 40  # letters in lower case, lines or blocks, or with gaps; words are shorter
_BLOCK: Final = 10  # letters between white space; words are shorter
_NO_RESIDUES: Final = "BJOUZ"
_FEW: Final = 0.05
_LAYOUT = re.compile(r"[\s.-]+")
_KINDS_OF_LETTERS: Final = 6  # secondary structure is written with fewer
_KINDS_OF_LONG: Final = 9  # and with fewer than these where gaps are part of it
_MOSTLY: Final = 0.9


@dataclass(frozen=True, slots=True)
class ColumnNames:
    """Titles that a user names instead of those listed here; several sequences with a comma between them are chains."""

    name: str | None = None
    sequence: str | None = None


@dataclass(frozen=True, slots=True)
class Header:
    """The position of each column, counted from 0; `optional` has those that exist, `others` the designer's own.

    Names of several columns are joined by `_`, sequences by `:`. `chosen`: the user has named the sequence's column.
    """

    names: tuple[int, ...]
    sequences: tuple[int, ...]
    optional: dict[str, int]
    others: tuple[tuple[int, str], ...]  # position and title
    producer: Producer | None = None
    chosen: bool = False


def rename_clashing_title(title: str) -> str:
    """A title of the designer's own column, other than `name` and `sequence`: one that would be read as them is marked."""
    return f"{title} (own)" if key_of(title) in _READ else title


def explain_missing(titles: Sequence[str], named: ColumnNames) -> str:
    """The columns that the titles lack, as an error message."""
    keys = [key_of(title) for title in titles]
    absent = [
        title
        for title in (named.name, *_titles_of(named.sequence, titles))
        if title is not None and key_of(title) not in keys
    ]
    if absent:
        return (
            f"no column {' and no column '.join(map(quoted, absent))} in [{_list_titles(titles)}]; "
            "name a column of this table, or leave the choice out"
        )
    if key_of(PARTIAL) in keys and producer_of(titles) is None:
        return (
            "the column designed_sequence holds the designed residues only, not the protein; "
            "add the full chain as designed_chain_sequence, or name it with --sequence-column"
        )
    missing = [
        what
        for what, aliases in (("name", NAME), ("sequence", SEQUENCE))
        if _find_index(keys, aliases) is None
    ]
    # Without either column it may be any file, such as one with credentials: nothing is quoted.
    where = f"in [{_list_titles(titles)}]" if len(missing) == 1 else "in this line"
    regions = (
        " (it has regions such as CDRs, which are not proteins)" if any("cdr" in key for key in keys) else ""
    )
    options = " and ".join(f"--{what}-column" for what in missing)
    return (
        f"neither FASTA (a line that starts with '>') nor a table with a header: no {' and no '.join(missing)} column "
        f"{where}{regions}; name one of {', '.join(NAME[:4])} and one of {', '.join(SEQUENCE[:4])}, "
        f"or name yours with {options} (in a form: {options.replace('--', '').replace('-', '_')})"
    )


def _list_titles(titles: Sequence[str]) -> str:
    return ", ".join(title.strip()[:40] for title in titles[:20])


def find_repeated(titles: Sequence[str], header: Header) -> str | None:
    """The title of a needed column that two columns share."""
    keys = [key_of(title) for title in titles]
    used = (*header.names, *header.sequences, *header.optional.values())
    return next((titles[index] for index in used if keys.count(keys[index]) > 1), None)


def find_header(titles: Sequence[str], named: ColumnNames) -> Header | None:
    """The columns of these titles; None without both a name and a sequence column."""
    keys = [key_of(title) for title in titles]
    producer = producer_of(titles)
    names = (
        _find_chosen(titles, keys, named.name)
        if named.name is not None
        else _find_name_columns(keys, producer)
    )
    if named.sequence is not None:
        groups = [_find_chosen(titles, keys, title) for title in _titles_of(named.sequence, titles)]
        sequences = tuple(index for group in groups for index in group) if all(groups) else ()
    else:
        sequences = _find_sequence_columns(keys, producer)
    if not names or not sequences or set(names) & set(sequences):
        return None
    used = {*names, *sequences}
    optional = {
        field: index
        for field, aliases in OPTIONAL.items()
        if (index := _find_index(keys, aliases)) is not None and index not in used
    }
    others = _list_other_columns(titles, used | set(optional.values()))
    return Header(names, sequences, optional, others, producer, named.sequence is not None)


def _titles_of(named: str | None, titles: Sequence[str]) -> list[str]:
    """One title, or several with commas between them."""
    if named is None:
        return []
    return [named] if key_of(named) in map(key_of, titles) else [part.strip() for part in named.split(",")]


def _find_name_columns(keys: Sequence[str], producer: Producer | None) -> tuple[int, ...]:
    if producer and all(key_of(name) in keys for name in producer.names):
        return tuple(keys.index(key_of(name)) for name in producer.names)
    index = _find_index(keys, NAME)
    return () if index is None else (index,)


def _find_sequence_columns(keys: Sequence[str], producer: Producer | None) -> tuple[int, ...]:
    if producer:
        return tuple(index for title in producer.sequences for index in _find_numbered(keys, title))
    if key_of(PARTIAL) in keys:
        return ()  # nearly BoltzGen: `sequence` may also be the designed residues
    index = _find_index(keys, SEQUENCE)
    if index is not None:
        return (index,)
    for heavy, light in PAIRS:
        if key_of(heavy) in keys and key_of(light) in keys:
            return keys.index(key_of(heavy)), keys.index(key_of(light))
    return ()


def _find_numbered(keys: Sequence[str], title: str) -> list[int]:
    """The column of a title, or all that are numbered where it ends in `#`, by their numbers."""
    stem = key_of(title.removesuffix("#"))
    if not title.endswith("#"):
        return [keys.index(stem)] if stem in keys else []
    numbered = [
        (int(match[1]), index)
        for index, key in enumerate(keys)
        if (match := re.fullmatch(f"{re.escape(stem)}(\\d+)", key))
    ]
    return [index for _, index in sorted(numbered)]


def _find_chosen(titles: Sequence[str], keys: Sequence[str], named: str) -> tuple[int, ...]:
    """The column that a user named, as written or but for case and separators."""
    written = [title.strip() for title in titles]
    if named.strip() in written:
        return (written.index(named.strip()),)
    index = _find_index(keys, (named,))
    return () if index is None else (index,)


def _list_other_columns(titles: Sequence[str], used: set[int]) -> tuple[tuple[int, str], ...]:
    """The columns without a meaning here; a title that is empty or repeated gets its column's number, from 1."""
    taken: dict[str, int] = {}
    for index, title in enumerate(titles):
        if index not in used:
            plain = title.strip()
            free = plain if plain and plain not in taken else f"{plain} (column {index + 1})".strip()
            taken[free] = index
    return tuple((index, title) for title, index in taken.items())


def _find_index(keys: Sequence[str], aliases: Sequence[str]) -> int | None:
    return next((keys.index(key) for alias in aliases if (key := key_of(alias)) in keys), None)


def without_loose_words(
    header: Header, titles: Sequence[str], sample: Sequence[Sequence[str]]
) -> tuple[Header, list[str]]:
    """The header with `type` and `tag` as the designer's own where they hold words of others; and their titles."""
    optional, own_titles = dict(header.optional), []
    for field, title in _LOOSE.items():
        index = optional.get(field)
        if index is None or key_of(titles[index]) != title:
            continue
        words = _TYPES if field == "type" else _TAGS
        for row in sample:
            cell = row[index] if index < len(row) else ""
            known = words.get(_normalize_cell(cell))
            lacks = field == "type" and any(column not in optional for column in _NEEDED.get(known or "", ()))
            if cell and cell.casefold() != _ABSENT and (known is None or lacks):
                del optional[field]
                own_titles.append(titles[index])
                break
    if not own_titles:
        return header, []
    used = {*header.names, *header.sequences, *optional.values()}
    return replace(header, optional=optional, others=_list_other_columns(titles, used)), own_titles


class Beside:
    """Other columns with sequences, by position: `rivals` may be the one that is meant, `targets` may be what designs bind.

    `titles` are those of all of them, and `empty` the columns without a filled cell so far.
    """

    def __init__(self, header: Header, titles: Sequence[str], sample: Sequence[Sequence[str]]) -> None:
        self._header, self._titles = header, titles
        self.titles: list[str] = []
        self.rivals: list[int] = []
        self.targets = [
            index
            for index, title in enumerate(titles)
            if _TARGET.search(key_of(title)) and index not in {*header.sequences, *header.names}
        ]
        self.empty: list[int] = []
        for index in range(len(titles)):
            if index not in header.sequences and index not in header.names:
                cells = [row[index] for row in sample if index < len(row) and not is_missing(row[index])]
                if not cells:
                    self.empty.append(index)
                self._add_column(index, cells)

    def look_at_empty(self, row: Sequence[str]) -> None:
        """Look at the cells of a later row in columns that were empty so far."""
        for index in [index for index in self.empty if index < len(row) and row[index]]:
            if self._add_column(index, [] if is_missing(row[index]) else [row[index]]):
                self.empty.remove(index)

    def _add_column(self, index: int, cells: Sequence[str]) -> bool:
        """Add a column if its cells hold sequences, and return whether they do."""
        if not _holds_sequences(cells):
            return False
        key = key_of(self._titles[index])
        self.titles.append(self._titles[index])
        # These go out with the sequence: `check_rows` compares VH and VL with what is sent.
        is_domain = index in {self._header.optional.get(field) for field in _CHAINS}
        is_decided = self._header.chosen or self._header.producer or _OTHER.search(key) or is_domain
        if not (is_decided or all(map(is_nucleotides, map(fold_residues, cells)))):
            self.rivals.append(index)
        return True


def _holds_sequences(cells: Sequence[str]) -> bool:
    plain = sum(bool(_SEQUENCE_CELL.fullmatch(cell)) for cell in cells)
    if cells and plain >= _MOSTLY * len(cells):
        return len(set("".join(cells))) >= _KINDS_OF_LETTERS
    folded = [fold_residues(cell) for cell in cells if _is_long_sequence(cell)]
    return len(folded) >= max(1, _MOSTLY * len(cells)) and len(set("".join(folded))) >= _KINDS_OF_LONG


def _is_long_sequence(cell: str) -> bool:
    """Whether a cell holds residues in one case, without regard to gaps, and to white space between long parts."""
    parts, folded = cell.split(), fold_residues(cell)
    return (
        (cell.isupper() or cell.islower())
        and all(len(part) >= _BLOCK for part in parts[:-1])
        and _LONG_CELL.fullmatch(folded) is not None
        and (len(folded) >= _LONG or not (cell.islower() or _LAYOUT.search(cell)))
        and sum(map(folded.count, _NO_RESIDUES)) <= _FEW * len(folded)
    )


def fold_residues(residues: str) -> str:
    """Residues in upper case without layout: white space, gaps and a closing stop; `:` is between chains."""
    return _LAYOUT.sub("", residues).upper().removesuffix("*").replace("/", ":")


def sequence_of(header: Header, row: Sequence[str]) -> str:
    """The residues of a row, as written; chains in columns of their own are joined, and missing ones left out."""
    cells = [row[index] if index < len(row) else "" for index in header.sequences]
    return cells[0] if len(cells) == 1 else ":".join(cell for cell in cells if not is_missing(cell))


def is_missing(cell: str) -> bool:
    """Whether a cell is empty, or has what programs write for that."""
    return cell.casefold() in MISSING_WORDS


_READ: Final = frozenset(
    key_of(title)
    for title in (NAME[0], SEQUENCE[0], *(alias for aliases in OPTIONAL.values() for alias in aliases))
)

SCFV: Final = "ScFv"
_TYPES: Final = {"scfv": SCFV, "fab": FAB, "singlechain": "SingleChain", "igg": "IgG"}
_TAGS: Final = {f"{end}{form}": end.upper() for end in "nc" for form in ("", "term", "terminus", "terminal")}
_AS_WRITTEN: Final = ("VH", "VL", "linker", "chain_order")
_FRAMEWORK: Final = ("ch", "cl")
_CHAINS: Final = ("VH", "VL", *_FRAMEWORK)
# The columns that a type needs.
_NEEDED: Final = {SCFV: ("VH", "VL"), FAB: _FRAMEWORK}
_ABSENT: Final = "nan"  # how tables spell an empty cell; no type, no tag


def is_control(cell: str | None, line: int, name: str, errors: SourceErrors) -> bool:
    """Whether a cell marks a control; any other word than true and false is an error."""
    word = (cell or "false").casefold()
    if word not in CONTROL_WORDS:
        errors.add(f"control is {quoted(word)}; write true or false", line=line, name=name)
    return CONTROL_WORDS.get(word, False)


def metadata_of(cells: dict[str, str], line: int, name: str, errors: SourceErrors) -> dict[str, Any]:
    """The metadata of one row; `cells` holds its filled optional cells by field name."""
    metadata: dict[str, Any] = {field: cells[field] for field in _AS_WRITTEN if field in cells}
    framework = {field: cells[field] for field in _FRAMEWORK if field in cells}
    for field, cell in cells.items():
        if field in _CHAINS and (problem := judge_chain(cell)):
            errors.add(f"{field}: {problem}", line=line, name=name)
    if framework:
        metadata["framework_regions"] = framework
    kind = _read_word(cells, "type", _TYPES, "one of " + ", ".join(_TYPES.values()), line, name, errors)
    missing = [column for column in _NEEDED.get(kind or "", ()) if column not in cells]
    if missing:
        errors.add(
            f"type {kind} needs {' and '.join(missing)}; fill the columns, or leave the type empty",
            line=line,
            name=name,
        )
    if kind:
        metadata["type"] = kind
    elif "molecule_class" in cells:
        _molecule_class(cells, metadata)
    tag = _read_word(cells, "tag_location", _TAGS, "N or C", line, name, errors)
    if tag:
        metadata["tag_location"] = tag
    return metadata


def _read_word(
    cells: dict[str, str],
    field: str,
    words: dict[str, str],
    choice: str,
    line: int,
    name: str,
    errors: SourceErrors,
) -> str | None:
    """The service's word for a cell; an unknown word is an error."""
    cell = cells.get(field, _ABSENT)
    word = words.get(_normalize_cell(cell))
    if word is None and cell.casefold() != _ABSENT:
        errors.add(
            f"{field} is {quoted(cell)}; write {choice}, leave it empty, or rename the column",
            line=line,
            name=name,
        )
    return word


def _molecule_class(cells: dict[str, str], metadata: dict[str, Any]) -> None:
    """A looser word than the type; it becomes the type if the row has all that the type needs."""
    cell = cells["molecule_class"]
    kind = _TYPES.get(_normalize_cell(cell))
    if kind and all(column in cells for column in _NEEDED.get(kind, ())):
        metadata["type"] = kind
    else:
        metadata["molecule_class"] = cell


def _normalize_cell(cell: str) -> str:
    return cell.casefold().replace("_", "").replace("-", "").replace(" ", "")
