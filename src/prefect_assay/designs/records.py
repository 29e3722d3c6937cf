"""Designs as written, the errors of their source, and the checks that make sequences of them (contract 2.3 and 7)."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from prefect_assay.errors import InvalidSequences
from prefect_assay.models.sequences import Duplicate, ProteinSequence, Sequences
from prefect_assay.models.spec_rules import QUOTED_MAX, quoted
from prefect_assay.models.vocabulary import AMINO_ACIDS, CHAIN_SEPARATOR

# The service publishes no length limit; the longest known protein has some 35,000 residues.
MAX_RESIDUES: Final = 100_000
MAX_SEQUENCES: Final = 100_000
FAB: Final = "FAB"
KEPT: Final = 50  # a binary file or a wrong column must not end in a million lines
STOP: Final = "*"
# Compared before upper-casing: some letters outside ASCII turn into amino acids when they are upper-cased.
_FOREIGN = re.compile(
    f"[^{''.join(sorted(AMINO_ACIDS))}{''.join(sorted(AMINO_ACIDS)).lower()}{CHAIN_SEPARATOR}]"
)
_LISTED: Final = 5
_DNA_FROM: Final = 30
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
    "/": "chains are separated by ':'",
}


@dataclass(frozen=True, slots=True)
class Record:
    """A design as written, from `line` on; `residues` has no white space but any letters."""

    line: int
    name: str
    residues: str
    control: bool = False
    metadata: dict[str, Any] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)


class SourceErrors:
    """Every error of one source with its place, so that a user sees all of them at once."""

    def __init__(self, source: str) -> None:
        place = source if source.isprintable() else ascii(source)
        self.source = place if len(place) <= 2 * QUOTED_MAX else "..." + place[-2 * QUOTED_MAX :]
        self._kept: list[str] = []
        self._more = 0

    def add(self, message: str, *, line: int | None = None, name: str | None = None) -> None:
        """Note an error and go on; `line` counts from 1, `name` is the sequence's."""
        if len(self._kept) >= KEPT:
            self._more += 1
            return
        place = self.source if line is None else f"{self.source}, line {line}"
        place = place if name is None else f"{place}, sequence {quoted(name)}"
        self._kept.append(f"{place}: {message}")

    def stop(self, message: str, *, line: int | None = None) -> InvalidSequences:
        """The exception to raise when reading cannot go on, with the earlier errors."""
        self._kept = self._kept[: KEPT - 1]
        self.add(message, line=line)
        return self._error()

    def check(self) -> None:
        """Raise InvalidSequences if there is any error."""
        if self._kept:
            raise self._error()

    def _error(self) -> InvalidSequences:
        more = [f"{self.source}: {self._more} more findings are not listed"] if self._more else []
        return InvalidSequences([*self._kept, *more])


def checked(records: Iterable[Record], source: str, errors: SourceErrors) -> Sequences:
    """The sequences, duplicates set aside; InvalidSequences with every error, or when there are no sequences."""
    collection = _Collection(errors)
    count = 0
    for count, record in enumerate(records, start=1):
        if count > MAX_SEQUENCES:
            raise errors.stop(
                f"more than {MAX_SEQUENCES:,} sequences; divide them into several files", line=record.line
            )
        collection.add(record)
    if not count:
        errors.add("no sequences; give a FASTA file, or a table with at least one row below its header")
    errors.check()
    return Sequences(source=source, items=tuple(collection.items), duplicates=tuple(collection.duplicates))


class _Collection:
    """The names and residues so far: names are unique, repeated residues are duplicates."""

    def __init__(self, errors: SourceErrors) -> None:
        self.items: list[ProteinSequence] = []
        self.duplicates: list[Duplicate] = []
        self._errors = errors
        self._names: dict[str, tuple[str, int]] = {}
        self._residues: dict[tuple[str, str | None], ProteinSequence] = {}

    def add(self, record: Record) -> None:
        name = record.name.strip()
        residues = self._letters(record)
        if not self._named(name, record.line) or residues is None:
            return
        sequence = ProteinSequence(
            name=name,
            aa_string=residues,
            control=record.control,
            metadata=record.metadata,
            attributes=record.attributes,
        )
        if record.metadata.get("type") == FAB:  # contract 2.3: Fabs are exempt from the duplicate rule
            self.items.append(sequence)
            return
        first = self._residues.setdefault((residues, record.metadata.get("tag_location")), sequence)
        if first is sequence:
            self.items.append(sequence)
        elif first.control != sequence.control:
            self._errors.add(
                f"has the same residues as {quoted(first.name)}, and only one of the two is a control; leave one out",
                line=record.line,
                name=name,
            )
        else:
            self.duplicates.append(Duplicate(name=name, same_as=first.name))

    def _named(self, name: str, line: int) -> bool:
        if not name:
            self._errors.add("a sequence without a name; names are needed to tell results apart", line=line)
            return False
        key = unicodedata.normalize("NFC", name).casefold()
        known, where = self._names.setdefault(key, (name, line))
        if where == line and known == name:
            return True
        how = "the same name is" if known == name else f"{quoted(known)}, which differs only in case, is"
        self._errors.add(f"{how} on line {where}; give each design a name of its own", line=line, name=name)
        return False

    def _letters(self, record: Record) -> str | None:
        """The residues in upper case without closing stops; None when they are wrong, which is noted."""
        chains = [chain.removesuffix(STOP) for chain in record.residues.split(CHAIN_SEPARATOR)]
        residues = CHAIN_SEPARATOR.join(chains)
        problem = _problem(residues, chains)
        if problem:
            self._errors.add(problem, line=record.line, name=record.name.strip())
            return None
        return residues.upper()


def _problem(residues: str, chains: list[str]) -> str | None:
    if not residues:
        return "no residues"
    if len(residues) > MAX_RESIDUES:
        return f"more than {MAX_RESIDUES:,} residues; no protein is that long"
    foreign = [(match.start() + 1, match.group()) for match in _FOREIGN.finditer(residues)]
    if foreign:
        return _letters_error(foreign)
    if not all(chains):
        return f"an empty chain: {CHAIN_SEPARATOR!r} separates chains and belongs only between them"
    if len(residues) >= _DNA_FROM and set(residues.upper()) == set("ACGT"):
        return "only A, C, G and T: this looks like DNA; translate it to protein"
    return None


def _letters_error(foreign: list[tuple[int, str]]) -> str:
    listed = ", ".join(f"{_letter(letter)} at position {at}" for at, letter in foreign[:_LISTED])
    more = f" and {len(foreign) - _LISTED:,} more" if len(foreign) > _LISTED else ""
    hints = dict.fromkeys(_HINTS[key] for _, letter in foreign if (key := letter.upper()) in _HINTS)
    hint = "; ".join(hints) or f"use the twenty letters {''.join(sorted(AMINO_ACIDS))}"
    return f"no amino acid: {listed}{more} ({hint})"


def _letter(letter: str) -> str:
    return repr(letter) if letter.isascii() and letter.isprintable() else f"U+{ord(letter):04X}"
