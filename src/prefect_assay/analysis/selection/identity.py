"""Clusters of similar sequences around the designs that were chosen: how monoculture is limited.

Identity is 1 - edits / length of the longer sequence, edits being substituted, inserted and deleted residues. Equal
positions and shared triplets settle almost all pairs, so that edits are counted for few.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

# The last five bits of a letter; of ASCII's capitals and the chain separator they differ.
_LETTERS: Final = 32
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
        self._lengths = np.empty(0, dtype=np.intp)
        self._words = np.empty((0, _LETTERS**_WORD), dtype=np.bool_)  # which triplets a founder has
        self._aligned: dict[int, tuple[list[int], NDArray[np.uint8]]] = {}  # founders by length

    def find(self, residues: str) -> int | None:
        """The number of the first cluster that the design belongs to, without gaps if possible; None if there is no such."""
        codes = _codes(residues)
        numbers, rows = self._aligned.get(len(residues), ([], None))
        if rows is not None:
            enough = (rows != codes).sum(axis=1) <= self._most(len(residues))
            if enough.any():
                return numbers[int(enough.argmax())]
        return self._by_edits(residues, codes)

    def _by_edits(self, residues: str, codes: NDArray[np.uint8]) -> int | None:
        longer = np.maximum(self._lengths, len(residues))
        most = (self._difference * longer + _ROUNDING).astype(np.intp)
        possible = np.flatnonzero(np.abs(self._lengths - len(residues)) <= most)
        if not possible.size:
            return None
        shared = self._words[possible][:, _words(codes)].sum(axis=1)
        # Each edit changes at most three of the overlapping triplets.
        possible = possible[shared >= (longer - _WORD + 1 - _WORD * most)[possible]]
        return next((int(at) for at in possible if edits(self._founders[at], residues) <= most[at]), None)

    def _most(self, longer: int) -> int:
        return int(self._difference * longer + _ROUNDING)

    def full(self, cluster: int | None) -> bool:
        """Return True if no further design of this cluster may be chosen."""
        return cluster is not None and self._members[cluster] >= self._size

    def add(self, residues: str, cluster: int | None) -> None:
        """Note a chosen design; without a cluster it founds one."""
        if cluster is not None:
            self._members[cluster] += 1
            return
        codes = _codes(residues)
        table = np.zeros((1, _LETTERS**_WORD), dtype=np.bool_)
        table[0, _words(codes)] = True
        numbers, rows = self._aligned.get(len(residues), ([], np.empty((0, len(residues)), np.uint8)))
        self._aligned[len(residues)] = ([*numbers, len(self._founders)], np.vstack([rows, codes]))
        self._words = np.vstack([self._words, table])
        self._lengths = np.append(self._lengths, len(residues))
        self._founders.append(residues)
        self._members.append(1)


def _codes(residues: str) -> NDArray[np.uint8]:
    return np.frombuffer(residues.encode(), dtype=np.uint8) & np.uint8(_LETTERS - 1)


def _words(codes: NDArray[np.uint8]) -> NDArray[np.intp]:
    """The overlapping triplets as numbers."""
    wide = codes.astype(np.intp)
    return (wide[:-2] * _LETTERS + wide[1:-1]) * _LETTERS + wide[2:]


def edits(first: str, second: str) -> int:
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


def families(residues: Sequence[str]) -> NDArray[np.int64]:
    """A number for the family of each design: 5-mers of which two have at least 30 % in common, single linkage."""
    places: dict[str, int] = {}
    rows, columns = [], []
    for at, text in enumerate(residues):
        for word in {text[start : start + _LONG_WORD] for start in range(max(1, len(text) - _LONG_WORD + 1))}:
            rows.append(at)
            columns.append(places.setdefault(word, len(places)))
    table = csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(residues), len(places)))
    both = (table @ table.T).tocoo()
    sizes = np.asarray(table.sum(axis=1)).ravel()
    first, second = both.coords
    near = both.data >= _ALIKE * (sizes[first] + sizes[second] - both.data)
    links = csr_array((np.ones(int(near.sum())), (first[near], second[near])), shape=(len(residues),) * 2)
    return np.asarray(connected_components(links, directed=False)[1], dtype=np.int64)
