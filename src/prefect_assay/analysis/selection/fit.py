"""What a model is fitted to: noise and lengths by marginal likelihood, and how much of other targets counts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from scipy.stats import rankdata

from prefect_assay.analysis.selection.candidates import Floats
from prefect_assay.analysis.selection.described import Floats32, Rows
from prefect_assay.analysis.selection.evidence import Learned
from prefect_assay.analysis.selection.kernel import (
    NOISE,
    SLOPE,
    Kernel,
    Sites,
)
from prefect_assay.analysis.selection.process import Evidence, Process
from prefect_assay.designs.selection import Aim

SEARCHED: Final = 500  # measured designs that the search for lengths and noise looks at
_SINGLE: Final = 0.25  # the trust in a single other target, once results of the pool's target can judge it
_LITTLE: Final = 0.005
_DIGITS: Final = 9  # rounding is no reason for another rank
_FEWEST: Final = 4  # measured designs of one target that can tell, if one differs
_LENGTHS: Final = (0.125, 0.25, 0.5, 1.0, 2.0)  # in typical distances between measured sequences
_NOISES: Final = (0.01, 0.03, 0.1, 0.3, 0.6)
_FACTORS: Final = (0.5, 0.7, 1.4, 2.0)  # of the weight of one position


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A fitted process with its kernel; `deviation` scales standard deviations to what was found."""

    kernel: Kernel
    process: Process
    known: Rows
    deviation: float


def fitted(
    known: Rows, evidence: Learned, sites: Sites | None, *, referred: bool
) -> tuple[Model, tuple[str, ...]]:
    """The model of a history that is not empty, and what was decided about other targets.

    `referred`: closeness is to a reference, which the middle of a target's designs is not, so that it may mean the same elsewhere.
    """
    values = evidence.values - SLOPE * known.expected
    kernel, noise = Kernel(sites), NOISE
    own = np.flatnonzero(known.targets == 0)
    telling = own.size >= _FEWEST and bool(np.ptp(evidence.values[own]) > 0)
    if telling and (sites is not None or evidence.scale.aim is Aim.BEST):
        some = _some(own)
        bounds = evidence.bounds[some]
        kernel, noise = _searched(
            known[some], Evidence(values[some], 1 / evidence.counts[some], bounds), kernel, evidence.scale.aim
        )
    notes: tuple[str, ...] = ()
    if known.targets.any():
        parts = ("groups", *(("shape",) if referred else ()), "scores", "sequence")
        kernel, notes = _transferred(known, values, kernel, noise, parts)
    robust = evidence.scale.aim is Aim.BEST
    given = Evidence(values, noise / evidence.counts, evidence.bounds)
    process = Process(kernel(known, known).astype(np.float64), given, robust=robust)
    deviation = float(np.sqrt(np.clip(process.misfit, 0.1, 3.0))) if robust else 1.0
    return Model(kernel, process, known, deviation), notes


def _some(positions: NDArray[np.intp]) -> NDArray[np.intp]:
    """An even spread of positions, which are in the order of residues."""
    if len(positions) <= SEARCHED:
        return positions
    return positions[np.linspace(0, len(positions) - 1, SEARCHED).astype(np.intp)]


def _searched(known: Rows, evidence: Evidence, kernel: Kernel, aim: Aim) -> tuple[Kernel, float]:
    """The likeliest length and noise on a coarse grid, then the weight of each position."""
    noises = _NOISES if aim is Aim.BEST else (NOISE,)
    if kernel.sites is None:
        covariance = kernel(known, known).astype(np.float64)
        shares, values = _damped(covariance, evidence, aim)
        return kernel, max(noises, key=lambda noise: _likelihood(covariance, values, noise * shares))
    plain = kernel.sites
    parts = [_one(plain, at, known.residues) for at in range(len(plain.positions))]
    rest = _without_sequence(kernel, known)
    total: Floats = np.add.reduce(parts, dtype=np.float64)
    typical = float(np.median(total[np.triu_indices(len(evidence), 1)])) or 1.0
    shares, values = _damped(np.exp(-total / typical) + rest, evidence, aim)

    def likelihood(weights: Floats, noise: float) -> float:
        squared = np.tensordot(weights, np.array(parts), axes=1)
        return _likelihood(np.exp(-squared) + rest, values, noise * shares)

    grid = [(np.full(len(parts), 1 / (typical * length)), noise) for length in _LENGTHS for noise in noises]
    found = [(likelihood(*each), at) for at, each in enumerate(grid)]
    best, at = max(found)
    weights, noise = grid[at]
    for position in range(len(parts) if len(parts) > 1 else 0):
        for factor in _FACTORS:
            changed = weights.copy()
            changed[position] = grid[at][0][position] * factor
            if (value := likelihood(changed, noise)) > best:
                best, weights = value, changed
    return replace(kernel, sites=replace(plain, weights=weights)), noise


def _one(sites: Sites, at: int, residues: Sequence[str]) -> Floats:
    return Sites(sites.positions[[at]], np.ones(1)).differences(residues, residues).astype(np.float64)


def _without_sequence(kernel: Kernel, known: Rows) -> Floats:
    parts = kernel.parts(known, known)
    total: Floats = np.add.reduce(
        [matrix for part, matrix in parts.items() if part != "sequence"], dtype=np.float64
    )
    return total


def _damped(covariance: Floats, evidence: Evidence, aim: Aim) -> tuple[Floats, Floats]:
    """The share of the noise that each value has, more for what is far from all others, and what limits stand for."""
    noise = _NOISES[len(_NOISES) // 2]
    given = Evidence(evidence.values, noise * evidence.noises, evidence.bounds)
    process = Process(covariance, given, robust=aim is Aim.BEST)
    return process.noises / noise, process.targets


def _likelihood(covariance: Floats, values: Floats, noises: Floats) -> float:
    exact = np.zeros(len(values), dtype=np.int8)
    process = Process(covariance, Evidence(values, noises, exact), robust=False)
    # The likeliest scale of the whole covariance, which lengths and noise share.
    return -0.5 * len(values) * float(np.log(max(process.misfit, 1e-12))) - process.half_log_determinant


@dataclass(frozen=True, slots=True, eq=False)
class _Transfer:
    """Measured designs of several targets, each predicted from those of all other targets alone."""

    known: Rows
    values: Floats  # without what was expected of each
    noise: float
    parts: Mapping[str, Floats32]  # of the kernel, with other targets at full weight

    def predicted(self, weights: Mapping[str, float]) -> tuple[Floats, Floats]:
        """Mean and variance of each value, where other targets count so much in each part, and its own target nothing."""
        targets = self.known.targets
        other = targets[:, None] != targets[None, :]
        covariance = self.noise * np.eye(len(targets))
        for part, matrix in self.parts.items():
            covariance += np.where(other, weights.get(part, 0.0), 1.0) * matrix
        inverse = np.linalg.inv(covariance)
        pulled, mean, variance = inverse @ self.values, self.values.copy(), np.empty(len(targets))
        for target in np.unique(targets):
            own = np.flatnonzero(targets == target)
            spread = np.linalg.inv(inverse[np.ix_(own, own)])
            mean[own] -= spread @ pulled[own]
            variance[own] = np.maximum(np.diag(spread), self.noise)
        return mean, variance

    def ranked(self, mean: Floats) -> Floats:
        """Of each other target that can tell: how well predictions rank its designs, as Spearman's correlation."""
        expected, found = SLOPE * self.known.expected, []
        for target in np.unique(self.known.targets[self.known.targets != 0]):
            own = np.flatnonzero(self.known.targets == target)
            measured = self.values[own] + expected[own]
            if own.size >= _FEWEST and np.ptp(measured.round(_DIGITS)) > 0:
                found.append(_correlation(measured, mean[own] + expected[own]))
        return np.array(found)

    def likelihood(self, mean: Floats, variance: Floats) -> float:
        """The log likelihood of each design of the pool's target, summed."""
        own = self.known.targets == 0
        squares = np.square(self.values - mean)[own] / variance[own]
        return -0.5 * float(np.sum(squares + np.log(variance[own])))


def _correlation(first: Floats, second: Floats) -> float:
    """Spearman's; 0 where one of them ranks nothing."""
    a, b = (rankdata(each.round(_DIGITS)) - (len(each) + 1) / 2 for each in (first, second))
    size = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / size if size else 0.0


def _trust(gained: Floats, *, measured: bool) -> float:
    """How far a gain is trusted on one more target: 1 where it is the same on all, 0 where it is within a standard error of none.

    `measured`: there are results of the pool's own target, which speak for or against.
    """
    if len(gained) < 2:  # noqa: PLR2004 - a single one has no error
        return _SINGLE if measured else 0.0
    mean, error = float(gained.mean()), float(gained.std(ddof=1) / len(gained) ** 0.5)
    return 1 - error / mean if mean > error else 0.0


def _transferred(
    known: Rows, values: Floats, kernel: Kernel, noise: float, parts: Sequence[str]
) -> tuple[Kernel, tuple[str, ...]]:
    """How much the results of other targets count in these parts.

    Each other target is ranked by all the others: a part is trusted as far as it ranks them better, beyond what chance does. What is
    measured on the pool's own target then speaks for or against, by its likelihood given other targets alone.
    """
    transfer = _Transfer(
        known, values, noise, replace(kernel, transfer=dict.fromkeys(parts, 1.0)).parts(known, known)
    )
    measured = int((known.targets == 0).sum()) >= _FEWEST
    weights: dict[str, float] = {}
    mean, variance = transfer.predicted(weights)
    for part in parts:
        tried, spread = transfer.predicted({**weights, part: 1.0})
        if trust := _trust(transfer.ranked(tried) - transfer.ranked(mean), measured=measured):
            more = transfer.likelihood(tried, spread) - transfer.likelihood(mean, variance)
            weights[part] = float(expit(logit(trust) + more))
            mean, variance = transfer.predicted(weights)
    others = known.targets[known.targets != 0]
    named = len(np.unique(others))
    counted = ", ".join(f"{part} {much:.0%}" for part, much in weights.items() if much >= _LITTLE)
    said = counted or (
        "not at all: what they say does not hold from one target to another"
        if named > 1
        else "not at all: no other target and too few results of this one say whether they hold here"
    )
    return replace(kernel, transfer=weights), (
        f"{len(others)} results of {named} other target{'s' if named > 1 else ''} count: {said}",
    )
