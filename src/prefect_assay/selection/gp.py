"""The policy `gp`: a Gaussian process on the sequences, and a batch that is chosen one by one.

Each design that is chosen is assumed to measure as predicted, which leaves less to learn from its neighbours, so that a batch
is not a hundred times the same idea.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from prefect_assay.models.selection import Acquisition, Objective, SelectionSettings
from prefect_assay.results import DesignSummary, Outcome
from prefect_assay.results.formats import molar
from prefect_assay.selection.candidates import Candidates, Floats, Mask
from prefect_assay.selection.gaussian import Encoder, GaussianProcess, expected_improvement
from prefect_assay.selection.history import History
from prefect_assay.selection.once import residues_of
from prefect_assay.selection.ranking import Offers
from prefect_assay.selection.rates import objective_value

MODELLED: Final = 200_000  # candidates that are looked at: those with the best scores, or drawn by the seed
LEARNED: Final = 1500  # measured designs: the best half and others drawn by the seed
SHORTLIST: Final = 1500  # candidates whose predictions follow what was chosen
_FAILED: Final = frozenset({Outcome.NO_BINDING, Outcome.NO_EXPRESSION})
_NM: Final = 1e-9
_Z95: Final = 1.96


class GaussianProcessRanking:
    """By expected improvement or by Thompson sampling; at random while the history has too little to learn from."""

    def __init__(
        self, candidates: Candidates, free: Mask, history: History, settings: SelectionSettings
    ) -> None:
        self._candidates, self._settings = candidates, settings
        self._looked_at = _looked_at(candidates, free)
        self._known, values, self._best = training(history.designs, settings)
        self._process: GaussianProcess | None = None
        self.scores = np.full(len(free), np.nan)
        self._deviations = self.scores.copy()
        learns = len(set(values.tolist())) > 1
        if learns and self._looked_at.size:
            self._fit(values)
        else:
            self.scores[self._looked_at] = 0
        self.notes = _notes(int(free.sum()), self._looked_at.size, learns=learns)

    def _fit(self, values: Floats) -> None:
        known = [residues_of(design) for design in self._known]
        residues = [self._candidates.pool.residues[at] for at in self._looked_at.tolist()]
        self._encoder = Encoder([*known, *residues])
        self._process = GaussianProcess(self._encoder(known), values, self._encoder.blocks)
        for part, rows in self._encoder.chunks(residues):
            at = self._looked_at[part]
            self.scores[at], self._deviations[at] = self._process.predict(rows)

    def offers(self) -> Offers:
        """The shortlist one by one, then all others by what they alone promise."""
        at = self._looked_at
        if self._process is None:
            for position in at:
                yield int(position)
            return
        promise = expected_improvement(self.scores[at], self._deviations[at], self._process.best)
        order = at[np.lexsort((-self.scores[at], -promise))]
        yield from self._shortlist(self._process, order[:SHORTLIST])
        for position in order[SHORTLIST:]:
            yield int(position)

    def _shortlist(self, process: GaussianProcess, order: NDArray[np.intp]) -> Offers:
        rows = self._encoder([self._candidates.pool.residues[at] for at in order.tolist()])
        covariance, mean = process.covariance(rows), self.scores[order]
        random = np.random.default_rng(self._settings.seed)
        thompson = self._settings.acquisition is Acquisition.THOMPSON
        factor = _factor(covariance) if thompson else None
        left = np.ones(len(order), dtype=np.bool_)
        taken = True
        value = mean
        while left.any():
            if factor is not None:
                value = mean + factor @ random.standard_normal(len(order))
            elif taken:
                deviation = np.sqrt(np.maximum(np.diag(covariance), 1e-12))
                value = expected_improvement(mean, deviation, process.best)
            best = int(np.where(left, value, -np.inf).argmax())
            left[best] = False
            taken = yield int(order[best])
            if taken and factor is None:
                column = covariance[:, best].copy()
                covariance -= np.outer(column, column / (column[best] + process.noise))

    def reason(self, at: int) -> str:
        """The prediction with its 95 % interval, the best one so far, and the measured design that is most like it."""
        if self._process is None:
            return f"drawn at random with seed {self._settings.seed}: too little was measured for a model"
        mean, deviation = float(self.scores[at]), float(self._deviations[at])
        low, middle, high = (self._text(mean + step * deviation) for step in (-_Z95, 0, _Z95))
        nearest = self._known[self._process.nearest(self._encoder([self._candidates.pool.residues[at]]))]
        return f"predicted {middle} ({low} to {high}); best so far {self._text(self._process.best)}; most like {nearest.name}"

    def _text(self, value: float) -> str:
        """A modelled value as the objective's: `K_D 3.20 nM`, or no binding."""
        objective = self._settings.objective
        if objective is Objective.MELTING:
            return f"{value:.1f} °C"
        if value <= 0:
            return "no binding" if objective is Objective.AFFINITY else "nothing"
        if objective is Objective.AFFINITY:
            return molar(self._best * _NM / value**2)
        return molar(self._best * _NM * value**2)


def training(
    designs: Sequence[DesignSummary], settings: SelectionSettings
) -> tuple[list[DesignSummary], Floats, float]:
    """Measured designs, controls left out, with what is modelled, higher is better, and the best value in the objective's unit.

    K_D and concentration are modelled as square roots of what they are beside the best one: 1 for the best, 0 for a design that
    does not bind or express. A melting temperature is modelled as it is, and a design that does not express as the lowest.
    """
    found: defaultdict[str, list[float]] = defaultdict(list)
    first: dict[str, DesignSummary] = {}
    for design in designs:
        if design.control:
            continue
        value = objective_value(design, settings.objective)
        failed = design.outcome is Outcome.NO_EXPRESSION or (
            settings.objective is Objective.AFFINITY and design.outcome in _FAILED
        )
        if (residues := residues_of(design)) and (value is not None or failed):
            first.setdefault(residues, design)
            found[residues].append(np.nan if value is None else value)
    order = sorted(found)
    numbers = [np.array(found[residues]) for residues in order]
    every = np.concatenate([*numbers, [np.nan]])
    every = every[np.isfinite(every)]
    if not every.size:
        return [], np.empty(0), np.nan
    best = float(every.min() if settings.objective is Objective.AFFINITY else every.max())
    values = np.array([_modelled(number, best, float(every.min()), settings.objective) for number in numbers])
    kept = _learned(values)
    return [first[order[at]] for at in kept.tolist()], values[kept], best


def _modelled(values: Floats, best: float, lowest: float, objective: Objective) -> float:
    """The mean over the measurements of one sequence."""
    if objective is Objective.MELTING:
        return float(np.where(np.isnan(values), lowest, values).mean())
    ratio = best / values if objective is Objective.AFFINITY else values / best
    return float(np.sqrt(np.nan_to_num(ratio, nan=0.0)).mean())


def _learned(values: Floats) -> NDArray[np.intp]:
    """Positions of at most `LEARNED` values: the best half, and others evenly spread over the rest."""
    order = np.argsort(-values, kind="stable")
    if len(order) <= LEARNED:
        return np.sort(order)
    half = LEARNED // 2
    spread = np.linspace(half, len(order) - 1, LEARNED - half).astype(np.intp)
    return np.sort(order[np.concatenate([np.arange(half), spread])])


def _looked_at(candidates: Candidates, free: Mask) -> NDArray[np.intp]:
    """Positions of the candidates that are modelled, in an order that does not depend on the pool's."""
    scores = np.nan_to_num(candidates.scores, nan=-np.inf)
    order = np.lexsort((candidates.ties, -scores))
    return order[free[order]][:MODELLED]


def _factor(covariance: Floats) -> Floats:
    """A Cholesky factor; a little is added to the diagonal, because similar designs are almost the same number."""
    return np.linalg.cholesky(
        covariance + np.eye(len(covariance)) * (1e-5 * np.diag(covariance).max() + 1e-12)
    )


def _notes(free: int, looked_at: int, *, learns: bool) -> tuple[str, ...]:
    notes = []
    if not learns:
        notes.append("the history has fewer than two different values to learn from: chosen at random")
    if looked_at < free:
        notes.append(
            f"gp looks at {looked_at:,} of {free:,} candidates: the best scores, or drawn by the seed"
        )
    return tuple(notes)
