"""The policy `method_history`: hit rates of methods from earlier rounds, times what scores and parents say beyond them.

The rate of a method is a Beta posterior around the rate of all methods together. For each place a rate is drawn for every
method (Thompson sampling), so that places are shared among methods in proportion to the chance that each is the best,
and a method without a history is tried. Within a method candidates come by what their score and their parents add.

Scores are compared within a method only, by their place among its candidates: methods score on scales of their own.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from prefect_assay.models.candidate import method_of, parents_of
from prefect_assay.models.selection import SelectionSettings
from prefect_assay.results import DesignSummary
from prefect_assay.selection.candidates import Candidates, Floats, Mask, number
from prefect_assay.selection.history import History
from prefect_assay.selection.ranking import Offers, score_text
from prefect_assay.selection.rates import HitRate, hit_rates, is_hit

PRIOR_DESIGNS: Final = 2.0  # how many designs the rate of all methods counts beside the method's own
FAMILY_HITS: Final = 3.0  # expected hits that a family needs before its lift is half of what it shows
_TREND: Final = np.array([0.0, 0.5])  # level and slope that are expected of a score, and their variances
_TREND_VARIANCE: Final = np.array([1.0, 0.25])
_TENTHS: Final = 10
_STEPS: Final = 30


class MethodHistory:
    """Methods by their hit rates, with the lifts of scores and parents."""

    def __init__(
        self, candidates: Candidates, free: Mask, history: History, settings: SelectionSettings
    ) -> None:
        self._candidates, self._settings = candidates, settings
        known = [design for design in history.designs if is_hit(design, settings) is not None]
        hits = np.array([bool(is_hit(design, settings)) for design in known], dtype=float)
        self._rates = hit_rates(known, self._method, settings)
        pooled = (hits.sum() + 1) / (len(hits) + 2)
        self._prior = (PRIOR_DESIGNS * pooled, PRIOR_DESIGNS * (1 - pooled))
        self._places, places = self._all_places(known)
        expected = np.array([self._mean(self._method(design)) for design in known])
        self._level, self._slope = score_trend(places, hits, expected)
        expected = np.minimum(expected * self._score_lifts(places), 1)
        self._families = family_lifts(map(_family, known), hits, expected)
        self.notes: tuple[str, ...] = () if known else ("no outcome in the history: all methods count alike",)
        self._lifts = self._score_lifts(self._places)
        for at, parents in enumerate(candidates.parents):
            if parents:
                self._lifts[at] *= self._family_lift(parents)
        means = {method: self._mean(method) for method in set(candidates.methods)}
        rates = np.array([means[method] for method in candidates.methods])
        self.scores = np.where(free, np.minimum(rates * self._lifts, 1), np.nan)

    def _method(self, design: DesignSummary) -> str:
        return method_of(design.attributes, self._settings.method_column) or ""

    def _all_places(self, known: Sequence[DesignSummary]) -> tuple[Floats, Floats]:
        """Where scores are among all of their method, from -1 for the worst to 1 for the best: candidates, measured designs."""
        column, sign = self._settings.score_column or "", 1 if self._settings.higher_is_better else -1
        measured = [sign * number(design.attributes.get(column, "")) for design in known]
        scores = np.concatenate([self._candidates.scores, measured])
        by_method: defaultdict[str, list[int]] = defaultdict(list)
        for at, method in enumerate([*self._candidates.methods, *map(self._method, known)]):
            by_method[method].append(at)
        places = np.full(len(scores), np.nan)
        for members in by_method.values():
            scored = np.array(members)[np.isfinite(scores[members])]
            places[scored] = _places(scores[scored])
        return places[: len(self._candidates)], places[len(self._candidates) :]

    def _score_lifts(self, places: Floats) -> Floats:
        return np.nan_to_num(np.exp(self._level + self._slope * places), nan=1.0)

    def _family_lift(self, parents: Sequence[str]) -> float:
        """The geometric mean over the parents; 1 for a parent without a history."""
        return math.prod(self._families.get(parent, 1.0) for parent in parents) ** (1 / len(parents))

    def _posterior(self, method: str) -> tuple[float, float]:
        found = self._rates.get(method, HitRate(0, 0))
        return self._prior[0] + found.hits, self._prior[1] + found.bought - found.hits

    def _mean(self, method: str) -> float:
        hits, misses = self._posterior(method)
        return hits / (hits + misses)

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
        """The candidates of each method, the best one last; equals at random."""
        order = np.lexsort((self._candidates.ties, -self._lifts))
        queues: dict[str, list[int]] = {}
        for at in map(int, order[np.isfinite(self.scores[order])][::-1]):
            queues.setdefault(self._candidates.methods[at], []).append(at)
        return queues

    def reason(self, at: int) -> str:
        """The method's rate with its 95 % interval, and what score and parents add."""
        method = self._candidates.methods[at]
        parts = [_rate_text(method, self._rates.get(method))]
        place = float(self._places[at])
        if math.isfinite(place):
            tenth = min(int((1 - place) / 2 * _TENTHS), _TENTHS - 1) + 1
            lift = math.exp(self._level + self._slope * place)
            score = score_text(float(self._candidates.scores[at]), self._settings)
            parts.append(f"{score} in tenth {tenth} of its method (x{lift:.2f})")
        if parents := self._candidates.parents[at]:
            parts.append(f"parents {', '.join(parents)} (x{self._family_lift(parents):.2f})")
        return f"{'; '.join(parts)}; expected hit rate {self.scores[at]:.0%}"


def _places(scores: Floats) -> Floats:
    """The middle of each score's share among all, from -1 to 1; equal scores have one place."""
    ordered = np.sort(scores)
    middle = np.searchsorted(ordered, scores, "left") + np.searchsorted(ordered, scores, "right")
    return middle / len(scores) - 1


def score_trend(places: Floats, hits: Floats, expected: Floats) -> tuple[float, float]:
    """Level a and slope b of the lift exp(a + b place), of the highest posterior (Newton's method).

    The slope's prior is that of a score that helps a little, as published ones do. The level takes up what the slope cannot
    know: a history of the best scores alone says nothing about the slope.
    """
    known = np.isfinite(places)
    rows = np.stack([np.ones(int(known.sum())), places[known]])
    values = _TREND.copy()
    for _ in range(_STEPS):
        rates = expected[known] * np.exp(values @ rows)
        gradient = rows @ (hits[known] - rates) - (values - _TREND) / _TREND_VARIANCE
        step = np.linalg.solve((rows * rates) @ rows.T + np.diag(1 / _TREND_VARIANCE), gradient)
        values = values + step.clip(-1, 1)
    return float(values[0]), float(values[1])


def family_lifts(families: Iterable[Sequence[str]], hits: Floats, expected: Floats) -> Mapping[str, float]:
    """Hits beyond what was expected, by family: (hits + k) / (expected + k)."""
    found: defaultdict[str, list[float]] = defaultdict(lambda: [FAMILY_HITS, FAMILY_HITS])
    for members, hit, chance in zip(families, hits, expected, strict=True):
        for family in members:
            found[family][0] += hit
            found[family][1] += chance
    return {family: hit / chance for family, (hit, chance) in found.items()}


def _family(design: DesignSummary) -> tuple[str, ...]:
    """A design counts for its parents, and for its own children."""
    return (design.name, *parents_of(design.attributes))


def _rate_text(method: str, found: HitRate | None) -> str:
    name = " ".join(method.split()) or "no method named"
    if found is None:
        return f"{name}: not bought before"
    low, high = found.interval()
    return f"{name}: {found.hits} of {found.bought} hit ({low:.0%} to {high:.0%})"
