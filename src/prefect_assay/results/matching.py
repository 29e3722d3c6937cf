"""Matches each entry of a result to a design of the order: by name, folded name, residues or sequence id, in this order.

No shape of results is in the contract, and name and sequence are optional in the published ones. A number under the
wrong design is worse than one that is listed without its design. So an entry that names none for certain gets a row of
its own, named by its place in the answer.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from prefect_assay.models.result import Result, ResultEntry
from prefect_assay.models.sequences import ProteinSequence
from prefect_assay.models.vocabulary import snake_case

_SPACE: Final = re.compile(r"\s+")

Place = tuple[int, int]  # the result and its entry, from 0


@dataclass(frozen=True)
class Matched:
    """The design of each entry that is about one, and the name of every other entry."""

    designs: Mapping[Place, ProteinSequence]
    names: Mapping[Place, str]
    nameless: tuple[str, ...]  # a line for each entry that may be about a design, and names none

    def name(self, place: Place) -> str:
        """The name of an entry's row; two proteins never share one."""
        design = self.designs.get(place)
        return design.name if design else self.names[place]


def match(
    results: Sequence[Result], ordered: Iterable[ProteinSequence] = (), ids: Mapping[str, str] | None = None
) -> Matched:
    """Match all entries; `ids` has the design's name for each sequence id that the service lists."""
    designs = _Designs(ordered, ids or {})
    entries = {(i, n): entry for i, result in enumerate(results) for n, entry in enumerate(result.summary)}
    kinds = {
        (i, n): (i, snake_case(e.result_type or results[i].result_type)) for (i, n), e in entries.items()
    }
    found: dict[Place, ProteinSequence] = {}
    for step in (designs.named, designs.folded, designs.with_residues, designs.with_id):
        taken = {(kinds[place], design.name) for place, design in found.items()}
        for place, entry in entries.items():
            design = None if place in found else step(entry)
            if design is None or designs.contradicts(entry, design):
                continue
            by_name = step in (designs.named, designs.folded)
            if by_name or (kinds[place], design.name) not in taken:  # one to one
                found[place] = design
                taken.add((kinds[place], design.name))
    rest = {place: entry for place, entry in entries.items() if place not in found}
    names = _own_names(rest, results, {design.name for design in designs.all})
    absent = {design.name for design in designs.all} - {design.name for design in found.values()}
    nameless = tuple(
        f"entry {n + 1} of result {results[i].id} names no design of the order, and is listed as {names[i, n]!r}"
        for i, n in rest
        if names[i, n] != rest[i, n].name or (absent and _may_be_ordered(rest[i, n]))
    )
    return Matched(found, names, nameless)


def _may_be_ordered(entry: ResultEntry) -> bool:
    """Whether an entry under a name of its own may be a design's that has no result: nothing shows another protein."""
    control = entry.sequence.get("control") if isinstance(entry.sequence, dict) else None
    return not entry.aa_string and control is not True


class _Designs:
    """The designs of an order, by what an entry may show of one."""

    def __init__(self, ordered: Iterable[ProteinSequence], ids: Mapping[str, str]) -> None:
        self.all = tuple(ordered)
        self._by_name = {design.name: design for design in self.all}
        self._folded = _only(self.all, lambda design: fold(design.name))
        self._residues = _only(self.all, lambda design: _letters(design.aa_string))
        self._known_residues = {_letters(design.aa_string) for design in self.all}
        self._ids = ids

    def named(self, entry: ResultEntry) -> ProteinSequence | None:
        return self._by_name.get(
            entry.name or entry.aa_string or ""
        )  # some put the name where residues may be

    def folded(self, entry: ResultEntry) -> ProteinSequence | None:
        return self._folded.get(fold(entry.name)) if entry.name else None

    def with_residues(self, entry: ResultEntry) -> ProteinSequence | None:
        return self._residues.get(_letters(entry.aa_string)) if entry.aa_string else None

    def with_id(self, entry: ResultEntry) -> ProteinSequence | None:
        name = self._ids.get(entry.design_id or "")
        if name is None:
            return None
        return self._by_name.get(name) or self._folded.get(fold(name))

    def contradicts(self, entry: ResultEntry, design: ProteinSequence) -> bool:
        """The entry shows the residues of another design. A tag that the laboratory has added contradicts nothing."""
        shown = _letters(entry.aa_string or "")
        return shown in self._known_residues and shown != _letters(design.aa_string)


def fold(name: str) -> str:
    """A name without case and spacing: `D0` and `d0` are one design where an order has one of them."""
    return _SPACE.sub(" ", unicodedata.normalize("NFKC", name)).strip().casefold()


def _letters(residues: str) -> str:
    return _SPACE.sub("", residues).upper()


def _only(
    designs: Sequence[ProteinSequence], key: Callable[[ProteinSequence], str]
) -> dict[str, ProteinSequence]:
    """The designs by a key that exactly one of them has."""
    grouped: defaultdict[str, list[ProteinSequence]] = defaultdict(list)
    for design in designs:
        grouped[key(design)].append(design)
    return {value: group[0] for value, group in grouped.items() if len(group) == 1}


def _own_names(
    rest: Mapping[Place, ResultEntry], results: Sequence[Result], taken: set[str]
) -> dict[Place, str]:
    """A name for each entry without a design: its own, such as that of the laboratory's control, or else its place."""
    proteins: defaultdict[str, set[str]] = defaultdict(set)
    for entry in rest.values():
        if entry.name and entry.aa_string:
            proteins[entry.name].add(_letters(entry.aa_string))
    uses = Counter({name: len(shown) for name, shown in proteins.items()})

    def own(place: Place, entry: ResultEntry) -> str:
        if entry.name and entry.name not in taken and uses[entry.name] <= 1:
            return entry.name
        return f"{entry.name or 'unmatched'} [{results[place[0]].id}/{place[1] + 1}]"

    return {place: own(place, entry) for place, entry in rest.items()}
