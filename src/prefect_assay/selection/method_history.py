"""The policy `method_history`: hit rates of methods from earlier rounds, times what scores and parents say beyond them.

The rate of a method is a Beta posterior around the rate of all methods together. For each place a rate is drawn for every
method (Thompson sampling), so that places are shared among methods in proportion to the chance that each is the best,
and a method without a history is tried. Within a method candidates come by what their tenth of the score and their
parents add, then by score, then at random.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from prefect_assay.models.candidate import parents_of
from prefect_assay.models.selection import SelectionSettings
from prefect_assay.results import DesignSummary
from prefect_assay.selection.candidates import Candidates, Floats, Mask, method_of, number
from prefect_assay.selection.history import History
from prefect_assay.selection.ranking import Offers, score_text
from prefect_assay.selection.rates import HitRate, hit_rates, is_hit

PRIOR_DESIGNS: Final = 2.0  # how many designs the rate of all methods counts beside the method's own
LIFT_HITS: Final = (
    3.0  # expected hits that a tenth or a family needs before its lift is half of what it shows
)
TENTHS: Final = 10
_PER_BIN: Final = 8  # designs; with fewer measured scores there are fewer bins


class Lifts:
    """Hits beyond what was expected, by group: (hits + k) / (expected + k); 1 for a group without a history."""

    def __init__(self, groups: Iterable[Sequence[object]], hits: Floats, expected: Floats) -> None:
        found: defaultdict[object, list[float]] = defaultdict(lambda: [LIFT_HITS, LIFT_HITS])
        for own, hit, chance in zip(groups, hits, expected, strict=True):
            for group in own:
                found[group][0] += hit
                found[group][1] += chance
        self._by_group = {group: hit / chance for group, (hit, chance) in found.items()}

    def __getitem__(self, groups: Sequence[object]) -> float:
        """The geometric mean over the groups."""
        lifts = [self._by_group.get(group, 1.0) for group in groups]
        return float(np.prod(lifts) ** (1 / len(lifts))) if lifts else 1.0


class MethodHistory:
    """Methods by their hit rates, with the lifts of scores and parents."""

    def __init__(
        self, candidates: Candidates, free: Mask, history: History, settings: SelectionSettings
    ) -> None:
        self._candidates, self._settings = candidates, settings
        known = [design for design in history.designs if is_hit(design, settings) is not None]
        self._rates = hit_rates(known, self._method, settings)
        hits = np.array([bool(is_hit(design, settings)) for design in known], dtype=float)
        pooled = (hits.sum() + 1) / (len(hits) + 2)
        self._prior = (PRIOR_DESIGNS * pooled, PRIOR_DESIGNS * (1 - pooled))
        self._edges = self._bins(known)
        expected = np.array([self._mean(self._method(design)) for design in known])
        tenths = [self._tenth(self._score(design)) for design in known]
        self._score_lifts = Lifts(tenths, hits, expected)
        expected *= [self._score_lifts[tenth] for tenth in tenths]
        self._families = Lifts(map(_family, known), hits, np.minimum(expected, 1))
        self.notes: tuple[str, ...] = () if known else ("no outcome in the history: all methods count alike",)
        self._lifts = self._lift_all(free)
        means = {method: self._mean(method) for method in set(candidates.methods)}
        rates = np.array([means[method] for method in candidates.methods])
        self.scores = np.where(free, np.minimum(rates * self._lifts, 1), np.nan)

    def _method(self, design: DesignSummary) -> str:
        return method_of(design.attributes, self._settings.method_column) or ""

    def _score(self, design: DesignSummary) -> float:
        cell = design.attributes.get(self._settings.score_column or "", "")
        return number(cell) * (1 if self._settings.higher_is_better else -1)

    def _bins(self, known: Sequence[DesignSummary]) -> Floats:
        scores = np.array([score for design in known if np.isfinite(score := self._score(design))])
        bins = min(TENTHS, len(scores) // _PER_BIN)
        return np.quantile(scores, np.arange(1, bins) / bins) if bins > 1 else np.empty(0)

    def _tenth(self, score: float) -> tuple[int, ...]:
        known = self._edges.size and np.isfinite(score)
        return (int(np.searchsorted(self._edges, score, side="right")),) if known else ()

    def _posterior(self, method: str) -> tuple[float, float]:
        found = self._rates.get(method, HitRate(0, 0))
        return self._prior[0] + found.hits, self._prior[1] + found.bought - found.hits

    def _mean(self, method: str) -> float:
        hits, misses = self._posterior(method)
        return hits / (hits + misses)

    def _lift_all(self, free: Mask) -> Floats:
        """Each candidate's lift; scores by their tenth, at once."""
        scores = self._candidates.scores
        by_tenth = np.array([self._score_lifts[(tenth,)] for tenth in range(self._edges.size + 1)])
        tenths = np.searchsorted(self._edges, scores, side="right").clip(max=self._edges.size)
        lifts = (
            np.where(np.isfinite(scores), by_tenth[tenths], 1.0) if self._edges.size else np.ones(len(free))
        )
        for at, parents in enumerate(self._candidates.parents):
            if parents and free[at]:
                lifts[at] *= self._families[parents]
        return lifts

    def offers(self) -> Offers:
        """The best candidate of the method with the highest product of drawn rate and lift, for each place."""
        queues = self._queues()
        methods = sorted(queues)
        alpha, beta = np.array([self._posterior(method) for method in methods]).reshape(-1, 2).T
        random = np.random.default_rng(self._settings.seed)
        heads = np.array([self._lifts[queues[method][-1]] for method in methods])
        while heads.size and np.isfinite(heads).any():
            drawn, taken = random.beta(alpha, beta), False
            while not taken and np.isfinite(heads).any():
                best = int(np.argmax(drawn * heads))
                queue = queues[methods[best]]
                taken = yield queue.pop()
                heads[best] = self._lifts[queue[-1]] if queue else -np.inf

    def _queues(self) -> dict[str, list[int]]:
        """The candidates of each method, the best one last."""
        scores = np.nan_to_num(self._candidates.scores, nan=-np.inf)
        order = np.lexsort((self._candidates.ties, -scores, -self._lifts))
        queues: dict[str, list[int]] = {}
        for at in order[np.isfinite(self.scores[order])][::-1].tolist():
            queues.setdefault(self._candidates.methods[at], []).append(at)
        return queues

    def reason(self, at: int) -> str:
        """The method's rate with its 95 % interval, and what score and parents add."""
        method = self._candidates.methods[at]
        parts = [_rate_text(method, self._rates.get(method))]
        score = float(self._candidates.scores[at])
        if np.isfinite(score):
            place = self._tenth(score)
            bins = (
                f" (part {place[0] + 1} of {self._edges.size + 1}: x{self._score_lifts[place]:.2f})"
                if place
                else ""
            )
            parts.append(score_text(score, self._settings) + bins)
        if parents := self._candidates.parents[at]:
            parts.append(f"parents {', '.join(parents)} (x{self._families[parents]:.2f})")
        return f"{'; '.join(parts)}; expected hit rate {self.scores[at]:.0%}"


def _family(design: DesignSummary) -> tuple[str, ...]:
    """A design counts for its parents, and for its own children."""
    return (design.name, *parents_of(design.attributes))


def _rate_text(method: str, found: HitRate | None) -> str:
    name = " ".join(method.split()) or "no method named"
    if found is None:
        return f"{name}: not bought before"
    low, high = found.interval()
    return f"{name}: {found.hits} of {found.bought} hit ({low:.0%} to {high:.0%})"
