"""Matches each entry of a result to a design of the order: by name, folded name, residues or sequence id, in this order.

No shape of results is in the contract, and name and sequence are optional in the published ones. A number under the
wrong design is worse than one that is listed without its design. So an entry that names none for certain, or that shows
other residues than were ordered, gets a row of its own, named by its place in the answer.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Final

from prefect_assay.service.models.identifiers import normalize_id
from prefect_assay.service.models.result import Result, ResultEntry
from prefect_assay.service.models.sequences import ProteinSequence
from prefect_assay.service.models.vocabulary import CHAIN_SEPARATOR, snake_case

_SPACE: Final = re.compile(r"\s+")
_CHAINS_REORDERED_MAX: Final = 5  # of more chains the number of orders is too large to try

Place = tuple[int, int]  # the result and its entry, from 0


@dataclass(frozen=True)
class Matched:
    """The design of each entry that is about one, and the name of every other entry."""

    designs: Mapping[Place, ProteinSequence]
    names: Mapping[Place, str]
    nameless: tuple[
        str, ...
    ]  # a line for each entry that may be about a design and names none, or shows other residues

    def name(self, place: Place) -> str:
        """The name of an entry's row; two proteins never share one."""
        design = self.designs.get(place)
        return design.name if design else self.names[place]


def match_results(
    results: Sequence[Result], ordered: Iterable[ProteinSequence] = (), ids: Mapping[str, str] | None = None
) -> Matched:
    """Match all entries; `ids` has the design's name for each sequence id that the service lists."""
    designs = _Designs(ordered, ids or {})
    entries = {(i, n): entry for i, result in enumerate(results) for n, entry in enumerate(result.summary)}
    kinds = {
        (i, n): (i, snake_case(e.result_type or results[i].result_type)) for (i, n), e in entries.items()
    }
    matched: dict[Place, ProteinSequence] = {}
    refused: dict[Place, ProteinSequence] = {}
    for step in (designs.named, designs.folded, designs.with_residues, designs.with_id):
        # An earlier step is surer of its entries; those of one step are replicates of the design.
        taken = {(kinds[place], design.name) for place, design in matched.items()}
        for place, entry in entries.items():
            design = None if place in matched or place in refused else step(entry)
            if design is None:
                continue
            if designs.contradicts(entry, design):
                refused[place] = design
                continue
            by_name = step in (designs.named, designs.folded)
            if by_name or (kinds[place], design.name) not in taken:
                matched[place] = design
    rest = {place: entry for place, entry in entries.items() if place not in matched}
    names = _name_unmatched(rest, results, {design.name for design in designs.all}, set(refused))
    absent = {design.name for design in designs.all} - {design.name for design in matched.values()}
    notes = tuple(
        _describe_mismatch(place, results, names[place], refused.get(place))
        for place in rest
        if place in refused or names[place] != rest[place].name or (absent and _may_be_ordered(rest[place]))
    )
    return Matched(matched, names, notes)


def _describe_mismatch(
    place: Place, results: Sequence[Result], listed_name: str, refused: ProteinSequence | None
) -> str:
    entry = f"entry {place[1] + 1} of result {results[place[0]].id}"
    if refused is None:
        return f"{entry} names no design of the order, and is listed as {listed_name!r}"
    return (
        f"{entry} is called {refused.name!r} and shows other residues than were ordered under this name: its values are "
        f"listed as {listed_name!r} and not as that design's. Ask the laboratory which protein it has measured"
    )


def _may_be_ordered(entry: ResultEntry) -> bool:
    """Whether an entry under a name of its own may be a design's that has no result: nothing shows another protein."""
    control = entry.sequence.get("control") if isinstance(entry.sequence, dict) else None
    return not entry.aa_string and control is not True


class _Designs:
    """The designs of an order, by what an entry may show of one."""

    def __init__(self, ordered: Iterable[ProteinSequence], ids: Mapping[str, str]) -> None:
        self.all = tuple(ordered)
        self._by_name = {design.name: design for design in self.all}
        self._folded = _index_unique(self.all, lambda design: fold_name(design.name))
        self._residues = _index_unique(self.all, lambda design: _list_letters(design.aa_string))
        self._known_residues = {_list_letters(design.aa_string) for design in self.all}
        self._names = {fold_name(design.name) for design in self.all}
        self._ids = {normalize_id(sequence_id): name for sequence_id, name in ids.items()}

    def named(self, entry: ResultEntry) -> ProteinSequence | None:
        return self._by_name.get(
            entry.name or entry.aa_string or ""
        )  # some put the name where residues may be

    def folded(self, entry: ResultEntry) -> ProteinSequence | None:
        return self._folded.get(fold_name(entry.name)) if entry.name else None

    def with_residues(self, entry: ResultEntry) -> ProteinSequence | None:
        return self._residues.get(_list_letters(entry.aa_string)) if entry.aa_string else None

    def with_id(self, entry: ResultEntry) -> ProteinSequence | None:
        name = self._ids.get(normalize_id(entry.design_id or ""))
        if name is None:
            return None
        return self._by_name.get(name) or self._folded.get(fold_name(name))

    def contradicts(self, entry: ResultEntry, design: ProteinSequence) -> bool:
        """Return True if the entry shows other residues than the design's. A tag around them contradicts nothing.

        Where the designs of an order contain one another, the entry is about the longest one that it shows.
        """
        shown = self._shown_residues(entry)
        if shown is None:
            return False
        residues = _list_letters(design.aa_string)
        return not has_chains_of(shown, residues) or any(
            has_chains_of(other, residues) and has_chains_of(shown, other)
            for other in self._known_residues - {residues}
        )

    def _shown_residues(self, entry: ResultEntry) -> str | None:
        """The residues of an entry; None without any. Some services put the name where residues may be."""
        shown = entry.aa_string
        if not shown or fold_name(shown) in self._names | {fold_name(entry.name or "")}:
            return None
        return _list_letters(shown)


def has_chains_of(shown: str, ordered: str) -> bool:
    """Return True if every ordered chain is a part of a chain of its own in what is shown, in any order of the chains."""
    chains, others = ordered.split(CHAIN_SEPARATOR), shown.split(CHAIN_SEPARATOR)
    if len(chains) != len(others):
        return False
    orders = permutations(others) if len(others) <= _CHAINS_REORDERED_MAX else [tuple(others)]
    return any(all(chain in other for chain, other in zip(chains, order, strict=True)) for order in orders)


def fold_name(name: str) -> str:
    """A name without case and spacing: `D0` and `d0` are one design where an order has one of them."""
    return _SPACE.sub(" ", unicodedata.normalize("NFKC", name)).strip().casefold()


def _list_letters(residues: str) -> str:
    return _SPACE.sub("", residues).upper()


def _index_unique(
    designs: Sequence[ProteinSequence], key: Callable[[ProteinSequence], str]
) -> dict[str, ProteinSequence]:
    """The designs by a key that exactly one of them has."""
    grouped: defaultdict[str, list[ProteinSequence]] = defaultdict(list)
    for design in designs:
        grouped[key(design)].append(design)
    return {value: group[0] for value, group in grouped.items() if len(group) == 1}


def _name_unmatched(
    rest: Mapping[Place, ResultEntry], results: Sequence[Result], taken: set[str], refused: set[Place]
) -> dict[Place, str]:
    """A name for each entry without a design: its own, such as that of the laboratory's control, or else its place."""
    proteins: defaultdict[str, set[str]] = defaultdict(set)
    for entry in rest.values():
        if entry.name and entry.aa_string:
            proteins[entry.name].add(_list_letters(entry.aa_string))
    uses = Counter({name: len(shown) for name, shown in proteins.items()})

    def choose_name(place: Place, entry: ResultEntry) -> str:
        if entry.name and entry.name not in taken and place not in refused and uses[entry.name] <= 1:
            return entry.name
        return f"{entry.name or 'unmatched'} [{results[place[0]].id}/{place[1] + 1}]"

    return {place: choose_name(place, entry) for place, entry in rest.items()}
