"""Names that are mutations, such as A24G: do the residues have them? A table may carry the wild type in every row. Pure."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from prefect_assay.designs.doubt import KEEP, pick_evenly
from prefect_assay.service.models.spec_rules import quoted
from prefect_assay.service.models.vocabulary import AMINO_ACIDS, CHAIN_SEPARATOR
from prefect_assay.service.words import listed, many

_LETTER: Final = f"[{''.join(sorted(AMINO_ACIDS))}]"
_ONE = re.compile(f"({_LETTER})([0-9]{{1,4}})({_LETTER})")
_NAME = re.compile(rf"(?:.*?[^A-Za-z0-9])??((?:{_LETTER}[0-9]{{1,4}}{_LETTER}[:,;/_+ .-]*)+)")
_LOOKED_AT: Final = 50
_MOST: Final = 0.8
_SURE: Final = 3  # designs: with fewer, a fit may be chance
_SAMPLE: Final = 500
_LISTED: Final = 3
_HELP: Final = (
    "give the mutated sequence in each row, in a column such as mutated_sequence, or name other columns with --name-column "
    "and --sequence-column"
)

Mutation = tuple[str, int, str]


@dataclass(frozen=True, slots=True)
class Mutated:
    """What is wrong with the mutations: `refused` ends the reading, `note` is for a person."""

    refused: str | None = None
    note: str | None = None


def mutations_in(text: str) -> tuple[Mutation, ...]:
    """The mutations that a name is, or ends in."""
    match = _NAME.fullmatch(text.strip())
    return tuple((wild, int(place), new) for wild, place, new in _ONE.findall(match[1])) if match else ()


def check_mutations(names: Sequence[str], residues: Sequence[str]) -> Mutated:
    """Compare mutations with residues; `names` are the designs' names or the cells of a column of mutations."""
    first = [mutations_in(name) for name in names[:_LOOKED_AT]]
    if sum(map(bool, first)) < _MOST * len(first) or not any(first):
        return Mutated()
    rows = [
        (text, mutations, "".join(chain.split()).upper())
        for text, chain in zip(names, residues, strict=True)
        if (mutations := mutations_in(text)) and CHAIN_SEPARATOR not in chain
    ]
    if len({mutations for _, mutations, _ in rows}) < 2:  # noqa: PLR2004 - all are the same mutant
        return Mutated()
    again = Counter(chain for _, _, chain in rows)
    chain, count = again.most_common(1)[0]
    if 2 * count > len(rows) and len({mutations for _, mutations, sequence in rows if sequence == chain}) > 1:
        name, mutations, _ = next(row for row in rows if row[2] == chain)
        return Mutated(
            f"{count:,} of {len(rows):,} rows with names of mutations such as {quoted(name)} have the same residues: the wild type in "
            f"every row? {_explain_mismatch(chain, mutations)}{_HELP}"
        )
    return _compare_numberings(pick_evenly(rows, _SAMPLE))


def _explain_mismatch(chain: str, mutations: Sequence[Mutation]) -> str:
    wild, place, _ = mutations[0]
    if 0 < place <= len(chain) and chain[place - 1] != wild:
        return f"Residue {place} is {chain[place - 1]}, not even {wild}. "
    return ""


def _compare_numberings(rows: Sequence[tuple[str, tuple[Mutation, ...], str]]) -> Mutated:
    """With the one numbering that most rows agree on."""
    fits, wild = _find_best(rows, 2), _find_best(rows, 0)
    if len(fits) >= _MOST * len(rows):
        wrong = [rows[index][0] for index in range(len(rows)) if index not in fits]
        return (
            Mutated(
                note=f"{many(len(wrong), 'design lacks', 'designs lack')} the mutations of the name: {listed([*map(quoted, wrong)], _LISTED)}"
            )
            if wrong
            else Mutated()
        )
    what = f"the residues do not have the mutations of their names, such as {quoted(rows[0][0])}"
    if len(wild) >= _MOST * len(rows):
        return Mutated(f"{what}, but the wild type's; {_HELP}")
    if len(rows) >= _SURE and 2 * len(fits) <= len(rows):
        return Mutated(f"{what}, in any one numbering; {_HELP}; {KEEP} orders them as they are")
    return Mutated(note=what)


def _find_best(rows: Sequence[tuple[str, tuple[Mutation, ...], str]], side: int) -> set[int]:
    """The rows that have these letters of all their mutations, wild (0) or new (2), in the best of all numberings."""
    by_shift: dict[int, set[int]] = {}
    for row, (_, mutations, chain) in enumerate(rows):
        shifts: set[int] | None = None
        for mutation in mutations:
            letter, place = mutation[side], mutation[1]
            here = {index + 1 - place for index, residue in enumerate(chain) if residue == letter}
            shifts = here if shifts is None else shifts & here
        for shift in shifts or ():
            by_shift.setdefault(shift, set()).add(row)
    return max(by_shift.values(), key=len, default=set())
