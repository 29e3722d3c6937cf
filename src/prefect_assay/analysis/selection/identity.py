"""Clusters of similar sequences around the designs that were chosen: how monoculture is limited.

Identity is 1 - edits / length of the longer sequence, edits being substituted, inserted and deleted residues. Shared
triplets settle almost all pairs, so that edits are counted for few.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

_WORD: Final = 3
_ROUNDING: Final = 1e-9
_ALIKE: Final = 0.3  # of the 5-mers of two designs that both have: one family
_LONG_WORD: Final = 5


class Clusters:
    """Chosen designs in clusters: a design belongs to the first one that it is identical enough to, else it starts one."""

    def __init__(self, identity: float, size: int) -> None:
        self._difference = 1 - identity
        self._size = size
        self._members: list[int] = []
        self._founders: list[str] = []
        self._words: list[set[str]] = []  # the triplets of each founder

    def find_cluster(self, residues: str) -> int | None:
        """The number of the first cluster that the design belongs to; None if there is no such."""
        words = _list_words(residues, _WORD)
        for number, founder in enumerate(self._founders):
            longer = max(len(founder), len(residues))
            most = int(self._difference * longer + _ROUNDING)
            # Each edit changes at most three of the overlapping triplets, of which some may occur several times.
            if len(self._words[number] - words) > _WORD * most or abs(len(founder) - len(residues)) > most:
                continue
            if count_edits(founder, residues) <= most:
                return number
        return None

    def is_full(self, cluster: int | None) -> bool:
        """Whether no further design of this cluster may be chosen."""
        return cluster is not None and self._members[cluster] >= self._size

    def add(self, residues: str, cluster: int | None) -> None:
        """Note a chosen design; without a cluster it founds one."""
        if cluster is not None:
            self._members[cluster] += 1
            return
        self._words.append(_list_words(residues, _WORD))
        self._founders.append(residues)
        self._members.append(1)


def _list_words(residues: str, length: int) -> set[str]:
    return {residues[start : start + length] for start in range(max(1, len(residues) - length + 1))}


def count_edits(first: str, second: str) -> int:
    """Fewest substitutions, insertions and deletions between two texts (bit-parallel, Myers 1999, Hyyrö 2003)."""
    if not first:
        return len(second)
    masks: dict[str, int] = {}
    for place, letter in enumerate(first):
        masks[letter] = masks.get(letter, 0) | 1 << place
    every, last = (1 << len(first)) - 1, 1 << (len(first) - 1)
    plus, minus, distance = every, 0, len(first)
    for letter in second:
        equal = masks.get(letter, 0)
        vertical = equal | minus
        equal |= ((equal & plus) + plus) ^ plus
        up = minus | ~(equal | plus)
        down = plus & equal
        distance += bool(up & last) - bool(down & last)
        up = up << 1 | 1
        plus = (down << 1 | ~(vertical | up)) & every
        minus = up & vertical & every
    return distance


def measure_identity(first: str, second: str) -> float:
    """1 - edits / length of the longer one."""
    return 1 - count_edits(first, second) / max(len(first), len(second), 1)


def number_families(residues: Sequence[str]) -> NDArray[np.int64]:
    """A number for the family of each design: 5-mers of which two have at least 30 % in common, single linkage."""
    places: dict[str, int] = {}
    rows, columns = [], []
    for place, text in enumerate(residues):
        for word in _list_words(text, _LONG_WORD):
            rows.append(place)
            columns.append(places.setdefault(word, len(places)))
    table = csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(residues), len(places)))
    both = (table @ table.T).tocoo()
    sizes = np.asarray(table.sum(axis=1)).ravel()
    first, second = both.coords
    near = both.data >= _ALIKE * (sizes[first] + sizes[second] - both.data)
    links = csr_array((np.ones(int(near.sum())), (first[near], second[near])), shape=(len(residues),) * 2)
    return np.asarray(connected_components(links, directed=False)[1], dtype=np.int64)
