"""A Gaussian process in plain NumPy: sequences as vectors, the fit to measured values, predictions, expected improvement.

Sequences of one length are compared position by position, at the positions where any of them differ. Sequences of several
lengths are compared by the numbers of their residues and of neighbouring pairs, without an alignment.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from prefect_assay.models.vocabulary import AMINO_ACIDS, CHAIN_SEPARATOR
from prefect_assay.selection.candidates import Floats

Features = NDArray[np.float32]
_CHUNK: Final = 8192  # sequences that are looked at together: 8192 x 480 numbers are 16 MB
_LETTERS: Final = "".join(sorted({*AMINO_ACIDS, CHAIN_SEPARATOR}))
_CODES: Final = np.zeros(256, dtype=np.intp)  # letters that are no residue count as one that is
_CODES[[ord(letter) for letter in _LETTERS]] = np.arange(len(_LETTERS))
# Of the kernel, in typical distances between measured sequences
_LENGTHS: Final = (0.125, 0.25, 0.5, 1.0, 2.0)
_NOISES: Final = (0.01, 0.03, 0.1, 0.3, 1.0)  # variance of the noise beside the variance of the signal
_FACTORS: Final = (0.5, 0.7, 1.4, 2.0)  # of the weight of one position
_OWN_LENGTHS: Final = 12  # positions; with more, all share one length
_SMALL: Final = 1e-9


class Encoder:
    """Sequences as rows of numbers; the squared distance of two rows says how different the sequences are.

    `blocks` is how many positions are compared; the columns are as many blocks of equal width.
    """

    def __init__(self, sequences: Sequence[str]) -> None:
        self._positions: NDArray[np.intp] | None = None
        self.blocks = 1
        if len({len(residues) for residues in sequences}) == 1:
            first = _codes(sequences[:1])[0]
            differ = np.zeros(len(first), dtype=np.bool_)
            for start in range(0, len(sequences), _CHUNK):
                differ |= (_codes(sequences[start : start + _CHUNK]) != first).any(axis=0)
            self._positions = np.flatnonzero(differ)
            self.blocks = max(1, len(self._positions))

    def __call__(self, sequences: Sequence[str]) -> Features:
        """One row per sequence."""
        if self._positions is None:
            return _counts(sequences)
        codes = _codes(sequences)[:, self._positions]
        rows = np.zeros((*codes.shape, len(_LETTERS)), dtype=np.float32)
        np.put_along_axis(rows, codes[:, :, None], 1, axis=2)
        return rows.reshape(len(sequences), -1)

    def chunks(self, sequences: Sequence[str]) -> Iterator[tuple[slice, Features]]:
        """The rows of many sequences, in parts that fit into memory."""
        for start in range(0, len(sequences), _CHUNK):
            part = slice(start, start + _CHUNK)
            yield part, self(sequences[part])


def _codes(sequences: Sequence[str]) -> NDArray[np.intp]:
    """Letters of sequences of one length as numbers, a row each."""
    text = np.frombuffer("".join(sequences).encode("ascii", "replace"), dtype=np.uint8)
    return _CODES[text].reshape(len(sequences), -1)


def _counts(sequences: Sequence[str]) -> Features:
    """Square roots of the numbers of residues and of neighbouring pairs: twice as many count less than twice as much."""
    size = len(_LETTERS)
    rows = np.empty((len(sequences), size + size * size), dtype=np.float32)
    for row, residues in zip(rows, sequences, strict=True):
        codes = _codes([residues])[0]
        row[:size] = np.bincount(codes, minlength=size)
        row[size:] = np.bincount(codes[:-1] * size + codes[1:], minlength=size * size)
    return np.sqrt(rows, out=rows)


class GaussianProcess:
    """The kernel exp(-squared distance / length), a length per position where there are few.

    Lengths and noise are those of the highest marginal likelihood that a coarse search finds.

    Args:
        features: a row per measured sequence.
        values: what was measured, higher is better, not all equal.
        positions: how many blocks of equal width the columns are.
    """

    def __init__(self, features: Features, values: Floats, positions: int = 1) -> None:
        self._mean, self._spread = float(values.mean()), float(values.std())
        target = (values - self._mean) / self._spread
        fit = _Fit(features, target, positions if positions <= _OWN_LENGTHS else 1)
        self._scales = np.sqrt(np.repeat(fit.weights, features.shape[1] // len(fit.weights))).astype(
            np.float32
        )
        self._features = features * self._scales
        self._noise, self._variance = fit.noise, fit.variance
        self._whiten = np.linalg.inv(fit.factor).astype(np.float32)
        self._weights = (self._whiten.T @ (self._whiten @ target)).astype(np.float32)
        self.best = float(self.predict(features)[0].max())

    def _kernel(self, first: Features, second: Features) -> Features:
        squared = _squared(first, second)
        return np.exp(np.negative(squared, out=squared), out=squared)

    def predict(self, features: Features) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the true value of each row, without the noise of a measurement."""
        kernel = self._kernel(features * self._scales, self._features)
        known = np.square(kernel @ self._whiten.T).sum(axis=1)
        deviation = np.sqrt(np.maximum(1 - known, _SMALL) * self._variance)
        mean = (kernel @ self._weights) * self._spread + self._mean
        return mean.astype(np.float64), (deviation * self._spread).astype(np.float64)

    def covariance(self, features: Features) -> Floats:
        """Of the true values of all rows with each other."""
        rows = features * self._scales
        whitened = self._kernel(rows, self._features) @ self._whiten.T
        own = self._kernel(rows, rows) - whitened @ whitened.T
        return own.astype(float) * self._variance * self._spread**2

    @property
    def noise(self) -> float:
        """The variance of the noise of one measurement."""
        return self._noise * self._variance * self._spread**2

    def nearest(self, features: Features) -> int:
        """The measured sequence that is most like this one row."""
        return int(_squared(features * self._scales, self._features)[0].argmin())


class _Fit:
    """A search over one length for all positions and the noise, then over the weight of each position."""

    def __init__(self, features: Features, target: Floats, positions: int) -> None:
        self._target = target
        self._squared = [_squared(block, block) for block in np.split(features, positions, axis=1)]
        total: Floats = np.add.reduce(self._squared, dtype=np.float64)
        typical = float(np.median(total[np.triu_indices(len(target), 1)])) or 1.0
        self._best, self.noise, self.variance, self.factor = -math.inf, 1.0, 1.0, total
        self.weights = np.ones(positions)
        for length in _LENGTHS:
            for noise in _NOISES:
                self._try(np.full(positions, 1 / (typical * length)), total / (typical * length), noise)
        for position in range(positions if positions > 1 else 0):
            chosen = self.weights.copy()
            total = np.add.reduce([weight * part for weight, part in zip(chosen, self._squared, strict=True)])
            for factor in _FACTORS:
                weights = chosen.copy()
                weights[position] *= factor
                change = (weights[position] - chosen[position]) * self._squared[position]
                self._try(weights, total + change, self.noise)

    def _try(self, weights: Floats, squared: Floats, noise: float) -> None:
        """Keep what is likelier than all before."""
        kernel = np.exp(-squared)
        factor = np.asarray(np.linalg.cholesky(kernel + noise * np.eye(len(kernel))), dtype=np.float64)
        residual = np.linalg.solve(factor, self._target)
        variance = float(residual @ residual) / len(kernel)  # the likeliest one
        likelihood = -0.5 * len(kernel) * math.log(variance) - float(np.log(np.diag(factor)).sum())
        if likelihood > self._best:
            self._best, self.weights, self.noise = likelihood, weights, noise
            self.variance, self.factor = variance, factor


def _squared(first: Features, second: Features) -> Features:
    """Squared distances of all rows of the one to all rows of the other."""
    found = first @ second.T
    found *= -2
    found += np.square(first).sum(axis=1)[:, None]
    found += np.square(second).sum(axis=1)
    np.maximum(found, 0, out=found)
    return found


def expected_improvement(mean: Floats, deviation: Floats, best: float) -> Floats:
    """How much more than `best` a value is on average, counting less as nothing."""
    gain = mean - best
    steps = gain / deviation
    below = np.array([0.5 * math.erfc(-step / math.sqrt(2)) for step in steps.tolist()])
    density = np.exp(-np.square(steps) / 2) / math.sqrt(2 * math.pi)
    promised: Floats = np.maximum(gain * below + deviation * density, 0)
    return promised
