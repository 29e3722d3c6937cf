"""Designs as written, column by column, the errors of their source, and the checks that make a pool of them (contract 2.3 and 7).

Columns, because a million objects would not fit into memory. The loop of `checked` is the cost of reading: it calls a
function only for what is unusual.
"""

import re
import unicodedata
from array import array
from bisect import insort
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from prefect_assay.designs.readers.chain_text import (
    CODES,
    LONGEST_WORD,
    PEPTIDE,
    STOP,
    judge_chain,
)
from prefect_assay.designs.tables.errors import UnreadableFile
from prefect_assay.errors import InvalidSequences
from prefect_assay.service.models.sequences import LeftOut, Pool
from prefect_assay.service.models.spec_rules import QUOTED_MAX, quoted
from prefect_assay.service.models.vocabulary import AMINO_ACIDS, CHAIN_SEPARATOR
from prefect_assay.service.words import listed, many

# The service publishes no length limit; the longest known protein has some 35,000 residues.
MAX_RESIDUES: Final = 100_000
FAB: Final = "FAB"
DOMAINS: Final = ("VH", "VL")
_LINKER: Final = "linker"  # residues, or a word such as (G4S)3
_LAST: Final = 2**63  # what concerns the whole source is listed behind its lines
KEPT: Final = 50  # a binary file or a wrong column must not end in a million lines
_LETTERS: Final = "".join(sorted(AMINO_ACIDS))
_CLEAN = re.compile(f"[{_LETTERS}]+")
_LINKER_CELL = re.compile("[GSEAKPTQ]{5,}")  # where no VH or VL says so, other letters may be a word
# Compared before upper-casing: some letters outside ASCII turn into amino acids when they are upper-cased.
_FOREIGN = re.compile(f"[^{_LETTERS}{_LETTERS.lower()}{CHAIN_SEPARATOR}]")
_BATCH: Final = 250  # residues that are looked at together: of most batches nothing is wrong
_LISTED: Final = 5
_RESIDUES_MIN: Final = 4  # of a chain beside a longer one; fewer letters may be the label of a chain
_PROTEIN: Final = (
    30  # residues; where most designs have them, a chain that is shorter than a peptide may be a word
)
_SUSPECT = re.compile(
    "[ACGTUNRYSWKMBDHV]{12,}$"
)  # nucleotides with IUPAC codes, to be looked at more closely
_NUCLEOTIDES = re.compile("[ACGTUNRYSWKMBDHV]{12,}")
_BASES: Final = "ACGTUN"
_MOSTLY_BASES: Final = 0.9
_KINDS_OF_BASES: Final = 3
_HINTS: Final = {
    "X": "an unknown residue: decide on one",
    "B": "ambiguous (D or N): decide on one",
    "Z": "ambiguous (E or Q): decide on one",
    "J": "ambiguous (I or L): decide on one",
    "U": "selenocysteine cannot be ordered",
    "O": "pyrrolysine cannot be ordered",
    "-": "a gap: remove the alignment's gaps",
    ".": "a gap: remove the alignment's gaps",
    "*": "a stop codon inside the sequence",
    "/": "chains are separated by ':', and each is ordered, also a target",
}


class SourceErrors:
    """Every error of one source with its place, so that a user sees all of them at once."""

    def __init__(self, source: str) -> None:
        place = source if source.isprintable() else ascii(source)
        self.source = place if len(place) <= 2 * QUOTED_MAX else "..." + place[-2 * QUOTED_MAX :]
        self._kept: list[tuple[int, int, str]] = []  # line, running number, message
        self._count = 0

    def add(self, message: str, *, line: int | None = None, name: str | None = None) -> None:
        """Note an error and go on; `line` counts from 1, `name` is the sequence's."""
        self._count += 1
        if len(self._kept) >= KEPT and line is not None and line >= self._kept[-1][0]:
            return
        place = self.source if line is None else f"{self.source}, line {line}"
        place = place if name is None else f"{place}, sequence {quoted(name)}"
        insort(self._kept, (_LAST if line is None else line, self._count, f"{place}: {message}"))
        del self._kept[KEPT:]

    def stop(self, message: str, *, line: int | None = None) -> InvalidSequences:
        """The exception to raise when reading cannot go on, with the earlier errors."""
        place = self.source if line is None else f"{self.source}, line {line}"
        self._count += 1
        return self._error([*self._messages()[: KEPT - 1], f"{place}: {message}"])

    def check(self) -> None:
        """Raise InvalidSequences if there is any error."""
        if self._kept:
            raise self._error(self._messages())

    def _messages(self) -> list[str]:
        return [message for _, _, message in self._kept]

    def _error(self, messages: list[str]) -> InvalidSequences:
        left = self._count - len(messages)
        more = [f"{self.source}: {left} more findings are not listed"] if left else []
        return InvalidSequences([*messages, *more])


def no_columns(_extra: str) -> dict[str, str]:
    """The columns of a source that has none of the designer's own."""
    return {}


def clean_residues(text: str) -> str:
    """Residues as written, in upper case without white space and a closing stop."""
    return text if text.isupper() and text.isalpha() else "".join(text.split()).upper().removesuffix("*")


@dataclass(slots=True)
class Read:
    """What reading found in addition to the designs: for the report, and for the doubts about them."""

    format: str = ""
    producer: str | None = None
    columns: dict[str, str] = field(default_factory=dict)
    scores: dict[str, bool] = field(default_factory=dict)
    others: tuple[str, ...] = ()
    other_sequences: tuple[str, ...] = ()
    left_out: list[LeftOut] = field(default_factory=list)
    left_out_count: int = 0
    renamed: list[tuple[str, str]] = field(default_factory=list)
    renamed_count: int = 0
    chain_taken: bool = False  # as the user has chosen it
    left_chains: dict[str, str] = field(default_factory=dict)  # residues with the design that has them
    natives: list[str] = field(default_factory=list)  # residues of native inputs
    targets: dict[str, None] = field(default_factory=dict)  # chains of columns of targets
    mutations: list[str] = field(default_factory=list)  # of a column, if there is one: one for each design
    asked: list[str] = field(default_factory=list)  # lines about records that may be no designs

    def leave_out(self, name: str, line: int | None, reason: str) -> None:
        """Count a record that is not measured, and list the first ones."""
        self.left_out_count += 1
        if self.left_out_count <= KEPT:
            self.left_out.append(LeftOut(name=name, line=line, reason=reason))

    def note_left_chains(self, name: str, chains: Sequence[str], taken: Sequence[str]) -> None:
        """Keep the chains of a design of which only some were taken."""
        for chain in {*map(clean_residues, chains)} - {*map(clean_residues, taken)}:
            self.left_chains.setdefault(chain, name)

    def rename(self, written: str, name: str) -> None:
        """Count a changed name, and list the first ones."""
        self.renamed_count += 1
        if self.renamed_count <= KEPT:
            self.renamed.append((written, name))


@dataclass(slots=True)
class Rows:
    """Designs as written, one entry of each list per design; `residues` may have any letters and white space.

    `extras` holds the designer's own columns as text, which `unpack` turns into `{title: value}`. `controls` and
    `metadata` are by position.
    """

    limit: int
    lines: "array[int]" = field(default_factory=lambda: array("Q"))
    names: list[str] = field(default_factory=list)
    residues: list[str] = field(default_factory=list)
    extras: list[str] = field(default_factory=list)
    unpack: Callable[[str], dict[str, str]] = no_columns
    controls: set[int] = field(default_factory=set)
    metadata: dict[int, dict[str, Any]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    read: "Read" = field(default_factory=Read)

    def keep(self, places: list[int]) -> None:
        """Keep the designs at these places, in this order, with all that is known of them."""
        self.lines = array("Q", (self.lines[place] for place in places))
        for column in (self.names, self.residues, self.extras, self.read.mutations):
            column[:] = [column[place] for place in places] if column else []
        self.controls = {new for new, place in enumerate(places) if place in self.controls}
        self.metadata = {
            new: self.metadata[place] for new, place in enumerate(places) if place in self.metadata
        }

    def check_number(self) -> None:
        """Stop at the first design beyond the limit; those before it stay."""
        if len(self.names) <= self.limit:
            return
        line = self.lines[self.limit]
        for column in (self.lines, self.names, self.residues, self.extras):
            del column[self.limit :]
        raise UnreadableFile(f"more than {self.limit:,} sequences; divide them into several files", line)


def check_rows(rows: Rows, source: str, errors: SourceErrors, *, as_protein: bool = False) -> Pool:
    """The designs with duplicates set aside; findings go to `errors`, and their designs are left out.

    With `as_protein` residues that look like nucleotides are taken as amino acids.
    """
    _check_letters(rows, errors, as_protein=as_protein)
    _check_names(rows, errors)
    _check_domains(rows, errors)
    if (
        not rows.controls
        and not rows.metadata
        and len(set(rows.residues)) == len(rows.residues)
        and all(rows.residues)
    ):
        return _make_pool(rows, source, range(len(rows.residues)), [], [])
    known_residues: dict[str | tuple[str, str], int] = {}  # by the position of the first
    kept: list[int] = []
    duplicates: list[tuple[str, str]] = []
    spare: list[str] = []  # the designer's columns of duplicates
    for position, residues in enumerate(rows.residues):
        if not residues:
            continue
        metadata = rows.metadata.get(position, {})
        if metadata.get("type") == FAB:  # contract 2.3: Fabs are exempt from the duplicate rule
            kept.append(position)
            continue
        tag = metadata.get("tag_location")
        first = known_residues.setdefault((residues, tag) if tag else residues, position)
        if first == position:
            kept.append(position)
        elif (position in rows.controls) == (first in rows.controls):
            duplicates.append((rows.names[position], rows.names[first]))
            spare.append(rows.extras[position])
        else:
            errors.add(
                f"has the same residues as {quoted(rows.names[first])}, and only one of the two is a control; "
                "leave one out",
                line=rows.lines[position],
                name=rows.names[position],
            )
    return _make_pool(rows, source, kept, duplicates, spare)


def _make_pool(
    rows: Rows, source: str, kept: Sequence[int], duplicates: list[tuple[str, str]], spare: list[str]
) -> Pool:
    every = len(kept) == len(rows.names)
    names, residues, extras = (
        tuple(column) if every else tuple([column[position] for position in kept])
        for column in (rows.names, rows.residues, rows.extras)
    )
    return Pool(
        source=source,
        names=names,
        residues=residues,
        extras=extras,
        unpack=rows.unpack,
        controls=frozenset(new for new, position in enumerate(kept) if position in rows.controls)
        if rows.controls
        else frozenset(),
        metadata={
            new: rows.metadata[position] for new, position in enumerate(kept) if position in rows.metadata
        }
        if rows.metadata
        else {},
        duplicates=tuple(duplicates),
        duplicate_extras=tuple(spare),
        notes=tuple(rows.notes),
    )


def name_key(name: str) -> str:
    """Names with the same key are the same name: without regard to case and Unicode form."""
    return name.casefold() if name.isascii() else unicodedata.normalize("NFC", name).casefold()


def _check_letters(rows: Rows, errors: SourceErrors, *, as_protein: bool) -> None:
    """Replace the residues of unusual texts, and say where white space was left out."""
    short: list[tuple[int, int]] = []
    in_parts: list[str] = []
    lower: list[str] = []
    for position in _unusual_texts(rows.residues):
        text = rows.residues[position]
        rows.residues[position] = _read_residues(
            text, rows.lines[position], rows.names[position], errors, as_protein=as_protein
        )
        if rows.residues[position]:
            short += [
                (position, place)
                for place, chain in enumerate(text.split(CHAIN_SEPARATOR))
                if len("".join(chain.split())) < PEPTIDE and not chain.rstrip().endswith(STOP)
            ]
            if text.islower():
                lower.append(quoted(rows.names[position]))
            if any(len(chain.split()) > 1 for chain in text.split(CHAIN_SEPARATOR)):
                in_parts.append(quoted(rows.names[position]))
    if in_parts:
        rows.notes.append(
            f"white space inside {many(len(in_parts), 'sequence')}, in lines or blocks of one width, was left out: "
            f"{listed(in_parts, _LISTED)}"
        )
    if lower:
        names = f": {listed(lower, _LISTED)}" if len(lower) < len(rows.names) else ""
        rows.notes.append(
            f"{many(len(lower), 'design is', 'designs are')} written in lower case, and read as the same residues in upper case{names}"
        )
    _refuse_short_chains(rows, short, errors)


def _check_domains(rows: Rows, errors: SourceErrors) -> None:
    """VH, VL and the linker of a single chain go out with the sequence, so that they must be parts of it."""
    # A row at which reading has stopped has metadata and no residues.
    for position, residues in enumerate(rows.residues if rows.metadata else ()):
        metadata = rows.metadata.get(position, {})
        for title in (*DOMAINS, _LINKER):
            cell = metadata.get(title, "")
            domain = "".join(cell.split()).upper().removesuffix(STOP)
            letters = _CLEAN if any(map(metadata.get, DOMAINS)) else _LINKER_CELL
            is_residues = title != _LINKER or (CHAIN_SEPARATOR not in residues and letters.fullmatch(cell))
            if residues and is_residues and domain not in residues and not judge_chain(cell):
                order = f", rename the column {title}, or order that column with --sequence-column (in a form: sequence_column)"
                errors.add(
                    f"{title} ({many(len(domain), 'letter')}) is no part of the sequence ({many(len(residues), 'letter')}), and is sent with it: correct "
                    f"the row{order if title in DOMAINS else f', or rename the column {title}'}",
                    line=rows.lines[position],
                    name=rows.names[position],
                )


def _check_names(rows: Rows, errors: SourceErrors) -> None:
    keys = [*map(name_key, rows.names)]
    if len(set(keys)) == len(keys) and all(keys):
        return
    known: dict[str, int] = {}  # the position of the first
    for position, (key, name) in enumerate(zip(keys, rows.names, strict=True)):
        first = known.setdefault(key, position)
        if not key:
            errors.add(
                "a sequence without a name; names are needed to tell results apart", line=rows.lines[position]
            )
        elif first != position:
            other = rows.names[first]
            how = "the same name is" if other == name else f"{quoted(other)}, which differs only in case, is"
            errors.add(
                f"{how} on line {rows.lines[first]}; give each design a name of its own",
                line=rows.lines[position],
                name=name,
            )


def _unusual_texts(residues: Sequence[str]) -> Iterator[int]:
    """The positions of all that is more than upper-case amino acids, may be nucleotides, or is short: a batch at a time."""
    suspect = _SUSPECT.match
    for start in range(0, len(residues), _BATCH):
        batch = residues[start : start + _BATCH]
        joined = "".join(batch)
        is_clean = len(joined) <= MAX_RESIDUES and not joined.encode(errors="replace").translate(
            None, _LETTERS.encode()
        )
        for position, text in enumerate(batch, start):
            # Leucine is in nearly all proteins, and no code of a nucleotide.
            if (
                ("L" not in text and suspect(text))
                or text[:3] in CODES
                or len(text) <= LONGEST_WORD
                or not (is_clean or (len(text) <= MAX_RESIDUES and _CLEAN.fullmatch(text)))
            ):
                yield position


def _refuse_short_chains(rows: Rows, short: Sequence[tuple[int, int]], errors: SourceErrors) -> None:
    """Refuse a short chain whose place holds proteins in most other designs: it is rather a word than a peptide.

    `short` has positions of designs and of chains.
    """
    if not short:
        return
    apart = set(short)
    lengths: dict[int, list[int]] = {}
    for position, text in enumerate(rows.residues):
        for place, chain in enumerate(text.split(CHAIN_SEPARATOR)):
            if chain and (position, place) not in apart:
                lengths.setdefault(place, []).append(len(chain))
    number = Counter(place for _, place in short)
    for position, place in short:
        others = lengths.get(place, [])
        proteins = sum(length >= _PROTEIN for length in others)
        if proteins > max(len(others), number[place]) / 2:
            chain = rows.residues[position].split(CHAIN_SEPARATOR)[place]
            errors.add(
                f"{quoted(chain)} has {many(len(chain), 'residue')}, where {proteins} others have {_PROTEIN} or more: is it a word? "
                f"Fill the sequence in, or leave the design out; a peptide of these letters is ordered as {chain + STOP!r}",
                line=rows.lines[position],
                name=rows.names[position],
            )


def is_nucleotides(residues: str) -> bool:
    """Twelve letters or more, nearly all of them A, C, G, T, U or N, at least three kinds of these, the rest IUPAC codes."""
    if not _NUCLEOTIDES.fullmatch(residues):
        return False
    counts = [residues.count(base) for base in _BASES]
    kinds = sum(1 for count in counts[:-1] if count)
    return sum(counts) >= _MOSTLY_BASES * len(residues) and kinds >= _KINDS_OF_BASES


def _read_residues(text: str, line: int, name: str, errors: SourceErrors, *, as_protein: bool) -> str:
    """The residues in upper case without white space and closing stops; empty when they are wrong, which is noted."""
    written = text.split(CHAIN_SEPARATOR)
    chains = ["".join(chain.split()).removesuffix(STOP) for chain in written]
    residues = CHAIN_SEPARATOR.join(chains)
    problem = _find_problem(residues, chains, as_protein=as_protein, written=written)
    if problem:
        errors.add(problem, line=line, name=name)
        return ""
    return residues.upper()


def _find_problem(
    residues: str, chains: Sequence[str], *, as_protein: bool, written: Sequence[str]
) -> str | None:
    if not as_protein and any(is_nucleotides(chain.upper()) for chain in chains):
        return (
            "these are nucleotides (DNA or RNA), not a protein: translate them; --as-protein (in a form: as_protein) "
            "takes the letters as amino acids"
        )
    if not residues:
        return "no residues"
    if len(residues) > MAX_RESIDUES:
        return f"more than {MAX_RESIDUES:,} residues; no protein is that long"
    problem = next(filter(None, map(judge_chain, written)), None)
    foreign = [(match.start() + 1, match.group()) for match in _FOREIGN.finditer(residues)]
    if not problem and foreign:
        problem = _letters_error(foreign)
    if not problem and not all(chains):
        problem = f"an empty chain: {CHAIN_SEPARATOR!r} separates chains and belongs only between them"
    return problem or _mixed_case(residues) or _find_label(chains, written)


def _find_label(chains: Sequence[str], written: Sequence[str]) -> str | None:
    """A few letters beside a longer chain may be its label, as in `A:MKT`; a closing stop says that they are residues."""
    longest = max(map(len, chains))
    label = next(
        (
            chain
            for chain, text in zip(chains, written, strict=True)
            if len(chain) < _RESIDUES_MIN and not text.rstrip().endswith(STOP)
        ),
        None,
    )
    if label is None or longest < PEPTIDE:
        return None
    return (
        f"{quoted(label)} has {many(len(label), 'residue')}, beside a chain of {longest}: is it the label of a chain? Leave it out, or "
        f"take the other chains with --chain (in a form: chain); a peptide of these letters is ordered as {label.upper() + STOP!r}"
    )


def _mixed_case(residues: str) -> str | None:
    """Lower-case letters next to upper-case ones are not the same residues: each program means something else by them."""
    if residues.isupper() or residues.islower():
        return None
    places = re.finditer("[a-z]+" if residues[:1].isupper() else "[A-Z]+", residues)
    shown = listed([f"{quoted(match.group())} at position {match.start() + 1}" for match in places], _LISTED)
    return (
        f"letters of both cases: {shown}. They may be a missing value, D residues, structure letters or a mask: write every residue in "
        "upper case, and leave out everything else"
    )


def _letters_error(foreign: list[tuple[int, str]]) -> str:
    places = listed(
        [f"{_describe_letter(letter)} at position {position}" for position, letter in foreign], _LISTED
    )
    hints = dict.fromkeys(_HINTS[key] for _, letter in foreign if (key := letter.upper()) in _HINTS)
    if {letter for _, letter in foreign} == {"/"}:
        hints |= {"--chain (in a form: chain) takes one of them": ""}
    hint = "; ".join(hints) or f"use the twenty letters {_LETTERS}"
    return f"not an amino acid: {places} ({hint})"


def _describe_letter(letter: str) -> str:
    return repr(letter) if letter.isascii() and letter.isprintable() else f"U+{ord(letter):04X}"
