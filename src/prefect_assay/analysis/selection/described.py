"""Designs as rows of numbers: residues, groups, ranks of scores. What kernels compare, for a pool and its history alike.

A score counts by its rank among the designs of its target, from -1 for the worst to 1 for the best, so that scores of several
targets, methods and programs are on one scale; a design without the score is in the middle.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack
from scipy.stats import rankdata

from prefect_assay.analysis.selection.candidates import Floats, number
from prefect_assay.designs.candidate import method_of, parents_of
from prefect_assay.designs.scores import is_bookkeeping
from prefect_assay.service.models.vocabulary import AMINO_ACIDS

METHOD, AUTHOR, PARENT = "method", "author", "parent"
AUTHORS: Final = ("author", "authors", "designer", "team", "user", "username", "submitter", "lab")
# Of no use as a score or as a group: what names a row, or what this package wrote.
_SKIPPED: Final = re.compile(
    r"(selection_.*|(loop|round|rank|price.*|.*sequence.*|.*_id|id|name|target|parents?)$)"
)
_SCORES_MOST, _GROUPS_MOST, _SAMPLE = 40, 4, 2000
_ENOUGH: Final = 0.6  # of a column's filled cells that are numbers
_RARE: Final = 3  # designs that share a cell of a column of groups, on average at least
_LETTERS: Final = np.full(
    256, 20, dtype=np.int32
)  # letters that are no residue, and separators, are one letter
_LETTERS[[ord(letter) for letter in sorted(AMINO_ACIDS)]] = np.arange(len(AMINO_ACIDS))
_BASE, _WORD = 21, 3
_RELATED: Final = (
    0.2  # cosine of triplets to a reference, for half of the designs at least; of strangers it is 0.05
)
_DIGITS: Final = 9  # rounding is no reason for another rank
WORDS: Final = _BASE**_WORD

Floats32 = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a pool that are compared: numbers, and labels by kind."""

    scores: tuple[str, ...]
    labels: tuple[str, ...]
    method: str | None

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, str]], method: str | None, score: str | None) -> "Columns":
        """The columns of a sample of rows: those of numbers, and those whose cells several rows share."""
        cells: dict[str, list[str]] = {}
        for row in rows[:_SAMPLE]:
            for title, cell in row.items():
                if cell and title != method and (title == score or not _SKIPPED.match(title.casefold())):
                    cells.setdefault(title, []).append(cell)
        scores: list[str] = []
        labels: list[str] = []
        for title, found in cells.items():
            if np.isfinite([number(cell) for cell in found]).mean() >= _ENOUGH:
                if len(set(found)) > 1 and (title == score or not is_bookkeeping(title)):
                    scores.append(title)
            elif title.casefold() in AUTHORS:
                labels.insert(0, title)
            elif title.casefold() != METHOD and 1 < len(set(found)) <= len(found) / _RARE:
                labels.append(title)
        scores.sort(key=lambda title: title != score)
        return cls(tuple(scores[:_SCORES_MOST]), tuple(labels[:_GROUPS_MOST]), method)

    def numbers(self, row: Mapping[str, str]) -> list[float]:
        """The scores of one design, NaN where there is none."""
        return [number(row.get(title, "")) for title in self.scores]

    def groups(self, row: Mapping[str, str]) -> list[tuple[str, str]]:
        """Kind and name of each group that a design belongs to."""
        found = [(METHOD, method_of(row, self.method) or "")]
        found += [
            (AUTHOR if title.casefold() in AUTHORS else title, row.get(title, "")) for title in self.labels
        ]
        found += [(PARENT, parent) for parent in parents_of(row)]
        return [(kind, name) for kind, name in found if name]


@dataclass(frozen=True, eq=False)
class Rows:
    """Designs by position. `targets` is 0 for the target of the pool; `expected` is the mean rank of what speaks for a design."""

    residues: Sequence[str]
    targets: NDArray[np.int32]
    groups: csr_array  # a column per group
    scores: Floats32  # ranks, 0 where there is none
    present: Floats32  # 1 where there is one
    expected: Floats
    shape: Floats32  # ranks of closeness to the reference, or to the middle of the target's designs, and of length

    @cached_property
    def words(self) -> csr_array:
        """The triplets of each design."""
        return words(self.residues)

    def __len__(self) -> int:
        return len(self.residues)

    def __getitem__(self, at: "NDArray[np.intp] | slice") -> "Rows":
        chosen = range(len(self))[at] if isinstance(at, slice) else at.tolist()
        return Rows(
            [self.residues[place] for place in chosen],
            self.targets[at],
            self.groups[at],
            self.scores[at],
            self.present[at],
            self.expected[at],
            self.shape[at],
        )


def joined(first: Rows, second: Rows) -> Rows:
    """The designs of both."""
    return Rows(
        [*first.residues, *second.residues],
        np.concatenate([first.targets, second.targets]),
        csr_array(vstack([first.groups, second.groups])),
        np.concatenate([first.scores, second.scores]),
        np.concatenate([first.present, second.present]),
        np.concatenate([first.expected, second.expected]),
        np.concatenate([first.shape, second.shape]),
    )


def described(
    residues: Sequence[str],
    targets: NDArray[np.int32],
    groups: Sequence[Sequence[tuple[str, str]]],
    scores: Floats32,
    directions: Sequence[bool | None],
    weights: Mapping[str, float],
    named: bool,  # noqa: FBT001
) -> Rows:
    """Rows of all designs of a selection together: pool and history.

    Args:
        residues: of each design.
        targets: 0 for the target of the pool, other numbers for others.
        groups: kind and name of each group that a design belongs to.
        scores: a column per score, NaN where there is none.
        directions: of each score whether more is better; None: not known, and then it speaks neither for nor against.
        weights: the weight of a kind of group in the kernel; `None` is the key of kinds that are not named.
        named: the first score is the one that was named; it speaks as much again as all together.
    """
    ranks = np.zeros_like(scores)
    for target in np.unique(targets):
        of_target = np.flatnonzero(targets == target)
        for column in range(scores.shape[1]):
            known = of_target[np.isfinite(scores[of_target, column])]
            if known.size > 1:
                places = rankdata(scores[known, column])
                ranks[known, column] = (2 * places - 1) / known.size - 1
    present = np.isfinite(scores).astype(np.float32)
    for column, better in enumerate(directions):
        if better is False:
            ranks[:, column] *= -1
    speaks = np.array([better is not None for better in directions], dtype=np.bool_)
    expected = np.zeros(len(residues))
    if speaks.any():
        expected = ranks[:, speaks].mean(axis=1, dtype=np.float64)
        if named:
            expected += ranks[:, 0]
    shape = np.zeros((len(residues), 2), dtype=np.float32)
    return Rows(residues, targets, _incidence(groups, weights), ranks, present, expected, shape)


class Shapes:
    """How close designs are to what they were made from, as ranks among the designs of their target.

    The reference is a control or a named parent whose residues are known, if most designs are relatives of it; without one, the middle
    of the target's designs, because variants of one sequence lie around it. `referred` are the targets with a reference.
    """

    def __init__(self, sample: Rows, references: Mapping[int, Sequence[str]]) -> None:
        self.referred: set[int] = set()
        self._middles: dict[int, Floats] = {}
        self._known: dict[int, tuple[Floats, Floats]] = {}
        for target in np.unique(sample.targets).tolist():
            own = sample[np.flatnonzero(sample.targets == target)]
            middle = _middle(words(references.get(target, ())))
            if np.median(own.words @ middle) >= _RELATED:
                self.referred.add(target)
            else:
                middle = _middle(own.words)
            self._middles[target] = middle
            self._known[target] = np.sort(_close(own, middle)), np.sort(_lengths(own))

    def __call__(self, rows: Rows) -> Rows:
        """The designs with their shapes; closeness to a reference speaks for a design."""
        shape, expected = np.zeros((len(rows), 2), dtype=np.float32), rows.expected.copy()
        for target in np.unique(rows.targets).tolist():
            at = np.flatnonzero(rows.targets == target)
            if target not in self._middles:
                continue
            own = rows[at]
            close, length = self._known[target]
            shape[at, 0] = _rank(_close(own, self._middles[target]), close)
            shape[at, 1] = _rank(_lengths(own), length)
            if target in self.referred:
                expected[at] += shape[at, 0]
        return replace(rows, shape=shape, expected=expected)


def _middle(table: csr_array) -> Floats:
    total: Floats = np.asarray(table.sum(axis=0)).ravel()
    middle: Floats = total / max(1, table.indptr.size - 1)
    return middle


def _close(rows: Rows, middle: Floats) -> Floats:
    close: Floats = (rows.words @ middle).round(_DIGITS)
    return close


def _lengths(rows: Rows) -> Floats:
    return np.array([float(len(text)) for text in rows.residues])


def _rank(values: Floats, known: Floats) -> Floats:
    """From -1 for less than all known values to 1 for more."""
    if np.ptp(known) == 0:
        return np.zeros(len(values))
    middle = np.searchsorted(known, values, "left") + np.searchsorted(known, values, "right")
    ranks: Floats = middle / len(known) - 1
    return ranks


def _incidence(groups: Sequence[Sequence[tuple[str, str]]], weights: Mapping[str, float]) -> csr_array:
    """Rows whose products are the weights of what two designs share; several parents count as one together."""
    places: dict[tuple[str, str], int] = {}
    rows, columns, values = [], [], []
    for at, found in enumerate(groups):
        parents = sum(kind == PARENT for kind, _ in found)
        for kind, name in found:
            rows.append(at)
            columns.append(places.setdefault((kind, name), len(places)))
            weight = weights.get(kind, weights["other"])
            values.append((weight / parents if kind == PARENT else weight) ** 0.5)
    return csr_array((values, (rows, columns)), shape=(len(groups), max(1, len(places))))


def words(residues: Sequence[str]) -> csr_array:
    """Numbers of triplets of residues, each row with the length 1: products are cosines."""
    codes = [np.frombuffer(text.encode("ascii", "replace"), dtype=np.uint8) for text in residues]
    lengths = np.array([max(0, len(code) - _WORD + 1) for code in codes])
    keys = []
    for code in codes:
        wide = _LETTERS[code]
        keys.append((wide[:-2] * _BASE + wide[1:-1]) * _BASE + wide[2:])
    flat = np.concatenate(keys) if keys else np.empty(0, dtype=np.int32)
    table = csr_array(
        (np.ones(len(flat)), flat, np.concatenate([[0], np.cumsum(lengths)])), shape=(len(residues), WORDS)
    )
    table.sum_duplicates()
    norms = np.sqrt(
        np.maximum(
            np.add.reduceat(np.r_[table.data**2, 0.0], np.minimum(table.indptr[:-1], len(table.data))), 1
        )
    )
    table.data /= np.repeat(norms, np.diff(table.indptr))
    return table
