"""The policy `gp`: what is predicted joins sequences, groups and scores, and a batch is chosen one by one.

Each design that is chosen is assumed to measure as predicted, which leaves less to learn from its neighbours, so that a batch
is not a hundred times the same idea.
"""

# The stubs of SciPy and scikit-learn that pyright brings are narrower than these libraries; mypy reads neither.
# pyright: reportArgumentType=false, reportOptionalSubscript=false, reportOptionalOperand=false
# pyright: reportOperatorIssue=false, reportReturnType=false, reportIndexIssue=false, reportAttributeAccessIssue=false

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from prefect_assay.analysis.results import Outcome, objective_value, objective_words
from prefect_assay.analysis.results.repeats import residues_of
from prefect_assay.analysis.selection.candidates import Candidates, Floats, Mask
from prefect_assay.analysis.selection.evidence import Learned, learn
from prefect_assay.analysis.selection.features import (
    SCORES,
    Columns,
    Features,
    closeness,
    find_sites,
    group_table,
    rank_columns,
)
from prefect_assay.analysis.selection.history import History
from prefect_assay.analysis.selection.identity import edits, families
from prefect_assay.analysis.selection.model import Model, expected_improvement, learn_from_others
from prefect_assay.analysis.selection.ranking import Offers, score_text
from prefect_assay.designs.scores import is_confidence_score, score_direction
from prefect_assay.designs.selection import Aim, SelectionSettings
from prefect_assay.service.assays import Objective
from prefect_assay.service.words import many

# Chosen on the EGFR pool and on variants of antibodies (docs/loops.md).
SLOPE: Final = 0.22  # from the middle to the best expected rank of scores
FEWEST_EDITS: Final = 1.0  # from the middle to the fewest edits
EXPLORE: Final = 0.4  # standard deviations that a candidate counts better while rounds are to come
LEARNED: Final = 1500  # measured designs at most; those of the pool's target first
SHORTLIST: Final = 1000  # candidates whose predictions follow what was chosen
_MOST: Final = 200_000  # candidates of a library that more than a linear model looks at
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
    "others": "other targets",
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
        targets: of each design of the history, 0 for the target of the pool.
        rounds_left: purchases after this one; None: not known, and then some are expected.
    """

    def __init__(
        self,
        candidates: Candidates,
        free: Mask,
        history: History,
        settings: SelectionSettings,
        targets: Sequence[int],
        rounds_left: int | None,
    ) -> None:
        self._candidates, self._settings = candidates, settings
        self._explore = 0.0 if rounds_left == 0 else EXPLORE
        # In an order that does not depend on the pool's: samples and last digits follow it.
        order = np.argsort(candidates.ties, kind="stable")
        self._at = order[free[order]]
        residues = [candidates.pool.residues[at] for at in self._at.tolist()]
        evidence = _limit_number(learn(history.designs, targets, settings))
        sites, self._evidence = _find_library(residues, evidence)
        self._targets = np.concatenate([np.zeros(len(residues), dtype=np.int32), self._evidence.targets])
        residues += map(residues_of, self._evidence.designs)
        self._features, ranks = self._describe(residues, sites)
        self._expected = self._expect(ranks, _find_references(candidates, history, targets))
        notes = self._learn_from_others()
        expected = sum(self._expected.values(), np.zeros(len(residues)))
        self._own = np.flatnonzero(self._targets == 0)[len(self._at) :]
        self._own_rows = self._features.rows(self._own)
        mine = self._own - len(self._at)
        rest = self._evidence.values[mine] - expected[self._own]
        given = (self._own_rows, rest, self._evidence.counts[mine])
        self._places = np.arange(len(self._at))
        if sites is not None and len(self._at) > _MOST:
            linear = Model(*given, is_library=False, is_robust=False)
            notes += self._screen(expected[self._places] + self._predict(linear))
        is_best = self._evidence.scale.aim is Aim.BEST
        self._model = Model(*given, is_library=sites is not None, is_robust=is_best)
        # As the model sees it, so that one wrong entry is not the one to beat.
        self._best = float((self._model.fitted + expected[self._own]).max()) if mine.size else 0.0
        self._mean = (expected[self._places] + self._predict(self._model)).round(_DIGITS)
        self.scores = np.full(len(free), np.nan)
        self.scores[self._at[self._places]] = self._shown(self._mean)
        self._picks: dict[int, _Pick] = {}
        self.notes = (*self._evidence.notes, *notes, *self._said())
        self.one_family = sites is not None or "edits" in self._expected or self._is_of_one_family()

    def _describe(self, residues: Sequence[str], sites: NDArray[np.intp] | None) -> tuple[Features, Floats]:
        """The free candidates, and behind them the measured designs, as features, and the ranks of their scores."""
        pool, settings = self._candidates.pool, self._settings
        extras = [pool.extras[at] for at in self._at.tolist()]
        sample = [_unpack(extra, pool.unpack) for extra in extras[:: max(1, len(extras) // 2000)]]
        self._columns = columns = Columns.of(sample, settings.method_column, settings.score_column)
        rows = (
            *(_unpack(extra, pool.unpack) for extra in extras),
            *(design.attributes for design in self._evidence.designs),
        )
        shared: dict[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]] = {}
        numbers, groups = np.full((len(residues), len(columns.scores)), np.nan), []
        for place, row in enumerate(rows):
            numbers[place] = columns.numbers(row)
            pairs = tuple(columns.groups(row))
            groups.append(shared.setdefault(pairs, pairs))
        ranks = rank_columns(numbers, self._targets)
        scores = csr_array(ranks * (SCORES / max(1, ranks.shape[1])) ** 0.5)
        return Features(residues, group_table(groups), scores, sites), ranks

    def _expect(self, ranks: Floats, references: Mapping[int, Sequence[str]]) -> dict[str, Floats]:
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
        near = closeness(self._features.residues, self._targets, references)
        if near[: len(self._at)].any():
            expected["edits"] = FEWEST_EDITS * near
        return expected

    def _learn_from_others(self) -> list[str]:
        """Expect of the candidates what the results of other targets say, as far as these predict one another."""
        others = np.flatnonzero(self._targets)
        if not others.size:
            return []
        here = np.flatnonzero(self._targets == 0)
        expected = sum(self._expected.values(), np.zeros(len(self._targets)))
        predicted, trust = learn_from_others(
            self._features.shared_rows(here),
            self._features.shared_rows(others),
            self._evidence.values[others - len(self._at)],
            expected[others],
            self._targets[others],
        )
        if trust:
            self._expected["others"] = np.zeros(len(self._targets))
            self._expected["others"][here] = trust * predicted
        named = len(np.unique(self._targets[others]))
        how = f"{trust:.0%}" if trust else "not at all, because they do not predict one another"
        return [f"{len(others)} results of {many(named, 'other target')} count: {how}"]

    def _screen(self, promised: Floats) -> list[str]:
        """Leave the best candidates by a linear model, where there are too many for all of it."""
        self._places = np.sort(np.argsort(-promised.round(_DIGITS), kind="stable")[:_MOST])
        return [
            f"gp looks closely at {_MOST:,} of {len(self._at):,} candidates: the best by their sites one by one"
        ]

    def _predict(self, model: Model) -> Floats:
        """Means at `_places`."""
        parts = np.array_split(self._places, -(-len(self._places) // _CHUNK) or 1)
        return np.concatenate([model.mean(self._features.rows(part)) for part in parts])

    def _said(self) -> list[str]:
        values = self._evidence.values[self._own - len(self._at)]
        notes = []
        if not values.size:
            notes.append(
                "nothing is measured on this target yet: led by scores and other targets, spread over families"
            )
        elif not np.ptp(values):
            notes.append(
                f"the {len(values)} designs measured on this target have one outcome: what is unlike them comes first"
            )
        if self._columns.scores and not any(map(is_confidence_score, self._columns.scores)):
            notes.append("no score is a known confidence: scores count only where measured designs say how")
        return notes

    def _is_of_one_family(self) -> bool:
        """Whether most candidates are variants of one sequence, so that families are no choice."""
        spread = np.unique(np.linspace(0, max(0, len(self._at) - 1), _FAMILY_SAMPLE).astype(np.intp))
        if not len(self._at):
            return False
        numbers = families([self._features.residues[at] for at in spread.tolist()])
        return bool(np.bincount(numbers).max() > len(spread) / 2)

    @property
    def _hits(self) -> bool:
        return self._evidence.scale.aim is Aim.HITS

    def _shown(self, mean: Floats) -> Floats:
        scale = self._evidence.scale
        values = mean * scale.unit + scale.centre
        return np.clip(values, 0.001, 0.999) if self._hits else values

    def offers(self) -> Offers:
        """The shortlist one by one, then all others by what they alone promise."""
        ties = self._candidates.ties[self._at[self._places]]
        order = np.lexsort((ties, -self._mean))
        yield from self._shortlist(order[:SHORTLIST])
        for position in order[SHORTLIST:]:
            yield int(self._at[self._places[position]])

    def _promise(self, mean: Floats, covariance: Floats) -> tuple[Floats, Floats]:
        """What each candidate promises, rounded, and its standard deviation."""
        deviation = np.sqrt(np.maximum(np.diag(covariance), _SMALL))
        if self._hits or not self._own.size:
            return (mean + self._explore * deviation).round(_DIGITS), deviation
        return expected_improvement(mean, deviation, self._best).round(_DIGITS), deviation

    def _shortlist(self, order: NDArray[np.intp]) -> Offers:
        mean, at = self._mean[order], self._at[self._places[order]]
        covariance = self._model.covariance(self._features.rows(self._places[order]))
        left = np.ones(len(order), dtype=np.bool_)
        value, deviation = self._promise(mean, covariance)
        first = deviation
        while left.any():
            ranked = np.where(left, value, -np.inf)
            best = int(ranked.argmax())
            left[best] = False
            ranked[best] = -np.inf
            following = int(ranked.argmax()) if left.any() else None
            self._picks[int(at[best])] = _Pick(
                float(value[best]),
                float(value[best] - mean[best]),
                float(first[best]),
                None if following is None else int(at[following]),
                0.0 if following is None else float(ranked[following]),
            )
            taken = yield int(at[best])
            if taken:
                column = covariance[:, best].copy()
                covariance -= np.outer(column, column / (column[best] + self._model.noise))
                value, deviation = self._promise(mean, covariance)

    def reason(self, at: int) -> str:
        """The prediction with its 95 % interval, what it is made of, the measured design most like it, and the next candidate."""
        position = int(np.flatnonzero(self._at[self._places] == at)[0])
        row = self._features.rows(self._places[[position]])
        pick = self._picks.get(at)
        mean = float(self._mean[position])
        deviation = pick.deviation if pick else float(self._model.covariance(row)[0, 0]) ** 0.5
        low, middle, high = (self._text(mean + step * deviation) for step in (-_Z95, 0, _Z95))
        parts = [f"{self._settings.chance if self._hits else 'predicted '}{middle} ({low} to {high})"]
        parts += self._made_of(row, int(self._places[position]))
        score = float(self._candidates.scores[at])
        if np.isfinite(score):
            parts.append(score_text(score, self._settings))
        if near := self._nearest(row, self._candidates.pool.residues[at]):
            parts.append(near)
        if pick is not None and pick.following is not None:
            following = self._candidates.pool.names[pick.following]
            spread = f" with {pick.bonus:.2f} for what it would teach" if self._hits and self._explore else ""
            parts.append(f"{pick.value:.2f}{spread}, before {following} with {pick.following_value:.2f}")
        return "; ".join(parts)

    def _made_of(self, row: csr_array, place: int) -> list[str]:
        """The parts of the prediction, in points of percent or of the modelled value."""
        unit = self._evidence.scale.unit * (100 if self._hits else 1)
        made = {part: float(values[place]) for part, values in self._expected.items()}
        for part, value in self._model.parts(row, self._features.columns()).items():
            made[part] = made.get(part, 0.0) + value
        digits = 0 if self._hits else 2
        listed = [
            f"{_WORDS[part]} {value * unit:+.{digits}f}"
            for part, value in sorted(made.items(), key=lambda pair: -abs(pair[1]))
            if abs(value * unit) >= 0.5 * 10**-digits and part in _WORDS
        ]
        return [", ".join(listed)] if listed else []

    def _nearest(self, row: csr_array, residues: str) -> str | None:
        """The measured design of this target that is most like a candidate by its sequence."""
        if not self._own.size:
            return None
        sequence = self._features.columns()["sequence"]
        alike = (self._own_rows[:, sequence] @ row[:, sequence].T).toarray().ravel()
        place = int(self._own[int(alike.round(_DIGITS).argmax())])
        other = self._features.residues[place]
        identity = 1 - edits(residues, other) / max(len(residues), len(other), 1)
        design = place - len(self._at)
        return f"most like {self._evidence.designs[design].name} ({identity:.0%} identical, {self._outcome(design)})"

    def _outcome(self, at: int) -> str:
        design = self._evidence.designs[at]
        if not self._hits and objective_value(design, self._settings.objective) is not None:
            return self._text(float(self._evidence.values[at]))
        return (
            "no expression"
            if design.outcome is Outcome.NO_EXPRESSION
            else design.outcome.value.replace("_", " ")
        )

    def _text(self, standard: float) -> str:
        """A standardized value as the objective's: `43%`, `K_D 3.20 nM`, or no binding."""
        scale = self._evidence.scale
        if self._hits:
            return f"{min(max(standard * scale.unit + scale.centre, 0), 1):.0%}"
        value = scale.value(standard)
        if value is None:
            return "no binding" if scale.objective is Objective.AFFINITY else "nothing"
        in_nm = scale.objective is Objective.AFFINITY
        return objective_words(value * _NM if in_nm else value, scale.objective)


def _unpack(extra: str, unpack: Callable[[str], Mapping[str, str]]) -> Mapping[str, str]:
    return unpack(extra) if extra else {}


def _limit_number(evidence: Learned) -> Learned:
    """At most `LEARNED` designs: those of the pool's target first, the best half, and an even spread of the rest."""
    if len(evidence.designs) <= LEARNED:
        return evidence
    order = np.lexsort((-evidence.values, evidence.targets != 0))
    half = LEARNED // 2
    spread = np.linspace(half, len(order) - 1, LEARNED - half).astype(np.intp)
    kept = np.sort(order[np.concatenate([np.arange(half), spread])])
    note = f"gp learns from {LEARNED:,} of {len(order):,} measured designs: the best half, and an even spread of the others"
    return evidence.taking(kept, note)


def _find_library(residues: Sequence[str], evidence: Learned) -> tuple[NDArray[np.intp] | None, Learned]:
    """The varied sites of a library, and only what was measured of its variants on its target; None for a pool."""
    if find_sites(residues) is None:
        return None, evidence
    texts = [residues_of(design) for design in evidence.designs]
    is_variant = [
        not target and len(text) == len(residues[0])
        for text, target in zip(texts, evidence.targets.tolist(), strict=True)
    ]
    kept = np.flatnonzero(is_variant)
    if dropped := len(texts) - kept.size:
        note = f"{dropped} results of other targets or lengths do not count: the candidates are variants at a few positions"
        evidence = evidence.taking(kept, note)
    sites = find_sites([*residues, *(texts[at] for at in kept.tolist())])
    return sites, evidence


def _find_references(
    candidates: Candidates, history: History, targets: Sequence[int]
) -> dict[int, list[str]]:
    """Residues of the controls of each target, and of the parents that the candidates name."""
    pool = candidates.pool
    references: dict[int, list[str]] = {0: [pool.residues[at] for at in sorted(pool.controls)]}
    parents = {parent for named in candidates.parents for parent in named}
    for design, target in zip(history.designs, targets, strict=True):
        residues = residues_of(design)
        if residues and (design.control or (target == 0 and design.name in parents)):
            references.setdefault(target, []).append(residues)
    if parents:
        references[0] += [
            text for name, text in zip(pool.names, pool.residues, strict=True) if name in parents
        ]
    return {target: list(dict.fromkeys(texts)) for target, texts in references.items() if texts}
