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
from scipy.stats import sem
from sklearn.linear_model import Ridge

from prefect_assay.analysis.results import DesignSummary, get_objective_value, is_hit
from prefect_assay.analysis.results.repeats import get_residues, join_repeats
from prefect_assay.analysis.selection.candidates import Floats, read_number
from prefect_assay.analysis.selection.choose import choose_designs
from prefect_assay.analysis.selection.evidence import orient_values
from prefect_assay.analysis.selection.features import Columns, count_triplets
from prefect_assay.analysis.selection.history import History
from prefect_assay.analysis.selection.identity import count_edits, number_families
from prefect_assay.analysis.selection.targets import take_results_of_target
from prefect_assay.analysis.threads import use_one_thread
from prefect_assay.designs.candidate import Candidate
from prefect_assay.designs.proposed import pool_of
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
    designs without one go by families.
    """

    rounds: int = 3
    batch: int = 24
    splits: int = 20
    warm: bool = False
    by: str | None = None
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
    independent ones: not more than there are families or groups to split.
    """

    policy: str
    beside: str
    difference: float
    error: float
    splits: int

    @property
    def is_real(self) -> bool:
        """Whether the difference is more than two standard errors of at least twelve independent splits; equal ones cannot tell."""
        return self.splits >= ENOUGH_SPLITS and abs(self.difference) > _REAL * self.error > 0


@dataclass(frozen=True, slots=True)
class Backtest:
    """What was played, and what came of it. `more_is_better` says it of the figures.

    `pool` and `hits` are means over the splits; `designs` and `designs_that_hit` count those of the pool's target in the table;
    `independent` is the number of splits that say something of their own, `left_out` that of splits whose pool has no value to find.
    """

    played: tuple[Played, ...]
    pool: float
    hits: float
    families: int
    more_is_better: bool
    designs: int = 0
    designs_that_hit: int = 0
    independent: int = 0
    left_out: int = 0

    def give_verdict(self) -> Verdict:
        """The best policy that can be taken, next to the best of all others."""
        sign = 1 if self.more_is_better else -1
        order = sorted(self.played, key=lambda played: -sign * float(np.mean(played.last)))
        taken = next(played for played in order if played.policy in set(SelectionPolicy))
        beside = next(played for played in order if played is not taken)
        pairs = sign * (np.array(taken.last) - np.array(beside.last))
        error = compute_standard_error(pairs)
        return Verdict(taken.policy, beside.policy, float(pairs.mean()), error, self.independent)


def compute_standard_error(values: Sequence[float] | Floats) -> float:
    """Of a mean; NaN for a single value, which cannot tell."""
    return float(sem(values)) if len(values) > 1 else float("nan")


@use_one_thread()
def play_purchases(
    designs: Sequence[DesignSummary],
    settings: SelectionSettings,
    plan: Plan,
    tell: Callable[[str], None] | None = None,
) -> Backtest:
    """Play all policies on a table of measured designs.

    Args:
        designs: with residues and outcomes; those of other targets than that of `settings` do not count.
        settings: objective, hit limit, aim, columns; the policy does not matter.
        plan: purchases and splits.
        tell: called with a line before each policy.

    Raises:
        InputError: the table has too few designs, hits or families, or several targets of which none is named.
    """
    return _Game(designs, settings, plan).play(tell or (lambda _: None))


Split = tuple[list[int], list[int]]
"""Positions of the pool, and of what is known."""
Pick = Callable[[list[int], list[int], int, int], list[int]]
"""From positions that are known and free, a number to choose and the rounds left to positions."""


class _Game:
    def __init__(self, designs: Sequence[DesignSummary], settings: SelectionSettings, plan: Plan) -> None:
        self._settings, self._plan = settings, plan
        problem = settings.find_direction_problem()
        if problem and any(settings.score_column in design.attributes for design in designs):
            raise InputError(problem)
        any_pool = pool_of([Candidate(name="none", sequence="A")])
        results, _, _ = take_results_of_target(any_pool, designs, settings)
        with_residues = [design for design in results if get_residues(design)]
        self._controls = [design for design in with_residues if design.control]  # known from the start
        once = join_repeats((design for design in with_residues if not design.control), settings.objective)
        by_residues = {get_residues(design): design for design in once if self._is_hit(design) is not None}
        self._residues = [*by_residues]
        self._designs = [
            design.model_copy(update={"name": f"{design.name}#{number}"})
            for number, design in enumerate(by_residues.values())
        ]
        self._hits = np.array([self._is_hit(design) for design in self._designs], dtype=np.bool_)
        hits, count = int(self._hits.sum()), len(self._designs)
        if count < _FEWEST or not 0 < hits < count:
            raise InputError(
                f"{count} designs with residues and an outcome, {hits} of them hits: purchases can be compared from {_FEWEST} designs "
                "on, of which some hit and some do not; give a larger table, a target or a hit limit"
            )
        values = [get_objective_value(design, settings.objective) for design in self._designs]
        self._values = orient_values(values, settings.objective)
        self._families = number_families(self._residues)
        self._is_for_best = settings.aim is Aim.BEST
        rows = [design.attributes for design in self._designs]
        self._columns = Columns.find(rows, settings.method_column, settings.score_column)

    def _is_hit(self, design: DesignSummary) -> bool | None:
        return is_hit(design, self._settings.objective, self._settings.hit_limit)

    def play(self, tell: Callable[[str], None]) -> Backtest:
        splits = [split for split in self._make_splits() if self._has_success(split[0])]
        if not splits:
            raise InputError(
                "no split has a value among the designs that can be bought, so that the best one cannot be found; give a table with more "
                "values, or the aim hits"
            )
        played = []
        for policy, pick in self._list_policies():
            tell(f"{policy}: {len(splits)} splits")
            played.append(self._play_policy(policy, pick, splits))
        if hindsight := self._play_best_score(splits):
            played.append(hindsight)
        return Backtest(
            tuple(played),
            float(np.mean([len(pool) for pool, _ in splits])),
            float(np.mean([self._hits[pool].sum() for pool, _ in splits])),
            len(np.unique(self._families)),
            not self._is_for_best,
            len(self._designs),
            int(self._hits.sum()),
            min(len(splits), len(np.unique(self._list_units()))),
            self._plan.splits - len(splits),
        )

    def _make_splits(self) -> Iterator[Split]:
        units = self._list_units()
        names = np.unique(units)
        if len(names) < 2:  # noqa: PLR2004 - a split has two sides
            raise InputError(
                "all designs are of one family, and families are kept on one side of a split; name a column of groups with --by"
            )
        for number in range(self._plan.splits):
            chance = np.random.default_rng((self._plan.seed, number))
            is_in_pool = np.isin(units, chance.permutation(names)[: len(names) // 2])
            known = np.flatnonzero(~is_in_pool).tolist() if self._plan.warm else []
            yield np.flatnonzero(is_in_pool).tolist(), known

    def _list_units(self) -> NDArray[np.str_]:
        """What stays on one side of a split, by design."""
        column = self._plan.by
        cells = [design.attributes.get(column, "") if column else "" for design in self._designs]
        if column and not any(cells):
            raise InputError(f"no design has a cell in the column {column!r}")
        pairs = zip(cells, self._families.tolist(), strict=True)
        return np.array([f"={cell}" if cell else f"family {family}" for cell, family in pairs])

    def _list_policies(self) -> Iterator[tuple[str, Pick]]:
        yield SelectionPolicy.GP, self._make_picker(SelectionPolicy.GP)
        yield RIDGE, self._pick_by_ridge
        if references := [get_residues(design) for design in self._controls]:
            edits = [-min(count_edits(text, known) for known in references) for text in self._residues]
            yield FEWEST_EDITS, _pick_by(np.array(edits, dtype=np.float64))
        if self._settings.score_column is not None:
            yield SelectionPolicy.TOP_SCORE, self._make_picker(SelectionPolicy.TOP_SCORE)
        yield SelectionPolicy.RANDOM, self._make_picker(SelectionPolicy.RANDOM)

    def _make_picker(self, policy: SelectionPolicy) -> Pick:
        """A policy of the product, called as a user calls it."""
        # Hits are counted, so hits are asked for. The target is known: the results are only its own.
        learned = {"aim": self._settings.aim or Aim.HITS} if policy is SelectionPolicy.GP else {}
        idle = {"aim": None, "target": None} | ({} if learned else {"hit_limit": None})
        update: Mapping[str, object] = {"policy": policy, **idle, **learned}

        def pick(known: list[int], free: list[int], count: int, left: int) -> list[int]:
            places = {self._designs[place].name: place for place in free}
            pool = [
                Candidate(
                    name=self._designs[place].name,
                    sequence=self._residues[place],
                    columns=self._designs[place].attributes,
                )
                for place in free
            ]
            settings = self._settings.model_copy(update={**update, "seed": len(known) + 1000 * free[0]})
            history = History((*self._controls, *(self._designs[place] for place in known)))
            selection = choose_designs(
                pool, history, count, settings, price_cents=None, budget_cents=None, rounds_left=left
            )
            return [places[choice.candidate.name] for choice in selection.choices]

        return pick

    @cached_property
    def _ridge_features(self) -> csr_array:
        """Triplets, groups and ranks of scores of each design."""
        attributes = [design.attributes for design in self._designs]
        scores = csr_array(self._columns.rank_scores(attributes, len(attributes)))
        groups = self._columns.tabulate_groups(attributes, len(attributes))
        return csr_array(hstack([count_triplets(self._residues), groups, scores]))

    def _pick_by_ridge(self, known: list[int], free: list[int], count: int, _left: int) -> list[int]:
        """Ridge regression on triplets, groups and scores, the best predictions first; at random while nothing is known."""
        if not known:
            order = np.random.default_rng((self._plan.seed, free[0])).permutation(free)
            return [int(place) for place in order[:count]]
        values = self._hits.astype(float)
        if self._is_for_best:
            values = np.nan_to_num(self._values, nan=float(np.nanmin(self._values)))
        model = Ridge(fit_intercept=False, solver="cholesky")
        model.fit(self._ridge_features[known], values[known] - values[known].mean())
        order = np.argsort(-model.predict(self._ridge_features[free]), kind="stable")
        return [free[place] for place in order[:count].tolist()]

    def _play_best_score(self, splits: Sequence[Split]) -> Played | None:
        """The column and direction that find most in hindsight: no one could have known."""
        played = []
        for column in self._columns.scores:
            scores = np.array([read_number(design.attributes.get(column, "")) for design in self._designs])
            for sign, word in ((1, "highest"), (-1, "lowest")):
                pick = _pick_by(np.nan_to_num(sign * scores, nan=-np.inf))
                played.append(self._play_policy(f"{BEST_SCORE} ({word} {column})", pick, splits))
        sense = 1 if self._is_for_best else -1
        return min(played, key=lambda of_score: sense * float(np.mean(of_score.last)), default=None)

    def _play_policy(self, policy: str, pick: Pick, splits: Sequence[Split]) -> Played:
        rows = [self._play_rounds(pick, pool, known) for pool, known in splits]
        first, last, families = zip(*rows, strict=True)
        return Played(policy, first, last, families)

    def _play_rounds(self, pick: Pick, pool: list[int], known: list[int]) -> tuple[float, float, float]:
        """Buy round by round from a pool; success after the first and the last round, and the families of the hits."""
        bought: list[int] = []
        figures = []
        for left in reversed(range(self._plan.rounds)):
            free = [place for place in pool if place not in set(bought)]
            if free:
                bought += pick(known + bought, free, min(self._plan.batch, len(free)), left)
            figures.append(self._measure_success(bought, pool))
        hits = [place for place in bought if self._hits[place]]
        return figures[0], figures[-1], float(len(np.unique(self._families[hits])))

    def _has_success(self, pool: list[int]) -> bool:
        return not self._is_for_best or bool(np.isfinite(self._values[pool]).any())

    def _measure_success(self, bought: list[int], pool: list[int]) -> float:
        if not self._is_for_best:
            return float(self._hits[bought].sum())
        worst, best = np.nanmin(self._values[pool]), np.nanmax(self._values[pool])
        return float(best - np.nanmax([*self._values[bought].tolist(), worst]))


def _pick_by(order: Floats) -> Pick:
    """The highest of fixed numbers first."""
    return lambda _known, free, count, _left: [
        free[place] for place in np.argsort(-order[free], kind="stable")[:count].tolist()
    ]
