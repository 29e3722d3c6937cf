"""The policy `gp`: a Gaussian process that joins sequences, groups and scores, and a batch that is chosen one by one.

Each design that is chosen is assumed to measure as predicted, which leaves less to learn from its neighbours, so that a batch
is not a hundred times the same idea.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from prefect_assay.analysis.results import Outcome, objective_words
from prefect_assay.analysis.results.repeats import residues_of
from prefect_assay.analysis.selection.candidates import Candidates, Floats, Mask
from prefect_assay.analysis.selection.described import (
    Columns,
    Rows,
    Shapes,
    described,
    joined,
    words,
)
from prefect_assay.analysis.selection.evidence import Learned, learned
from prefect_assay.analysis.selection.fit import Model, fitted
from prefect_assay.analysis.selection.history import History
from prefect_assay.analysis.selection.identity import edits, families
from prefect_assay.analysis.selection.kernel import (
    GROUPS,
    SEQUENCE,
    SLOPE,
    Kernel,
    Sites,
)
from prefect_assay.analysis.selection.process import expected_improvement
from prefect_assay.analysis.selection.ranking import Offers, score_text
from prefect_assay.designs.scores import is_confidence_score, score_direction
from prefect_assay.designs.selection import Aim, Objective, SelectionSettings

LEARNED: Final = 1500  # measured designs at most; those of the pool's target first
_WORK: Final = 2.5e10  # candidates times the square of measured designs: beyond, the best ones by a linear model are looked at
_FEWEST, _MOST = 20_000, 200_000
SHORTLIST: Final = 1500  # candidates whose predictions follow what was chosen
EXPLORE: Final = 0.25  # standard deviations that a candidate counts better while rounds are to come
_CHUNK: Final = 8192
_SAMPLED: Final = 5000
_FAMILY_SAMPLE: Final = 500
_Z95, _NM = 1.96, 1e-9
_WORDS: Final = {
    "sequence": "like measured sequences",
    "groups": "method, author, parents",
    "scores": "scores",
    "shape": "closeness and length",
    "constant": "level",
}


@dataclass(frozen=True, slots=True)
class _Pick:
    """Why a candidate came before the next one."""

    value: float
    bonus: float
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
        self._evidence = _kept(learned(history.designs, targets, settings))
        # In an order that does not depend on the pool's: samples and last digits follow it.
        order = np.argsort(candidates.ties, kind="stable")
        self._at = order[free[order]]
        self._rows, known = self._described()
        self._model: Model | None = None
        self._sites = _sites(self._rows, known)
        if self._sites is not None and known.targets.any():
            own = np.flatnonzero(known.targets == 0)
            note = f"{len(known) - own.size} results of other targets do not count: the candidates are variants at a few positions"
            known, self._evidence = known[own], self._evidence.taking(own, note)
        shapes = None
        if self._sites is None:
            shapes = Shapes(_sample(self._rows, known), _references(candidates, history, targets))
            known = shapes(known)
        notes: tuple[str, ...] = ()
        if len(known):
            self._model, notes = fitted(
                known, self._evidence, self._sites, referred=shapes is not None and 0 in shapes.referred
            )
        self.notes = (*self._evidence.notes, *notes, *self._screened(int(free.sum())), *self._said(known))
        self._rows = shapes(self._rows) if shapes else self._rows
        self._mean, self._deviation = self._predicted()
        self.scores = np.full(len(free), np.nan)
        self.scores[self._at] = self._shown(self._mean)
        self._picks: dict[int, _Pick] = {}
        self.one_family = self._sites is not None or _of_one_family(self._rows)

    def _described(self) -> tuple[Rows, Rows]:
        """The free candidates and the measured designs as rows."""
        pool, settings = self._candidates.pool, self._settings
        sample = [
            _cells(pool.extras[at], pool.unpack) for at in self._at[:: max(1, len(self._at) // 2000)].tolist()
        ]
        columns = Columns.of(sample, settings.method_column, settings.score_column)
        shared: dict[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]] = {}
        groups, scores = (
            [],
            np.full((len(self._at) + len(self._evidence.designs), len(columns.scores)), np.nan, np.float32),
        )
        residues = []
        for place, at in enumerate(self._at.tolist()):
            row = _cells(pool.extras[at], pool.unpack)
            scores[place] = columns.numbers(row)
            found = tuple(columns.groups(row))
            groups.append(shared.setdefault(found, found))
            residues.append(pool.residues[at])
        offered = {each for found in shared for each in found}
        for place, design in enumerate(self._evidence.designs, start=len(self._at)):
            scores[place] = columns.numbers(design.attributes)
            found = tuple(columns.groups(design.attributes))
            if self._evidence.targets[place - len(self._at)]:
                found = tuple(each for each in found if each in offered)
            groups.append(found)
            residues.append(residues_of(design))
        targets = np.concatenate([np.zeros(len(self._at), dtype=np.int32), self._evidence.targets])
        named = settings.score_column is not None and settings.score_column in columns.scores[:1]
        # Before anything is measured, only confidences of structure prediction speak for a design.
        directions = [
            score_direction(title) if is_confidence_score(title) else None for title in columns.scores
        ]
        if named:
            directions[0] = settings.higher_is_better
        rows = described(residues, targets, groups, scores, directions, GROUPS, named)
        self._columns = columns
        split = len(self._at)
        return rows[np.arange(split)] if len(rows) > split else rows, rows[np.arange(split, len(rows))]

    def _screened(self, free: int) -> tuple[str, ...]:
        """Leave the best candidates by the linear part of the model, where there are too many for all of it."""
        known = len(self._model.known) if self._model else 0
        most = int(np.clip(_WORK / max(known, 1) ** 2, _FEWEST, _MOST))
        if free <= most:
            return ()
        value = SLOPE * self._rows.expected
        if self._model is not None:
            value = value + _linear(self._model, self._rows)
        order = np.lexsort((self._candidates.ties[self._at], -value))[:most]
        order.sort()
        self._at, self._rows = self._at[order], self._rows[order]
        return (
            f"gp looks closely at {most:,} of {free:,} candidates: the best by triplets, groups and scores alone",
        )

    def _said(self, known: Rows) -> tuple[str, ...]:
        own = int((known.targets == 0).sum())
        known_score = any(map(is_confidence_score, self._columns.scores))
        notes = []
        if not own:
            notes.append(
                "nothing is measured on this target yet: led by scores and other targets, spread over families"
            )
        elif not np.ptp(self._evidence.values[known.targets == 0]):
            notes.append(
                f"the {own} designs measured on this target have one outcome: what is unlike them comes first"
            )
        if self._columns.scores and not known_score:
            notes.append("no score is a known confidence: scores count only where measured designs say how")
        return tuple(notes)

    def _predicted(self) -> tuple[Floats, Floats]:
        """Mean and standard deviation of each candidate, standardized."""
        mean = SLOPE * self._rows.expected
        kernel = self._model.kernel if self._model else Kernel(self._sites)
        deviation = np.sqrt(kernel.diagonal(self._rows))
        if self._model is None:
            return mean, deviation
        process, whiten = self._model.process, self._model.process.whiten.astype(np.float32)
        alpha = process.alpha.astype(np.float32)
        for start in range(0, len(self._at), _CHUNK):
            part = slice(start, start + _CHUNK)
            covariance = kernel(self._rows[part], self._model.known)
            mean[part] += covariance @ alpha
            explained = np.square(covariance @ whiten.T).sum(axis=1)
            deviation[part] = np.sqrt(np.maximum(deviation[part] ** 2 - explained, 1e-6))
        return mean, deviation * self._model.deviation

    def _shown(self, mean: Floats) -> Floats:
        scale = self._evidence.scale
        values = mean * scale.unit + scale.centre
        return np.clip(values, 0.001, 0.999) if scale.aim is Aim.HITS else values

    def _best(self) -> float:
        """The best value as the model sees it, so that one wrong entry is not the one to beat."""
        if self._model is None:
            return 0.0
        own = np.flatnonzero((self._model.known.targets == 0) & (self._evidence.bounds == 0))
        if not own.size:
            return 0.0
        process = self._model.process
        smooth = self._evidence.values - process.noises * process.alpha
        return float(smooth[own].max())

    def offers(self) -> Offers:
        """The shortlist one by one, then all others by what they alone promise."""
        best = self._best()
        promise = self._promise(self._mean, self._deviation, best)
        order = np.lexsort((self._candidates.ties[self._at], -self._mean, -promise))
        yield from self._shortlist(order[:SHORTLIST], best)
        for position in order[SHORTLIST:]:
            yield int(self._at[position])

    def _promise(self, mean: Floats, deviation: Floats, best: float) -> Floats:
        if self._evidence.scale.aim is Aim.BEST and self._model is not None:
            return expected_improvement(mean, deviation, best)
        return mean + self._explore * deviation

    def _shortlist(self, order: NDArray[np.intp], best: float) -> Offers:
        rows, mean = self._rows[order], self._mean[order]
        covariance, noise = self._covariance(rows), self._noise()
        left = np.ones(len(order), dtype=np.bool_)
        value = self._promise(mean, np.sqrt(np.maximum(np.diag(covariance), 1e-12)), best)
        while left.any():
            ranked = np.where(left, value, -np.inf)
            at = int(ranked.argmax())
            left[at] = False
            ranked[at] = -np.inf
            following = int(ranked.argmax()) if left.any() else None
            self._picks[int(self._at[order[at]])] = _Pick(
                float(value[at]),
                float(value[at] - mean[at]),
                None if following is None else int(self._at[order[following]]),
                0.0 if following is None else float(ranked[following]),
            )
            taken = yield int(self._at[order[at]])
            if taken:
                column = covariance[:, at].copy()
                covariance -= np.outer(column, column / (column[at] + noise))
                value = self._promise(mean, np.sqrt(np.maximum(np.diag(covariance), 1e-12)), best)

    def _covariance(self, rows: Rows) -> Floats:
        kernel = self._model.kernel if self._model else Kernel(self._sites)
        own: Floats = kernel(rows, rows).astype(np.float64)
        if self._model is None:
            return own
        whitened = kernel(rows, self._model.known).astype(np.float64) @ self._model.process.whiten.T
        own -= whitened @ whitened.T
        own *= self._model.deviation**2
        return own

    def _noise(self) -> float:
        if self._model is None:
            return 0.6
        return float(np.median(self._model.process.noises)) * self._model.deviation**2

    def reason(self, at: int) -> str:
        """The prediction with its 95 % interval, what it is made of, the measured design most like it, and the next candidate."""
        place = int(np.flatnonzero(self._at == at)[0])
        mean, deviation = float(self._mean[place]), float(self._deviation[place])
        low, middle, high = (self._text(mean + step * deviation) for step in (-_Z95, 0, _Z95))
        parts = [f"{self._settings.chance if self._hits else 'predicted '}{middle} ({low} to {high})"]
        parts += self._made_of(place)
        score = float(self._candidates.scores[at])
        if np.isfinite(score):
            parts.append(score_text(score, self._settings))
        if near := self._nearest(place):
            parts.append(near)
        pick = self._picks.get(at)
        if pick is not None and pick.following is not None:
            following = self._candidates.pool.names[pick.following]
            spread = f" with {pick.bonus:.2f} for what it would teach" if self._hits and self._explore else ""
            parts.append(f"{pick.value:.2f}{spread}, before {following} with {pick.following_value:.2f}")
        return "; ".join(parts)

    @property
    def _hits(self) -> bool:
        return self._evidence.scale.aim is Aim.HITS

    def _made_of(self, place: int) -> list[str]:
        """The parts of the prediction, in points of percent or of the modelled value."""
        unit = self._evidence.scale.unit * (100 if self._hits else 1)
        row = self._rows[np.array([place])]
        expected = SLOPE * float(row.expected[0])
        found = {"scores": expected}
        if self._model is not None:
            for part, matrix in self._model.kernel.parts(row, self._model.known).items():
                found[part] = found.get(part, 0.0) + float(matrix[0] @ self._model.process.alpha)
        digits = 0 if self._hits else 2
        listed = [
            f"{_WORDS[part]} {value * unit:+.{digits}f}"
            for part, value in sorted(found.items(), key=lambda each: -abs(each[1]))
            if abs(value * unit) >= 0.5 * 10**-digits and part != "constant"
        ]
        return [", ".join(listed)] if listed else []

    def _nearest(self, place: int) -> str | None:
        """The measured design of this target that is most like a candidate by its sequence."""
        if self._model is None:
            return None
        own = np.flatnonzero(self._model.known.targets == 0)
        if not own.size:
            return None
        row, known = self._rows[np.array([place])], self._model.known
        at = int(own[self._model.kernel.parts(row, known)["sequence"][0][own].argmax()])
        first, second = row.residues[0], known.residues[at]
        identity = 1 - edits(first, second) / max(len(first), len(second), 1)
        return f"most like {self._evidence.designs[at].name} ({identity:.0%} identical, {self._outcome(at)})"

    def _outcome(self, at: int) -> str:
        design, scale = self._evidence.designs[at], self._evidence.scale
        if self._evidence.bounds[at] == 0 and scale.aim is Aim.BEST:
            return self._text(float(self._evidence.values[at]))
        return (
            "no expression"
            if design.outcome is Outcome.NO_EXPRESSION
            else design.outcome.value.replace("_", " ")
        )

    def _text(self, standard: float) -> str:
        """A standardized value as the objective's: `43%`, `K_D 3.20 nM`, or no binding."""
        scale = self._evidence.scale
        if scale.aim is Aim.HITS:
            return f"{min(max(standard * scale.unit + scale.centre, 0), 1):.0%}"
        value = scale.value(standard)
        if value is None:
            return "no binding" if scale.objective is Objective.AFFINITY else "nothing"
        in_nm = scale.objective is Objective.AFFINITY
        return objective_words(value * _NM if in_nm else value, scale.objective)


def _cells(extra: str, unpack: Callable[[str], Mapping[str, str]]) -> Mapping[str, str]:
    return unpack(extra) if extra else {}


def _kept(evidence: Learned) -> Learned:
    """At most `LEARNED` designs: those of the pool's target first, the best half, and an even spread of the rest."""
    if len(evidence.designs) <= LEARNED:
        return evidence
    order = np.lexsort((-evidence.values, evidence.targets != 0))
    half = LEARNED // 2
    spread = np.linspace(half, len(order) - 1, LEARNED - half).astype(np.intp)
    kept = np.sort(order[np.concatenate([np.arange(half), spread])])
    note = f"gp learns from {LEARNED:,} of {len(order):,} measured designs: the best half, and an even spread of the others"
    return evidence.taking(kept, note)


def _sites(rows: Rows, known: Rows) -> Sites | None:
    """The few positions at which all candidates and the measured designs of their target differ, if that is so."""
    own = [text for text, target in zip(known.residues, known.targets, strict=True) if target == 0]
    residues = [*rows.residues, *own]
    return None if Sites.of(residues[:_SAMPLED]) is None else Sites.of(residues)


def _of_one_family(rows: Rows) -> bool:
    """Whether most candidates are variants of one sequence, so that families are no choice."""
    spread = np.unique(np.linspace(0, max(0, len(rows) - 1), min(len(rows), _FAMILY_SAMPLE)).astype(np.intp))
    if not spread.size:
        return False
    return bool(np.bincount(families([rows.residues[int(at)] for at in spread])).max() > len(spread) / 2)


def _sample(rows: Rows, known: Rows) -> Rows:
    """The measured designs and an even spread of the candidates."""
    spread = rows[np.unique(np.linspace(0, max(0, len(rows) - 1), min(len(rows), _SAMPLED)).astype(np.intp))]
    return joined(spread, known)


def _references(candidates: Candidates, history: History, targets: Sequence[int]) -> dict[int, list[str]]:
    """Residues of the controls of each target, and of the parents that the candidates name."""
    pool = candidates.pool
    found: dict[int, list[str]] = {0: [pool.residues[at] for at in sorted(pool.controls)]}
    parents = {parent for named in candidates.parents for parent in named}
    for design, target in zip(history.designs, targets, strict=True):
        residues = residues_of(design)
        if residues and (design.control or (target == 0 and design.name in parents)):
            found.setdefault(target, []).append(residues)
    if parents:
        found[0] += [text for name, text in zip(pool.names, pool.residues, strict=True) if name in parents]
    return {target: list(dict.fromkeys(residues)) for target, residues in found.items() if residues}


def _linear(model: Model, rows: Rows) -> Floats:
    """What groups and triplets alone predict: products with one vector each, also for a million candidates."""
    alpha = model.process.alpha * np.where(model.known.targets == 0, 1.0, 0.0)
    value = np.asarray(rows.groups @ (model.known.groups.T @ alpha)).ravel()
    if model.kernel.sites is None:
        weights = SEQUENCE * np.asarray(model.known.words.T @ alpha).ravel()
        for start in range(0, len(rows), _CHUNK):
            value[start : start + _CHUNK] += words(rows.residues[start : start + _CHUNK]) @ weights
    return value
