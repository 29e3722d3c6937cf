"""Designs as rows of numbers, for a pool and its history alike: triplets of residues or sites, groups, and ranks of scores.

Products of two rows are how alike two designs are before anything is measured. A score counts by its rank among all designs,
from -1 for the worst to 1 for the best; a design without the score is in the middle.
"""

# The stubs of SciPy and scikit-learn that pyright brings are narrower than these libraries; mypy reads neither.
# pyright: reportArgumentType=false, reportOptionalSubscript=false, reportOptionalOperand=false
# pyright: reportOperatorIssue=false, reportReturnType=false, reportIndexIssue=false, reportAttributeAccessIssue=false

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack
from scipy.stats import rankdata
from sklearn.preprocessing import normalize

from prefect_assay.analysis.selection.candidates import Floats, read_number
from prefect_assay.analysis.selection.identity import count_edits, measure_identity
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
_LETTERS: Final = np.full(256, 20, dtype=np.uint8)  # what is not a residue is one letter
_LETTERS[[ord(letter) for letter in sorted(AMINO_ACIDS)]] = np.arange(len(AMINO_ACIDS))
_BASE, _WORD = 21, 3
TRIPLETS: Final = _BASE**_WORD
_DIGITS: Final = 9  # rounding is not a reason for another rank
_SITE_STRING: Final = (
    40  # residues; no protein that is designed is shorter, a list of the residues at varied sites is
)
_OF_ONE_PARENT: Final = 0.3  # of the positions at which two variants of one sequence differ, at most
_RELATED: Final = 0.45  # identity of half of the designs to a reference; of strangers it is 0.2
_EDITED: Final = 50_000  # designs whose edits from a reference are counted; of more, shared triplets
_LOOKED_AT: Final = 200  # designs that show what all others are like


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a pool that are compared: numbers, and labels by kind."""

    scores: tuple[str, ...]
    labels: tuple[str, ...]
    method: str | None

    @classmethod
    def find(cls, rows: Sequence[Mapping[str, str]], method: str | None, score: str | None) -> "Columns":
        """The columns of a sample of rows: those of numbers, and those whose cells several rows share."""
        cells: dict[str, list[str]] = {}
        for row in rows[:: max(1, len(rows) // _SAMPLE)]:
            for title, cell in row.items():
                if cell and title != method and (title == score or not _SKIPPED.match(title.casefold())):
                    cells.setdefault(title, []).append(cell)
        scores: list[str] = []
        labels: list[str] = []
        for title, filled in cells.items():
            if np.isfinite([read_number(cell) for cell in filled]).mean() >= _ENOUGH:
                if len(set(filled)) > 1 and (title == score or not is_bookkeeping(title)):
                    scores.append(title)
            elif title.casefold() in AUTHORS:
                labels.insert(0, title)
            elif title.casefold() != METHOD and 1 < len(set(filled)) <= len(filled) / _RARE:
                labels.append(title)
        scores.sort(key=lambda title: title != score)
        return cls(tuple(scores[:_SCORES_MOST]), tuple(labels[:_GROUPS_MOST]), method)

    def rank_scores(self, rows: Iterable[Mapping[str, str]], count: int) -> Floats:
        """Ranks of the scores of so many rows, from -1 for the lowest to 1 for the highest; 0 where there is none."""
        numbers = (read_number(row.get(title, "")) for row in rows for title in self.scores)
        return rank_columns(np.fromiter(numbers, np.float64).reshape(count, len(self.scores)))

    def list_groups(self, row: Mapping[str, str]) -> list[tuple[str, str]]:
        """Kind and name of each group that a design belongs to."""
        pairs = [(METHOD, method_of(row, self.method) or "")]
        pairs += [
            (AUTHOR if title.casefold() in AUTHORS else title, row.get(title, "")) for title in self.labels
        ]
        pairs += [(PARENT, parent) for parent in parents_of(row)]
        return [(kind, name) for kind, name in pairs if name]

    def tabulate_groups(self, rows: Iterable[Mapping[str, str]], count: int) -> csr_array:
        """Rows whose products are the weights of what two designs share; several parents count as one together."""
        numbers: dict[tuple[str, str], int] = {}
        places, columns, weights = [], [], []
        for place, row in enumerate(rows):
            pairs = self.list_groups(row)
            parents = sum(kind == PARENT for kind, _ in pairs)
            for kind, name in pairs:
                weight = GROUPS.get(kind, GROUPS["other"]) / (parents if kind == PARENT else 1)
                places.append(place)
                columns.append(numbers.setdefault((kind, name), len(numbers)))
                weights.append(weight**0.5)
        return csr_array((weights, (places, columns)), shape=(count, max(1, len(numbers))))


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """Designs by position, candidates first. `sites` are the positions of a library at which its variants differ, else None."""

    residues: Sequence[str]
    groups: csr_array
    scores: csr_array
    sites: NDArray[np.intp] | None

    def make_rows(self, places: NDArray[np.intp]) -> csr_array:
        """Features of the designs at these places: of a pool triplets, groups, scores and a constant; of a library sites and scores."""
        residues = [self.residues[place] for place in places.tolist()]
        if self.sites is not None:
            return csr_array(hstack([encode_sites(residues, self.sites), self.scores[places]]))
        constant = csr_array(np.full((len(places), 1), CONSTANT**0.5))
        triplets = count_triplets(residues) * SEQUENCE**0.5
        return csr_array(hstack([triplets, self.groups[places], self.scores[places], constant]))

    def list_parts(self) -> dict[str, slice]:
        """Which columns of `make_rows` are of what."""
        widths = {"sequence": TRIPLETS if self.sites is None else len(self.sites) * _BASE}
        widths |= {"groups": self.groups.shape[1]} if self.sites is None else {}
        widths |= {"scores": self.scores.shape[1]}
        ends = np.cumsum([*widths.values()]).tolist()
        return {
            part: slice(end - width, end) for (part, width), end in zip(widths.items(), ends, strict=True)
        }


def rank_columns(values: Floats) -> Floats:
    """Ranks of each column, from -1 for the lowest to 1 for the highest; 0 for NaN."""
    if not values.size:
        return np.zeros(values.shape)
    places = rankdata(values.round(_DIGITS), axis=0, nan_policy="omit")
    counts = np.isfinite(values).sum(axis=0)
    return np.where(counts > 1, np.nan_to_num((2 * places - 1) / np.maximum(counts, 1) - 1), 0.0)


def find_sites(residues: Sequence[str]) -> NDArray[np.intp] | None:
    """The positions at which the variants of a library differ; None if these are not variants of one sequence.

    A library is of one length, and its designs are lists of the residues at varied sites, or differ at few of their positions.
    """
    if len({len(text) for text in residues}) != 1 or not residues[0]:
        return None
    letters = _number_letters(residues)
    varied = np.flatnonzero((letters != letters[0]).any(axis=0))
    spread = letters[_spread_places(len(letters), _LOOKED_AT)]
    differing = (spread[:, None] != spread[None, :]).mean()
    if not varied.size or (letters.shape[1] > _SITE_STRING and differing > _OF_ONE_PARENT):
        return None
    return varied


def _spread_places(count: int, most: int) -> NDArray[np.intp]:
    """At most so many places, evenly spread."""
    return np.unique(np.linspace(0, max(0, count - 1), min(count, most)).astype(np.intp))


def _number_letters(residues: Sequence[str]) -> NDArray[np.uint8]:
    text = np.frombuffer("".join(residues).encode("ascii", "replace"), dtype=np.uint8)
    return _LETTERS[text].reshape(len(residues), len(residues[0]))


def encode_sites(residues: Sequence[str], sites: NDArray[np.intp]) -> csr_array:
    """Residues at sites, each row with the length 1: half of the squared distance of two rows is the share of sites that differ."""
    if not residues:
        return csr_array((0, len(sites) * _BASE))
    letters = _number_letters(residues)[:, sites].astype(np.int32)
    columns = letters + np.arange(len(sites), dtype=np.int32) * _BASE
    starts = np.arange(len(residues) + 1) * len(sites)
    shape = (len(residues), len(sites) * _BASE)
    values = np.full(columns.size, len(sites) ** -0.5)
    return csr_array((values, columns.ravel(), starts), shape=shape)


def rank_closeness(residues: Sequence[str], references: Sequence[str]) -> Floats:
    """Ranks of the fewest edits from a reference, 1 for the fewest; 0 where most designs are not variants of one."""
    sample = [residues[place] for place in _spread_places(len(residues), _LOOKED_AT).tolist()]
    alike = [max(measure_identity(other, text) for other in references) for text in sample if references]
    if not alike or np.median(alike) < _RELATED:
        return np.zeros(len(residues))
    if len(residues) > _EDITED:
        near = (count_triplets(residues) @ count_triplets(references).T).max(axis=1).todense()
    else:
        near = [-min(count_edits(reference, text) for reference in references) for text in residues]
    return rank_columns(np.array(near, dtype=np.float64).reshape(-1, 1))[:, 0]


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
    return normalize(table, copy=False) if residues else table
