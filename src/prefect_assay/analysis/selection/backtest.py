"""Purchases played on a table of measured designs: what each policy would have bought, and found.

Families of similar sequences are kept on one side of a split: relatives on both sides flatter every policy that reads sequences.
All policies play the same splits, so that their differences have smaller errors than they themselves.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack
from sklearn.linear_model import Ridge

from prefect_assay.analysis.results import DesignSummary, is_hit, objective_value
from prefect_assay.analysis.results.repeats import residues_of
from prefect_assay.analysis.selection.candidates import Floats, number
from prefect_assay.analysis.selection.choose import choose
from prefect_assay.analysis.selection.evidence import turn_better
from prefect_assay.analysis.selection.features import Columns, count_triplets, group_table, rank_columns
from prefect_assay.analysis.selection.history import History
from prefect_assay.analysis.selection.identity import edits, families
from prefect_assay.analysis.selection.targets import numbered
from prefect_assay.analysis.threads import use_one_thread
from prefect_assay.designs import pool_of
from prefect_assay.designs.candidate import Candidate
from prefect_assay.designs.selection import (
    Aim,
    SelectionPolicy,
    SelectionSettings,
)
from prefect_assay.errors import InputError

RIDGE: Final = "ridge"
FEWEST_EDITS: Final = "fewest edits"
BEST_SCORE: Final = "best single score"
_FEWEST: Final = 8
_REAL: Final = 2.0  # standard errors
ENOUGH_SPLITS: Final = 12  # independent ones: fewer cannot tell a difference from chance


@dataclass(frozen=True, slots=True)
class Plan:
    """How purchases are played.

    `warm`: the other half of the families is measured before. `by`: a column whose groups stay together in place of families;
    designs without one go by families. `others`: results on other targets are known, and no design of this one.
    """

    rounds: int = 3
    batch: int = 24
    splits: int = 20
    warm: bool = False
    by: str | None = None
    others: bool = False
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Played:
    """A policy on all splits: a row per split with what was found after the first and after the last purchase.

    `first` and `last` are hits, or the decades (degrees for melting temperatures) that the best value bought lies behind the best one
    of the pool; `families` counts those of the hits.
    """

    policy: str
    first: tuple[float, ...]
    last: tuple[float, ...]
    families: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The policy to take, the best of all others, and the mean difference after the last purchase with its standard error.

    The difference is negative where ridge, fewest edits, or a score that is known in hindsight alone, found more. `splits` counts the
    independent ones: not more than there are families or groups to split, and one if all purchases are from one pool.
    """

    policy: str
    beside: str
    difference: float
    error: float
    splits: int

    @property
    def real(self) -> bool:
        """Whether the difference is more than two standard errors of at least twelve independent splits; equal ones cannot tell."""
        return self.splits >= ENOUGH_SPLITS and abs(self.difference) > _REAL * self.error > 0


@dataclass(frozen=True, slots=True)
class Backtest:
    """What was played, and what came of it. `more_is_better` says it of the figures.

    `pool` and `hits` are means over the splits; `designs` and `designs_that_hit` count those of the pool's target in the table;
    `independent` is the number of splits that say something of their own.
    """

    played: tuple[Played, ...]
    pool: float
    hits: float
    families: int
    more_is_better: bool
    designs: int = 0
    designs_that_hit: int = 0
    independent: int = 0

    def verdict(self) -> Verdict:
        """The best policy that can be taken, beside the best of all others."""
        sign = 1 if self.more_is_better else -1
        order = sorted(self.played, key=lambda each: -sign * float(np.mean(each.last)))
        taken = next(each for each in order if each.policy in set(SelectionPolicy))
        beside = next(each for each in order if each is not taken)
        pairs = sign * (np.array(taken.last) - np.array(beside.last))
        return Verdict(
            taken.policy, beside.policy, float(pairs.mean()), standard_error(pairs), self.independent
        )


def standard_error(values: Sequence[float] | Floats) -> float:
    """Of a mean; NaN for a single value, which cannot tell."""
    return float(np.std(values, ddof=1) / len(values) ** 0.5) if len(values) > 1 else float("nan")


@use_one_thread()
def backtest(
    designs: Sequence[DesignSummary],
    settings: SelectionSettings,
    plan: Plan,
    told: Callable[[str], None] | None = None,
) -> Backtest:
    """Play all policies on a table of measured designs.

    Args:
        designs: with residues and outcomes; those of other targets than that of `settings` are history only.
        settings: objective, hit limit, aim, columns; the policy does not matter.
        plan: purchases and splits.
        told: called with a line before each policy.

    Raises:
        InputError: the table has too few designs, hits or families, or several targets of which none is named.
    """
    return _Game(designs, settings, plan).play(told or (lambda _: None))


Pick = Callable[[list[int], list[int], int, int], list[int]]
"""From positions that are known and free, a number to choose and the rounds left to positions."""


class _Game:
    def __init__(self, designs: Sequence[DesignSummary], settings: SelectionSettings, plan: Plan) -> None:
        self._settings, self._plan = settings, plan
        problem = settings.find_direction_problem()
        if problem and any(settings.score_column in design.attributes for design in designs):
            raise InputError(problem)
        self._controls: list[DesignSummary] = []  # known from the start
        kept, own = self._taken(designs)
        self._designs, self._own = kept, own
        self._hits = np.array([self._is_hit(design) is True for design in kept])
        self._value = turn_better(
            [objective_value(design, settings.objective) for design in kept], settings.objective
        )
        self._residues = [residues_of(design) for design in kept]
        self.families = np.full(len(kept), -1, dtype=np.int64)
        self.families[own] = families([self._residues[at] for at in own.tolist()])
        self._best = settings.aim is Aim.BEST

    def _is_hit(self, design: DesignSummary) -> bool | None:
        return is_hit(design, self._settings.objective, self._settings.hit_limit)

    def _taken(self, designs: Sequence[DesignSummary]) -> tuple[list[DesignSummary], NDArray[np.intp]]:
        """Designs with residues and an outcome, each once, under names of their own, and which are of the pool's target."""
        empty = pool_of([Candidate(name="none", sequence="A")])
        seen: set[tuple[int, str]] = set()
        kept: list[DesignSummary] = []
        own: list[int] = []
        targets, _ = numbered(empty, designs, self._settings)
        for design, target in zip(designs, targets, strict=True):
            key = (target, residues_of(design))
            if design.control and key[1] and (not target or self._plan.others):
                self._controls.append(design)
            if (
                not key[1]
                or key in seen
                or self._is_hit(design) is None
                or (target and not self._plan.others)
            ):
                continue
            seen.add(key)
            if target == 0:
                own.append(len(kept))
            kept.append(design.model_copy(update={"name": f"{design.name}#{len(kept)}"}))
        hits = sum(self._is_hit(kept[at]) is True for at in own)
        if len(own) < _FEWEST or not 0 < hits < len(own):
            raise InputError(
                f"{len(own)} designs with residues and an outcome, {hits} of them hits: purchases can be compared from {_FEWEST} designs "
                "on, of which some hit and some do not; give a larger table, a target or a hit limit"
            )
        return kept, np.array(own, dtype=np.intp)

    def play(self, told: Callable[[str], None]) -> Backtest:
        splits = list(self._splits())
        played = []
        for policy, pick in self._policies():
            told(f"{policy}: {len(splits)} splits")
            rows = [self._purchases(pick, pool, known) for pool, known in splits]
            first, last, found = zip(*rows, strict=True)
            played.append(Played(policy, first, last, found))
        hindsight = self._best_score(splits)
        sizes = [len(pool) for pool, _ in splits]
        return Backtest(
            tuple(played) + ((hindsight,) if hindsight else ()),
            float(np.mean(sizes)),
            float(np.mean([self._hits[pool].sum() for pool, _ in splits])),
            len(np.unique(self.families[self._own])),
            not self._best,
            len(self._own),
            int(self._hits[self._own].sum()),
            self._count_independent(len(splits)),
        )

    def _count_independent(self, splits: int) -> int:
        one_pool = self._plan.others and self._plan.by is None
        return 1 if one_pool else min(splits, len(np.unique(self._units())))

    def _splits(self) -> Iterator[tuple[list[int], list[int]]]:
        """Positions of the pool and of what is known."""
        others = np.setdiff1d(np.arange(len(self._designs)), self._own).tolist()
        if self._plan.others and self._plan.by is None:
            for number_ in range(self._plan.splits):
                # The order decides ties and what is random.
                chance = np.random.default_rng((self._plan.seed, number_))
                yield chance.permutation(self._own).tolist(), others
            return
        units = self._units()
        names = np.unique(units)
        if len(names) < 2:  # noqa: PLR2004 - a split has two sides
            raise InputError(
                "all designs are of one family: there is nothing to keep apart; with --others the whole table is the pool"
            )
        for number_ in range(self._plan.splits):
            chance = np.random.default_rng((self._plan.seed, number_))
            half = set(chance.permutation(names)[: len(names) // 2].tolist())
            side = np.array([unit in half for unit in units.tolist()])
            known = self._own[~side].tolist() if self._plan.warm else []
            yield self._own[side].tolist(), known + others

    def _units(self) -> NDArray[np.str_]:
        column, own = self._plan.by, self._own.tolist()
        cells = [self._designs[at].attributes.get(column, "") if column else "" for at in own]
        if column and not any(cells):
            raise InputError(f"no design has a cell in the column {column!r}")
        return np.array(
            [
                f"={cell}" if cell else f"family {self.families[at]}"
                for cell, at in zip(cells, own, strict=True)
            ]
        )

    def _policies(self) -> Iterator[tuple[str, Pick]]:
        yield SelectionPolicy.GP, self._selecting(SelectionPolicy.GP)
        yield RIDGE, self._ridge
        if (near := self._fewest_edits()) is not None:
            yield FEWEST_EDITS, _by(near)
        if self._settings.score_column is not None:
            yield SelectionPolicy.TOP_SCORE, self._selecting(SelectionPolicy.TOP_SCORE)
        yield SelectionPolicy.RANDOM, self._selecting(SelectionPolicy.RANDOM)

    def _selecting(self, policy: SelectionPolicy) -> Pick:
        """A policy of the product, called as a user calls it."""
        # Hits are counted, so hits are asked for.
        aim = {"aim": self._settings.aim or Aim.HITS}
        only = aim if policy is SelectionPolicy.GP else {"aim": None, "target": None, "hit_limit": None}
        update: Mapping[str, object] = {"policy": policy, **only}

        def pick(known: list[int], free: list[int], number_: int, left: int) -> list[int]:
            places = {self._designs[at].name: at for at in free}
            candidates = [self._candidate(at) for at in free]
            given = self._settings.model_copy(update={**update, "seed": len(known) + 1000 * free[0]})
            history = History((*self._controls, *(self._designs[at] for at in known)))
            found = choose(
                candidates, history, number_, given, price_cents=None, budget_cents=None, rounds_left=left
            )
            return [places[choice.candidate.name] for choice in found.choices]

        return pick

    def _candidate(self, at: int) -> Candidate:
        design = self._designs[at]
        columns = dict(design.attributes)
        if design.target and not any(title.casefold() == "target" for title in columns):
            columns["target"] = design.target
        return Candidate(name=design.name, sequence=self._residues[at], columns=columns)

    @cached_property
    def _rows(self) -> csr_array:
        """Triplets, groups and ranks of scores of each design."""
        attributes = [design.attributes for design in self._designs]
        columns = Columns.of(attributes, self._settings.method_column, self._settings.score_column)
        numbers = np.array([columns.numbers(row) for row in attributes]).reshape(len(attributes), -1)
        scores = rank_columns(numbers, np.zeros(len(attributes), dtype=np.int32))
        groups = group_table([columns.groups(row) for row in attributes])
        return csr_array(hstack([count_triplets(self._residues), groups, csr_array(scores)]))

    def _ridge(self, known: list[int], free: list[int], number_: int, left: int) -> list[int]:  # noqa: ARG002
        """Ridge regression on triplets, groups and scores, the best predictions first; at random while nothing is known."""
        if not known:
            order = np.random.default_rng((self._plan.seed, free[0])).permutation(len(free))
            return [free[at] for at in order[:number_].tolist()]
        worst = float(np.nanmin(self._value)) if self._best else 0.0
        values = np.nan_to_num(self._value, nan=worst) if self._best else self._hits.astype(float)
        model = Ridge(fit_intercept=False, solver="cholesky")
        predicted = model.fit(self._rows[known], values[known] - values[known].mean()).predict(
            self._rows[free]
        )
        return [free[at] for at in np.argsort(-predicted, kind="stable")[:number_].tolist()]

    def _fewest_edits(self) -> Floats | None:
        """Minus the edits of each design from the nearest control; None where the table has no control."""
        references = [residues_of(design) for design in self._controls]
        if not references:
            return None
        return np.array(
            [-min(edits(text, known) for known in references) for text in self._residues], dtype=float
        )

    def _best_score(self, splits: Sequence[tuple[list[int], list[int]]]) -> Played | None:
        """The column and direction that find most in hindsight: no one could have known."""
        rows = [self._designs[at].attributes for at in self._own.tolist()]
        columns = Columns.of(rows, self._settings.method_column, self._settings.score_column).scores
        best: Played | None = None
        for column in columns:
            scores = np.array([number(design.attributes.get(column, "")) for design in self._designs])
            for sign in (1, -1):
                order = np.nan_to_num(sign * scores, nan=-np.inf)

                pick = _by(order)
                found = [self._purchases(pick, pool, known) for pool, known in splits]
                first, last, kinds = zip(*found, strict=True)
                sense = -1 if self._best else 1
                if best is None or sense * float(np.mean(last)) > sense * float(np.mean(best.last)):
                    best = Played(
                        f"{BEST_SCORE} ({'highest' if sign > 0 else 'lowest'} {column})", first, last, kinds
                    )
        return best

    def _purchases(self, pick: Pick, pool: list[int], known: list[int]) -> tuple[float, float, float]:
        bought: list[int] = []
        found = []
        for left in reversed(range(self._plan.rounds)):
            free = [at for at in pool if at not in set(bought)]
            if free:
                bought += pick(known + bought, free, min(self._plan.batch, len(free)), left)
            found.append(self._figure(bought, pool))
        hits = [at for at in bought if self._hits[at]]
        return found[0], found[-1], float(len(np.unique(self.families[hits])))

    def _figure(self, bought: list[int], pool: list[int]) -> float:
        if not self._best:
            return float(self._hits[bought].sum())
        worst, best = np.nanmin(self._value[pool]), np.nanmax(self._value[pool])
        return float(best - np.nanmax([*self._value[bought].tolist(), worst]))


def _by(order: Floats) -> Pick:
    """The highest of fixed numbers first."""
    return lambda _known, free, count, _left: [
        free[at] for at in np.argsort(-order[free], kind="stable")[:count].tolist()
    ]
