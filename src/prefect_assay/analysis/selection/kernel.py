"""How alike two designs are: a sum of kernels on residues, groups and scores. Each part says what it is, so that a prediction can.

Designs of two targets are alike only in part: what methods, scores and residues meant on another target counts `transfer` of what it
means on this one. Variants of one sequence that differ at few positions are compared position by position; all other designs
by the triplets of their residues, without an alignment.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from prefect_assay.analysis.selection.candidates import Floats
from prefect_assay.analysis.selection.described import Floats32, Rows
from prefect_assay.service.models.vocabulary import AMINO_ACIDS, CHAIN_SEPARATOR

# Chosen on the EGFR pool (docs/selection.md); the variance of yes and no at a hit rate of 15 % is 1.
SEQUENCE, SCORES, SHAPE, CONSTANT, NOISE = 0.6, 0.23, 0.15, 0.15, 0.6
GROUPS: Final[Mapping[str, float]] = {"method": 0.23, "author": 0.3, "parent": 0.23, "other": 0.15}
SLOPE: Final = 0.14  # from the middle to the best expected rank
_SPREAD: Final = 0.5  # mean squared difference of ranks at which scores are no longer alike
PARTS: Final = ("sequence", "groups", "scores", "shape", "constant")
FEW_SITES: Final = 12  # positions that each get a weight of their own
_SITES_OF_A_LIBRARY: Final = 0.3  # of the length; beyond, sequences are not variants of one
_BYTES: Final = np.zeros(256, dtype=np.intp)
_ALPHABET: Final = "".join(sorted({*AMINO_ACIDS, CHAIN_SEPARATOR}))
_BYTES[[ord(letter) for letter in _ALPHABET]] = np.arange(len(_ALPHABET))


@dataclass(frozen=True, slots=True, eq=False)
class Sites:
    """The positions at which variants of one sequence differ, with the weight of each."""

    positions: NDArray[np.intp]
    weights: Floats

    @classmethod
    def of(cls, residues: Sequence[str]) -> "Sites | None":
        """None if the designs are no variants of one sequence that differ at few positions."""
        if len({len(text) for text in residues}) != 1:
            return None
        codes = codes_of(residues)
        positions = np.flatnonzero((codes != codes[0]).any(axis=0))
        if not 0 < len(positions) <= FEW_SITES:
            return None
        return cls(positions, np.ones(len(positions)))

    def differences(self, first: Sequence[str], second: Sequence[str]) -> Floats32:
        """The weighted number of positions that differ."""
        a, b = (self._one_hot(residues) for residues in (first, second))
        return np.float32(self.weights.sum()) - a @ b.T

    def _one_hot(self, residues: Sequence[str]) -> Floats32:
        if not residues:
            return np.zeros((0, len(self.positions) * len(_ALPHABET)), dtype=np.float32)
        codes = codes_of(residues)[:, self.positions]
        rows = np.zeros((*codes.shape, len(_ALPHABET)), dtype=np.float32)
        np.put_along_axis(rows, codes[:, :, None], 1, axis=2)
        rows *= np.sqrt(self.weights).astype(np.float32)[None, :, None]
        return rows.reshape(len(residues), -1)


def codes_of(residues: Sequence[str]) -> NDArray[np.intp]:
    """Letters of sequences of one length as numbers, a row each."""
    text = np.frombuffer("".join(residues).encode("ascii", "replace"), dtype=np.uint8)
    return _BYTES[text].reshape(len(residues), -1)


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """`sites` is None for designs that are compared by their triplets; `transfer` of a part is from 0 to 1."""

    sites: Sites | None = None
    transfer: Mapping[str, float] = field(default_factory=dict)

    def parts(self, first: Rows, second: Rows) -> dict[str, Floats32]:
        """One matrix per part, a row per design of `first`; their sum is the kernel."""
        found = {
            "sequence": self._sequence(first, second),
            "groups": (first.groups @ second.groups.T).toarray().astype(np.float32),
            "scores": self._scores(first, second),
            "shape": self._shape(first, second),
            "constant": np.full((len(first), len(second)), CONSTANT, dtype=np.float32),
        }
        other = first.targets[:, None] != second.targets[None, :]
        if other.any():
            for part, matrix in found.items():
                matrix[other] *= np.float32(self.transfer.get(part, 0.0))
        return found

    def __call__(self, first: Rows, second: Rows) -> Floats32:
        """The covariance of the designs of `first` with those of `second`."""
        parts = self.parts(first, second)
        total = parts[PARTS[0]]
        for part in PARTS[1:]:
            total += parts[part]
        return total

    def diagonal(self, rows: Rows) -> Floats:
        """The variance of each design."""
        own = 1.0 if self.sites is not None else SEQUENCE
        own += CONSTANT + SHAPE + (SCORES if rows.scores.shape[1] else 0)
        groups: Floats = np.asarray(rows.groups.multiply(rows.groups).sum(axis=1)).ravel()
        return groups + own

    def _sequence(self, first: Rows, second: Rows) -> Floats32:
        if self.sites is not None:
            squared = self.sites.differences(first.residues, second.residues)
            return np.exp(np.negative(squared, out=squared), out=squared)
        shared: Floats32 = (first.words @ second.words.T).toarray().astype(np.float32)
        shared *= np.float32(SEQUENCE)
        return shared

    @staticmethod
    def _shape(first: Rows, second: Rows) -> Floats32:
        squared = _squared(first.shape, second.shape)
        squared *= np.float32(-1 / (first.shape.shape[1] * _SPREAD))
        alike: Floats32 = np.exp(squared, out=squared) * np.float32(SHAPE)
        return alike

    @staticmethod
    def _scores(first: Rows, second: Rows) -> Floats32:
        columns = first.scores.shape[1]
        if not columns:
            return np.zeros((len(first), len(second)), dtype=np.float32)
        squared = _squared(first.scores, second.scores)
        squared *= np.float32(-1 / (columns * _SPREAD))
        alike = np.exp(squared, out=squared)
        alike *= np.float32(SCORES)
        if first.targets.any() or second.targets.any():
            # Scores that only one of the two targets has say nothing about the other one.
            shared = first.present @ second.present.T
            shared /= np.maximum(
                np.sqrt(first.present.sum(axis=1))[:, None] * np.sqrt(second.present.sum(axis=1)), 1
            )
            np.copyto(shared, 1, where=first.targets[:, None] == second.targets[None, :])
            alike *= shared
        return alike


def _squared(first: Floats32, second: Floats32) -> Floats32:
    """Squared distances of all rows of the one to all rows of the other."""
    found: Floats32 = first @ second.T
    found *= -2
    found += np.square(first).sum(axis=1)[:, None]
    found += np.square(second).sum(axis=1)
    np.maximum(found, 0, out=found)
    return found
