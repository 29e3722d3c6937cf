"""The policy `gp`: what is predicted joins sequences, groups and scores, and a batch is chosen one by one.

Each design that is chosen is assumed to measure as predicted, which leaves less to learn from its neighbours, so that a batch
is not a hundred times the same idea.
"""

# The stubs of SciPy and scikit-learn that pyright brings are narrower than these libraries; mypy reads neither.
# pyright: reportArgumentType=false, reportOptionalSubscript=false, reportOptionalOperand=false
# pyright: reportOperatorIssue=false, reportReturnType=false, reportIndexIssue=false, reportAttributeAccessIssue=false

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from prefect_assay.analysis.results import DesignSummary, Outcome, format_objective, get_objective_value
from prefect_assay.analysis.results.repeats import get_residues
from prefect_assay.analysis.selection.candidates import Candidates, Floats, Mask
from prefect_assay.analysis.selection.evidence import Evidence, read_evidence
from prefect_assay.analysis.selection.features import (
    SCORES,
    Columns,
    Features,
    find_sites,
    rank_closeness,
)
from prefect_assay.analysis.selection.identity import measure_identity, number_families
from prefect_assay.analysis.selection.model import Model, expect_improvement
from prefect_assay.analysis.selection.ranking import Offers, format_score
from prefect_assay.designs.scores import is_confidence_score, score_direction
from prefect_assay.designs.selection import Aim, SelectionSettings
from prefect_assay.service.assays import Objective

# Chosen on the EGFR pool and on variants of antibodies (docs/loops.md).
SLOPE: Final = 0.22  # from the middle to the best expected rank of scores
FEWEST_EDITS: Final = 1.0  # from the middle to the fewest edits
EXPLORE: Final = 0.4  # standard deviations that a candidate counts better while rounds are to come
LEARNED: Final = 1500  # measured designs at most
SHORTLIST: Final = 1000  # candidates whose predictions follow what was chosen
_CHUNK: Final = 8192
_FAMILY_SAMPLE: Final = 500
_DIGITS: Final = 9  # of what is ordered: the same order on every machine
_SMALL: Final = 1e-9
_Z95, _NM = 1.96, 1e-9
_WORDS: Final = {
    "sequence": "like measured sequences",
    "groups": "method, author, parents",
    "scores": "scores",
    "edits": "few edits",
}


@dataclass(frozen=True, slots=True)
class _Pick:
    """Why a candidate came before the next one."""

    value: float
    bonus: float
    deviation: float
    following: int | None
    following_value: float


class GaussianProcessRanking:
    """By the expected hits or the expected improvement of the best value.

    Args:
        results: what was measured on the target of the pool.
        rounds_left: purchases after this one; None: not known, and then some are expected.
    """

    def __init__(
        self,
        candidates: Candidates,
        free: Mask,
        results: Sequence[DesignSummary],
        settings: SelectionSettings,
        rounds_left: int | None,
    ) -> None:
        self._candidates, self._settings = candidates, settings
        self._explore = 0.0 if rounds_left == 0 else EXPLORE
        # In an order that does not depend on the pool's: samples and last digits follow it. Measured designs come after them.
        order = np.argsort(candidates.ties, kind="stable")
        self._places = order[free[order]]
        residues = [candidates.pool.residues[place] for place in self._places.tolist()]
        sites, self._evidence = _find_library(residues, _limit_number(read_evidence(results, settings)))
        residues += map(get_residues, self._evidence.designs)
        self._features, ranks = self._make_features(residues, sites)
        self._expected = self._expect(ranks, _find_references(candidates, results))
        expected = sum(self._expected.values(), np.zeros(len(residues)))
        free_rows, measured_rows = np.split(np.arange(len(residues)), [len(self._places)])
        self._measured = self._features.make_rows(measured_rows)
        self._model = Model(
            self._measured,
            self._evidence.values - expected[measured_rows],
            self._evidence.counts,
            is_library=sites is not None,
            is_robust=not self._is_for_hits,
        )
        # As the model sees it, so that one wrong entry is not the one to beat.
        self._best = max((self._model.fitted + expected[measured_rows]).tolist(), default=0.0)
        parts = np.array_split(free_rows, -(-len(free_rows) // _CHUNK) or 1)
        means = [self._model.predict_mean(self._features.make_rows(part)) for part in parts]
        self._mean = (expected[free_rows] + np.concatenate(means)).round(_DIGITS)
        self.scores = np.full(len(free), np.nan)
        self.scores[self._places] = self._scale_scores(self._mean)
        self._picks: dict[int, _Pick] = {}
        self.notes = (*self._evidence.notes, *self._list_notes())
        self.is_of_one_family = sites is not None or "edits" in self._expected or self._has_one_family()

    def _make_features(
        self, residues: Sequence[str], sites: NDArray[np.intp] | None
    ) -> tuple[Features, Floats]:
        """The free candidates, and behind them the measured designs, as features, and the ranks of their scores."""
        pool, settings = self._candidates.pool, self._settings
        extras = [pool.extras[place] for place in self._places.tolist()]

        def unpack(chosen: Sequence[str]) -> Iterator[Mapping[str, str]]:
            return (pool.unpack(extra) if extra else {} for extra in chosen)

        def list_rows() -> Iterator[Mapping[str, str]]:
            yield from unpack(extras)
            yield from (design.attributes for design in self._evidence.designs)

        sample = [*unpack(extras[:: max(1, len(extras) // 2000)])]
        self._columns = Columns.find(sample, settings.method_column, settings.score_column)
        ranks = self._columns.rank_scores(list_rows(), len(residues))
        scores = csr_array(ranks * (SCORES / max(1, ranks.shape[1])) ** 0.5)
        groups = self._columns.tabulate_groups(list_rows(), len(residues))
        return Features(residues, groups, scores, sites), ranks

    def _expect(self, ranks: Floats, references: Sequence[str]) -> dict[str, Floats]:
        """What speaks for each design before any is measured: confidences of structure prediction, and few edits of its parent."""
        columns, settings = self._columns.scores, self._settings
        is_named = settings.score_column is not None and settings.score_column in columns[:1]
        directions = [score_direction(title) if is_confidence_score(title) else None for title in columns]
        if is_named:
            directions[0] = settings.higher_is_better
        speaks = [place for place, better in enumerate(directions) if better is not None]
        expected = {}
        if speaks:
            signs = np.array([1 if directions[place] else -1 for place in speaks])
            of_scores = (ranks[:, speaks] * signs).mean(axis=1)
            expected["scores"] = SLOPE * (of_scores + (ranks[:, 0] * signs[0] if is_named else 0))
        near = rank_closeness(self._features.residues, references)
        if near[: len(self._places)].any():
            expected["edits"] = FEWEST_EDITS * near
        return expected

    def _list_notes(self) -> Iterator[str]:
        values = self._evidence.values
        if not values.size:
            yield "nothing is measured on this target yet: led by scores, spread over families"
        elif not np.ptp(values):
            yield f"the {len(values)} designs measured on this target have one outcome: what is unlike them comes first"
        if self._columns.scores and not any(map(is_confidence_score, self._columns.scores)):
            yield "no score is a known confidence: scores count only where measured designs say how"

    def _has_one_family(self) -> bool:
        """Whether most candidates are variants of one sequence, so that families are not a choice."""
        count = len(self._places)
        spread = np.unique(np.linspace(0, max(0, count - 1), min(count, _FAMILY_SAMPLE)).astype(np.intp))
        numbers = number_families([self._features.residues[place] for place in spread.tolist()])
        return bool(numbers.size and np.bincount(numbers).max() > len(spread) / 2)

    @property
    def _is_for_hits(self) -> bool:
        return self._evidence.scale.aim is Aim.HITS

    def _scale_scores(self, mean: Floats) -> Floats:
        scale = self._evidence.scale
        values = mean * scale.unit + scale.centre
        return np.clip(values, 0.001, 0.999) if self._is_for_hits else values

    def offer(self) -> Offers:
        """The shortlist one by one, then all others by what they alone promise."""
        order = np.lexsort((self._candidates.ties[self._places], -self._mean))
        yield from self._offer_shortlist(order[:SHORTLIST])
        yield from (int(place) for place in self._places[order[SHORTLIST:]])

    def _promise(self, mean: Floats, covariance: Floats) -> tuple[Floats, Floats]:
        """What each candidate promises, rounded, and its standard deviation."""
        deviation = np.sqrt(np.maximum(np.diag(covariance), _SMALL))
        if self._is_for_hits or not self._evidence.values.size:
            return (mean + self._explore * deviation).round(_DIGITS), deviation
        return expect_improvement(mean, deviation, self._best).round(_DIGITS), deviation

    def _offer_shortlist(self, order: NDArray[np.intp]) -> Offers:
        mean, places = self._mean[order], self._places[order].tolist()
        covariance = self._model.predict_covariance(self._features.make_rows(order))
        left = np.ones(len(order), dtype=np.bool_)
        value, deviation = self._promise(mean, covariance)
        first = deviation
        while left.any():
            ranked = np.where(left, value, -np.inf)
            best = int(ranked.argmax())
            left[best] = False
            ranked[best] = -np.inf
            following = int(ranked.argmax()) if left.any() else None
            self._picks[places[best]] = _Pick(
                float(value[best]),
                float(value[best] - mean[best]),
                float(first[best]),
                None if following is None else places[following],
                0.0 if following is None else float(ranked[following]),
            )
            is_taken = yield places[best]
            if is_taken:
                column = covariance[:, best].copy()
                covariance -= np.outer(column, column / (column[best] + self._model.noise))
                value, deviation = self._promise(mean, covariance)

    def explain(self, place: int) -> str:
        """The prediction with its 95 % interval, what it is made of, the measured design most like it, and the next candidate."""
        position = int(np.flatnonzero(self._places == place)[0])
        row = self._features.make_rows(np.array([position]))
        pick = self._picks.get(place)
        mean = float(self._mean[position])
        deviation = pick.deviation if pick else float(self._model.predict_covariance(row)[0, 0]) ** 0.5
        low, middle, high = (self._format(mean + step * deviation) for step in (-_Z95, 0, _Z95))
        parts = [f"{self._settings.chance if self._is_for_hits else 'predicted '}{middle} ({low} to {high})"]
        parts += self._split_mean(row, position)
        score = float(self._candidates.scores[place])
        if np.isfinite(score):
            parts.append(format_score(score, self._settings))
        if self._evidence.designs:
            parts.append(self._describe_nearest(row, self._candidates.pool.residues[place]))
        if pick is not None and pick.following is not None:
            following = self._candidates.pool.names[pick.following]
            is_explored = self._is_for_hits and self._explore
            spread = f" with {pick.bonus:.2f} for what it would teach" if is_explored else ""
            parts.append(f"{pick.value:.2f}{spread}, before {following} with {pick.following_value:.2f}")
        return "; ".join(parts)

    def _split_mean(self, row: csr_array, position: int) -> list[str]:
        """The parts of the prediction, in points of percent or of the modelled value."""
        unit = self._evidence.scale.unit * (100 if self._is_for_hits else 1)
        parts = {part: float(values[position]) for part, values in self._expected.items()}
        for part, value in self._model.split_mean(row, self._features.list_parts()).items():
            parts[part] = parts.get(part, 0.0) + value
        digits = 0 if self._is_for_hits else 2
        listed = [
            f"{_WORDS[part]} {value * unit:+.{digits}f}"
            for part, value in sorted(parts.items(), key=lambda pair: -abs(pair[1]))
            if abs(value * unit) >= 0.5 * 10**-digits
        ]
        return [", ".join(listed)] if listed else []

    def _describe_nearest(self, row: csr_array, residues: str) -> str:
        """The measured design that is most like a candidate by its sequence."""
        sequence = self._features.list_parts()["sequence"]
        alike = (self._measured[:, sequence] @ row[:, sequence].T).toarray().ravel()
        design = self._evidence.designs[int(alike.round(_DIGITS).argmax())]
        identity = measure_identity(residues, get_residues(design))
        outcome = design.outcome.value.replace("_", " ")
        if design.outcome is Outcome.NO_EXPRESSION:
            outcome = "no expression"
        elif (
            not self._is_for_hits
            and (value := get_objective_value(design, self._settings.objective)) is not None
        ):
            outcome = self._format_value(value)
        return f"most like {design.name} ({identity:.0%} identical, {outcome})"

    def _format(self, standard: float) -> str:
        """A standardized value as the objective's: `43%`, `K_D 3.20 nM`, or no binding."""
        scale = self._evidence.scale
        if self._is_for_hits:
            return f"{min(max(standard * scale.unit + scale.centre, 0), 1):.0%}"
        value = scale.to_value(standard)
        if value is None:
            return "no binding" if scale.objective is Objective.AFFINITY else "nothing"
        return self._format_value(value)

    def _format_value(self, value: float) -> str:
        objective = self._settings.objective
        return format_objective(value * _NM if objective is Objective.AFFINITY else value, objective)


def _take(evidence: Evidence, kept: NDArray[np.intp], note: str) -> Evidence:
    """Only the designs at these places, and a note that says so."""
    designs = tuple(evidence.designs[place] for place in kept.tolist())
    values, counts, notes = evidence.values[kept], evidence.counts[kept], (*evidence.notes, note)
    return replace(evidence, designs=designs, values=values, counts=counts, notes=notes)


def _limit_number(evidence: Evidence) -> Evidence:
    """At most `LEARNED` designs: the best half, and an even spread of the rest."""
    if len(evidence.designs) <= LEARNED:
        return evidence
    order = np.argsort(-evidence.values, kind="stable")
    half = LEARNED // 2
    spread = np.linspace(half, len(order) - 1, LEARNED - half).astype(np.intp)
    kept = np.sort(order[np.concatenate([np.arange(half), spread])])
    note = f"gp learns from {LEARNED:,} of {len(order):,} measured designs: the best half, and an even spread of the others"
    return _take(evidence, kept, note)


def _find_library(residues: Sequence[str], evidence: Evidence) -> tuple[NDArray[np.intp] | None, Evidence]:
    """The varied sites of a library, and only what was measured of its variants; None for a pool."""
    if find_sites(residues) is None:
        return None, evidence
    texts = [get_residues(design) for design in evidence.designs]
    kept = [place for place, text in enumerate(texts) if len(text) == len(residues[0])]
    sites = find_sites([*residues, *(texts[place] for place in kept)])
    if sites is not None and (dropped := len(texts) - len(kept)):
        note = (
            f"{dropped} results of other lengths do not count: the candidates are variants at a few positions"
        )
        evidence = _take(evidence, np.array(kept, dtype=np.intp), note)
    return sites, evidence


def _find_references(candidates: Candidates, results: Sequence[DesignSummary]) -> list[str]:
    """Residues of the controls, and of the parents that the candidates name."""
    pool = candidates.pool
    parents = {parent for named in candidates.parents for parent in named}
    texts = [pool.residues[place] for place in sorted(pool.controls)]
    texts += [get_residues(design) for design in results if design.control or design.name in parents]
    if parents:
        texts += [text for name, text in zip(pool.names, pool.residues, strict=True) if name in parents]
    return list(dict.fromkeys(filter(None, texts)))
