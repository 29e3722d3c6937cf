"""What a model is fitted to: noise and lengths by marginal likelihood, and how much of other targets counts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from prefect_assay.models.selection import Aim
from prefect_assay.selection.candidates import Floats
from prefect_assay.selection.described import Rows
from prefect_assay.selection.evidence import Learned
from prefect_assay.selection.kernel import NOISE, PARTS, SLOPE, Kernel, Sites
from prefect_assay.selection.process import Evidence, Process

SEARCHED: Final = 500  # measured designs that the search for lengths and noise looks at
_UNKNOWN: Final = 0.5  # of a part of other targets, while it is not known whether they are like the pool's
_FEWEST: Final = 4  # measured designs of one target, of which one differs
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
    measured = own.size >= _FEWEST
    telling = measured and bool(np.ptp(evidence.values[own]) > 0)
    if telling and (sites is not None or evidence.scale.aim is Aim.BEST):
        some = _some(own)
        bounds = evidence.bounds[some]
        kernel, noise = _searched(
            known[some], Evidence(values[some], 1 / evidence.counts[some], bounds), kernel, evidence.scale.aim
        )
    notes: tuple[str, ...] = ()
    if known.targets.any():
        parts = ("groups", *(("shape",) if referred else ()), "scores", "sequence")
        kernel, notes = _transferred(known, values, kernel, noise, parts, measured=measured)
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


def _across(
    covariance: Floats,
    targets: NDArray[np.int32],
    values: Floats,
    noise: float,
    predicted: NDArray[np.int32],
) -> float:
    """The log likelihood of each value of the targets `predicted` given all values of other targets, summed."""
    inverse = np.linalg.inv(covariance + noise * np.eye(len(values)))
    pulled, total = inverse @ values, 0.0
    for target in predicted:
        own = np.flatnonzero(targets == target)
        spread = np.linalg.inv(inverse[np.ix_(own, own)])
        variance = np.maximum(np.diag(spread), noise)
        total -= 0.5 * float(np.sum((spread @ pulled[own]) ** 2 / variance + np.log(variance)))
    return total


def _transferred(
    known: Rows, values: Floats, kernel: Kernel, noise: float, parts: Sequence[str], *, measured: bool
) -> tuple[Kernel, tuple[str, ...]]:
    """How much the results of other targets count in these parts: as much as predicts designs best from other targets alone.

    These are the designs of the pool's target; before some are measured, those of each other target, and then no part counts more
    than half, because nothing says yet that the pool's target is like the others. A design's own target does not help to predict it:
    where that has results, a transfer has little to add, and the difference would say nothing about a purchase without them.
    """
    others = np.flatnonzero(known.targets != 0)
    named = len(np.unique(known.targets[others]))
    if not measured and named == 1:
        return kernel.with_transfer(**dict.fromkeys(PARTS, _UNKNOWN)), (
            f"{len(others)} results of another target count half: there is nothing yet to compare them with",
        )
    predicted = np.zeros(1, dtype=np.int32) if measured else np.unique(known.targets)

    def fit(tried: Kernel) -> float:
        return _across(tried(known, known).astype(np.float64), known.targets, values, noise, predicted)

    kernel = kernel.with_transfer(constant=1.0)
    without = best = fit(kernel)
    for part in parts:
        for much in (_UNKNOWN, 1.0) if measured else (_UNKNOWN,):
            tried = kernel.with_transfer(**{part: much})
            if (found := fit(tried)) > best:
                best, kernel = found, tried
    words = ", ".join(f"{part} {much:.0%}" for part, much in kernel.transfer.items() if part != "constant")
    note = (
        f"{len(others)} results of {named} other target{'s' if named > 1 else ''} count: {words or 'not at all'} "
        f"(log likelihood {best - without:+.1f})"
    )
    return kernel, (note,)
