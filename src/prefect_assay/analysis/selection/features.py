"""Designs as rows of numbers, for a pool and its history alike: triplets of residues or sites, groups, and ranks of scores.

Products of two rows are how alike two designs are before anything is measured. A score counts by its rank among the designs of its
target, from -1 for the worst to 1 for the best; a design without the score is in the middle.
"""

# The stubs of SciPy and scikit-learn that pyright brings are narrower than these libraries; mypy reads neither.
# pyright: reportArgumentType=false, reportOptionalSubscript=false, reportOptionalOperand=false
# pyright: reportOperatorIssue=false, reportReturnType=false, reportIndexIssue=false, reportAttributeAccessIssue=false

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack
from scipy.stats import rankdata

from prefect_assay.analysis.selection.candidates import Floats, number
from prefect_assay.analysis.selection.identity import edits
from prefect_assay.designs.candidate import method_of, parents_of
from prefect_assay.designs.scores import is_bookkeeping
from prefect_assay.service.models.vocabulary import AMINO_ACIDS

METHOD, AUTHOR, PARENT = "method", "author", "parent"
AUTHORS: Final = ("author", "authors", "designer", "team", "user", "username", "submitter", "lab")
# Chosen on the EGFR pool (docs/loops.md); the variance of yes and no at a hit rate of 15 % is 1.
SEQUENCE, SCORES, CONSTANT = 0.6, 0.23, 0.15
GROUPS: Final[Mapping[str, float]] = {METHOD: 0.23, AUTHOR: 0.3, PARENT: 0.23, "other": 0.15}
# Of no use as a score or as a group: what names a row, or what this package wrote.
_SKIPPED: Final = re.compile(
    r"(selection_.*|(loop|round|rank|price.*|.*sequence.*|.*_id|id|name|target|parents?)$)"
)
_SCORES_MOST, _GROUPS_MOST, _SAMPLE = 40, 4, 2000
_ENOUGH: Final = 0.6  # of a column's filled cells that are numbers
_RARE: Final = 3  # designs that share a cell of a column of groups, on average at least
_LETTERS: Final = np.full(256, 20, dtype=np.uint8)  # what is no residue is one letter
_LETTERS[[ord(letter) for letter in sorted(AMINO_ACIDS)]] = np.arange(len(AMINO_ACIDS))
_BASE, _WORD = 21, 3
_DIGITS: Final = 9  # rounding is no reason for another rank
_SITE_STRING: Final = (
    40  # residues; no protein that is designed is shorter, a list of the residues at varied sites is
)
_OF_ONE_PARENT: Final = 0.3  # of the positions at which two variants of one sequence differ, at most
_RELATED: Final = 0.45  # identity of half of the designs to a reference; of strangers it is 0.2
_EDITED: Final = 50_000  # designs whose edits from a reference are counted; of more, shared triplets


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
        for title, filled in cells.items():
            if np.isfinite([number(cell) for cell in filled]).mean() >= _ENOUGH:
                if len(set(filled)) > 1 and (title == score or not is_bookkeeping(title)):
                    scores.append(title)
            elif title.casefold() in AUTHORS:
                labels.insert(0, title)
            elif title.casefold() != METHOD and 1 < len(set(filled)) <= len(filled) / _RARE:
                labels.append(title)
        scores.sort(key=lambda title: title != score)
        return cls(tuple(scores[:_SCORES_MOST]), tuple(labels[:_GROUPS_MOST]), method)

    def numbers(self, row: Mapping[str, str]) -> list[float]:
        """The scores of one design, NaN where there is none."""
        return [number(row.get(title, "")) for title in self.scores]

    def groups(self, row: Mapping[str, str]) -> list[tuple[str, str]]:
        """Kind and name of each group that a design belongs to."""
        pairs = [(METHOD, method_of(row, self.method) or "")]
        pairs += [
            (AUTHOR if title.casefold() in AUTHORS else title, row.get(title, "")) for title in self.labels
        ]
        pairs += [(PARENT, parent) for parent in parents_of(row)]
        return [(kind, name) for kind, name in pairs if name]


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """Designs by position, candidates first. `sites` are the positions of a library at which its variants differ, else None."""

    residues: Sequence[str]
    groups: csr_array
    scores: csr_array
    sites: NDArray[np.intp] | None

    def rows(self, at: NDArray[np.intp]) -> csr_array:
        """Features of the designs at these positions: of a pool triplets, groups, scores and a constant; of a library sites and scores."""
        residues = [self.residues[place] for place in at.tolist()]
        if self.sites is not None:
            return csr_array(hstack([one_hot(residues, self.sites), self.scores[at]]))
        constant = csr_array(np.full((len(at), 1), CONSTANT**0.5))
        return csr_array(
            hstack([count_triplets(residues) * SEQUENCE**0.5, self.groups[at], self.scores[at], constant])
        )

    def shared_rows(self, at: NDArray[np.intp]) -> csr_array:
        """Features that may mean the same on another target: groups and scores."""
        return csr_array(hstack([self.groups[at], self.scores[at]]))

    def columns(self) -> dict[str, slice]:
        """Which columns of `rows` are of what."""
        widths = {"sequence": TRIPLETS if self.sites is None else len(self.sites) * _BASE}
        widths |= {"groups": self.groups.shape[1]} if self.sites is None else {}
        widths |= {"scores": self.scores.shape[1]}
        ends = np.cumsum([*widths.values()]).tolist()
        return {
            part: slice(end - width, end) for (part, width), end in zip(widths.items(), ends, strict=True)
        }


TRIPLETS: Final = _BASE**_WORD


def rank_columns(values: Floats, targets: NDArray[np.int32]) -> Floats:
    """Ranks of each column among the designs of each target, from -1 for the lowest to 1 for the highest; 0 for NaN."""
    ranks = np.zeros(values.shape)
    for target in np.unique(targets):
        of_target = np.flatnonzero(targets == target)
        for column in range(values.shape[1]):
            known = of_target[np.isfinite(values[of_target, column])]
            if known.size > 1:
                places = rankdata(values[known, column].round(_DIGITS))
                ranks[known, column] = (2 * places - 1) / known.size - 1
    return ranks


def find_sites(residues: Sequence[str]) -> NDArray[np.intp] | None:
    """The positions at which the variants of a library differ; None if these are no variants of one sequence.

    A library is of one length, and its designs are lists of the residues at varied sites, or differ at few of their positions.
    """
    if len({len(text) for text in residues}) != 1 or not residues[0]:
        return None
    letters = _as_letters(residues)
    varied = np.flatnonzero((letters != letters[0]).any(axis=0))
    spread = letters[np.unique(np.linspace(0, len(letters) - 1, min(len(letters), 200)).astype(np.intp))]
    differing = (spread[:, None] != spread[None, :]).mean()
    if not varied.size or (letters.shape[1] > _SITE_STRING and differing > _OF_ONE_PARENT):
        return None
    return varied


def _as_letters(residues: Sequence[str]) -> NDArray[np.uint8]:
    text = np.frombuffer("".join(residues).encode("ascii", "replace"), dtype=np.uint8)
    return _LETTERS[text].reshape(len(residues), len(residues[0]))


def one_hot(residues: Sequence[str], sites: NDArray[np.intp]) -> csr_array:
    """Residues at sites, each row with the length 1: half of the squared distance of two rows is the share of sites that differ."""
    if not residues:
        return csr_array((0, len(sites) * _BASE))
    letters = _as_letters(residues)[:, sites].astype(np.int32)
    columns = letters + np.arange(len(sites), dtype=np.int32) * _BASE
    starts = np.arange(len(residues) + 1) * len(sites)
    shape = (len(residues), len(sites) * _BASE)
    values = np.full(columns.size, len(sites) ** -0.5)
    return csr_array((values, columns.ravel(), starts), shape=shape)


def closeness(
    residues: Sequence[str], targets: NDArray[np.int32], references: Mapping[int, Sequence[str]]
) -> Floats:
    """Ranks of the fewest edits from a reference of the design's target; 0 where most designs are no variants of one."""
    ranks = np.zeros(len(residues))
    for target, texts in references.items():
        places = np.flatnonzero(targets == target)
        designs = [residues[place] for place in places.tolist()]
        spread = designs[:: max(1, len(designs) // 200)]
        alike = [_identity(text, texts) for text in spread]
        if not alike or np.median(alike) < _RELATED:
            continue
        if len(designs) <= _EDITED:
            near = np.array(
                [-min(edits(reference, text) for reference in texts) for text in designs], dtype=float
            )
        else:
            near = np.asarray(
                (count_triplets(designs) @ count_triplets(texts).T).max(axis=1).todense()
            ).ravel()
        ranks[places] = rank_columns(near[:, None], np.zeros(len(places), dtype=np.int32))[:, 0]
    return ranks


def _identity(text: str, references: Sequence[str]) -> float:
    return max(1 - edits(other, text) / max(len(other), len(text), 1) for other in references)


def group_table(groups: Sequence[Sequence[tuple[str, str]]]) -> csr_array:
    """Rows whose products are the weights of what two designs share; several parents count as one together."""
    places: dict[tuple[str, str], int] = {}
    rows, columns, values = [], [], []
    for at, pairs in enumerate(groups):
        parents = sum(kind == PARENT for kind, _ in pairs)
        for kind, name in pairs:
            rows.append(at)
            columns.append(places.setdefault((kind, name), len(places)))
            weight = GROUPS.get(kind, GROUPS["other"])
            values.append((weight / parents if kind == PARENT else weight) ** 0.5)
    return csr_array((values, (rows, columns)), shape=(len(groups), max(1, len(places))))


def count_triplets(residues: Sequence[str]) -> csr_array:
    """Numbers of triplets of residues, each row with the length 1: products are cosines."""
    codes = [_LETTERS[np.frombuffer(text.encode("ascii", "replace"), dtype=np.uint8)] for text in residues]
    lengths = np.array([max(0, len(code) - _WORD + 1) for code in codes])
    keys = [
        (wide[:-2] * _BASE + wide[1:-1]) * _BASE + wide[2:]
        for wide in (code.astype(np.int32) for code in codes)
    ]
    flat = np.concatenate(keys) if keys else np.empty(0, dtype=np.int32)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    table = csr_array((np.ones(len(flat)), flat, starts), shape=(len(residues), TRIPLETS))
    table.sum_duplicates()
    norms = np.sqrt(np.maximum(np.asarray(table.multiply(table).sum(axis=1)).ravel(), 1))
    table.data /= np.repeat(norms, np.diff(table.indptr))
    return table
