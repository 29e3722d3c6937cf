"""Choose the designs of the next round: what must not be bought again, what a budget pays for, and limits on monoculture."""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from prefect_assay.analysis.results import DesignSummary, Outcome, is_hit
from prefect_assay.analysis.results.design import find_objective
from prefect_assay.analysis.results.repeats import get_residues
from prefect_assay.analysis.selection.candidates import (
    Candidates,
    keep_best_duplicates,
    read_candidates,
    resolve_direction,
)
from prefect_assay.analysis.selection.gp import GaussianProcessRanking
from prefect_assay.analysis.selection.history import History
from prefect_assay.analysis.selection.identity import Clusters
from prefect_assay.analysis.selection.ranking import Ranking, rank_at_random, rank_by_score
from prefect_assay.analysis.selection.targets import take_results_of_target
from prefect_assay.analysis.threads import use_one_thread
from prefect_assay.designs.candidate import METHOD, Candidate
from prefect_assay.designs.proposed import pool_of
from prefect_assay.designs.selection import (
    FATES,
    Choice,
    Fate,
    Selection,
    SelectionPolicy,
    SelectionSettings,
)
from prefect_assay.errors import InputError
from prefect_assay.service.assays import Objective, describe_objective, find_assay_type
from prefect_assay.service.models.sequences import Pool
from prefect_assay.service.words import many

_PLACES: Final = {fate: place for place, fate in enumerate(FATES)}
_LISTED: Final = 5
_NEAR_COPIES: Final = 0.9  # identity within a family
_FAMILIES: Final = 3  # a batch is of more families than this, or of as many as there are
_FEWEST_OF_FAMILY: Final = 2


@use_one_thread()
def choose_designs(
    pool: Pool | Iterable[Candidate],
    history: History,
    n: int,
    settings: SelectionSettings,
    *,
    price_cents: int | None,
    budget_cents: int | None,
    rounds_left: int | None,
) -> Selection:
    """See `selection.select_designs`."""
    pool = pool if isinstance(pool, Pool) else pool_of(pool)
    settings, direction_notes = resolve_direction(pool, settings)
    pool, duplicate_notes = keep_best_duplicates(pool, settings)
    affordable = _count_affordable(n, price_cents, budget_cents)
    controls = _list_controls(pool, settings)
    if len(controls) > affordable:
        raise InputError(
            f"there is room for {many(affordable, 'design')}, and {len(controls)} are controls, which are always bought; raise n or "
            "the budget, or mark fewer designs as controls"
        )
    candidates = read_candidates(pool, settings)
    _refuse_idle_limits(candidates, history, settings)
    results, is_named, target_notes = take_results_of_target(pool, history.designs, settings)
    fates = np.full(len(pool), _PLACES[Fate.RANKED_LOWER], dtype=np.uint8)
    # A target that is called otherwise in the history than in the pool must not be a reason to buy designs again.
    bought = results if is_named else history.designs
    measured = {get_residues(design) for design in bought if _is_about(design, settings.objective)}
    is_measured = np.array([residues in measured for residues in pool.residues], dtype=np.bool_)
    fates[is_measured] = _PLACES[Fate.MEASURED]
    elsewhere = set(map(get_residues, bought)) - measured
    target_notes += _describe_other_assays(sum(residues in elsewhere for residues in pool.residues), settings)
    fates[controls] = _PLACES[Fate.CONTROL]
    free = fates == _PLACES[Fate.RANKED_LOWER]
    ranking: Ranking
    match settings.policy:
        case SelectionPolicy.TOP_SCORE:
            ranking = rank_by_score(candidates, free, settings)
            fates[free & np.isnan(ranking.scores)] = _PLACES[Fate.NO_SCORE]
        case SelectionPolicy.RANDOM:
            ranking = rank_at_random(candidates, free, settings)
        case SelectionPolicy.GP:
            ranking = GaussianProcessRanking(candidates, free, results, settings, rounds_left)
    chosen, family_notes = _fill_places(ranking, candidates, settings, affordable - len(controls), fates)
    return Selection(
        choices=tuple(_make_choices(pool, controls, chosen, ranking, price_cents)),
        policy=settings.policy,
        seed=settings.seed,
        pool_size=len(pool),
        fates=fates.tobytes(),
        scores=array("d", ranking.scores.tobytes()),
        notes=(
            *_describe_pool(pool),
            *history.notes,
            *direction_notes,
            *duplicate_notes,
            *target_notes,
            *ranking.notes,
            *family_notes,
            *_describe_shortfall(n, affordable, len(controls) + len(chosen)),
        ),
    )


def _is_about(design: DesignSummary, objective: Objective) -> bool:
    """Whether a design was measured, or ordered, for an objective. One that does not express fails in every assay."""
    quantity, kind = describe_objective(objective).quantity, find_assay_type(design.result_type)
    return (
        design.outcome is Outcome.NO_EXPRESSION
        or find_objective(design) in (objective, None)
        or getattr(design, quantity.column) is not None
        or (kind is not None and quantity in kind.columns)
    )


def _describe_other_assays(count: int, settings: SelectionSettings) -> Iterator[str]:
    if count:
        yield (
            f"{many(count, 'design')} of the pool {'has' if count == 1 else 'have'} results or orders of other assays only, and may be bought "
            f"for {settings.objective}; if another value is to improve, name it with --objective"
        )


def _describe_pool(pool: Pool) -> Iterator[str]:
    """What was read of the pool in a special way, and what was left out of it."""
    yield from pool.notes
    yield from pool.report.doubts
    if pool.duplicates:
        count, rows = len(pool.duplicates), len(pool) + len(pool.duplicates)
        yield f"{count:,} of {rows:,} designs of the pool {'has' if count == 1 else 'have'} the residues of another one: left out"


def _count_affordable(n: int, price_cents: int | None, budget_cents: int | None) -> int:
    if n < 1:
        raise InputError(f"n is {n}; at least one design must be asked for")
    if price_cents is not None and price_cents < 0:
        raise InputError(f"the price per design is {price_cents} cents; it cannot be negative")
    if budget_cents is None:
        return n
    if price_cents is None:
        raise InputError("a budget needs the price per design; give it, or leave out the budget")
    affordable = min(n, budget_cents // price_cents) if price_cents else n
    if affordable < 1:
        raise InputError(
            f"the budget of {budget_cents} cents does not pay for one design of {price_cents} cents; raise the budget"
        )
    return affordable


def _list_controls(pool: Pool, settings: SelectionSettings) -> list[int]:
    """Positions of the designs that are always bought, in the order of the pool."""
    if absent := set(settings.controls).difference(pool.names if settings.controls else ()):
        listed = ", ".join(sorted(absent)[:_LISTED])
        raise InputError(f"{pool.source}: no design is called {listed}; name controls as in the pool")
    named = set(settings.controls)
    return sorted(pool.controls.union(place for place, name in enumerate(pool.names) if name in named))


def _refuse_idle_limits(candidates: Candidates, history: History, settings: SelectionSettings) -> None:
    """InputError for a limit that could not keep any design out: nothing says what it is about."""
    method_column = settings.method_column or METHOD
    for limit, values, what, column in (
        ("max_per_parent", candidates.parents, "parents", "parents"),
        ("max_per_method", candidates.methods, "a method", method_column),
    ):
        if getattr(settings, limit) is not None and not any(values):
            raise InputError(
                f"{candidates.pool.source}: no candidate has {what}, so that the limit {limit} ({_name_option(limit)}) has no effect; "
                f"add a column {column!r}, or leave the limit out"
            )
    hits = [design for design in history.designs if is_hit(design, settings.objective)]
    limited = (is_hit(design, settings.objective, settings.hit_limit) for design in hits)
    if settings.hit_limit is not None and hits and all(hit is None for hit in limited):
        raise InputError(
            f"the history has {many(len(hits), 'hit')} and no {describe_objective(settings.objective).name} that a limit could be compared with, so that "
            f"hit_limit ({_name_option('hit_limit')}) has no effect; give a table with these values, or leave the limit out"
        )


def _name_option(setting: str) -> str:
    return f"--{setting.replace('_', '-')}"


def _fill_places(
    ranking: Ranking, candidates: Candidates, settings: SelectionSettings, places: int, fates: np.ndarray
) -> tuple[list[int], list[str]]:
    """Take what is offered until the places are filled, and note why others are passed over.

    What the guard of families keeps out is taken after all if places would stay empty.
    """
    chosen: list[int] = []
    limits = _Limits(candidates, settings)
    is_guarded = not ranking.is_of_one_family and not settings.one_family and settings.identity is None
    most_of_family = max(_FEWEST_OF_FAMILY, -(-places // _FAMILIES))
    families = Clusters(_NEAR_COPIES, most_of_family) if is_guarded else None
    kept_out: list[int] = []  # by the guard of families alone
    offers = ranking.offer()
    is_taken: bool | None = None
    while len(chosen) < places:
        try:
            place = offers.send(is_taken)
        except StopIteration:
            break
        fate = limits.find_fate(place)
        residues = candidates.pool.residues[place]
        if fate is Fate.CHOSEN and families is not None:
            family = families.find_cluster(residues)
            if families.is_full(family):
                kept_out.append(place)
                fate = Fate.CLUSTER_LIMIT
            else:
                families.add(residues, family)
        is_taken = fate is Fate.CHOSEN
        fates[place] = _PLACES[fate]
        if is_taken:
            limits.add(place)
            chosen.append(place)
    while kept_out and len(chosen) < places:
        place = kept_out.pop(0)
        fate = limits.find_fate(place)
        fates[place] = _PLACES[fate]
        if fate is Fate.CHOSEN:
            limits.add(place)
            chosen.append(place)
    if not kept_out:
        return chosen, []
    note = (
        f"{len(kept_out)} candidates were passed over because {most_of_family} of their family of near copies are chosen; "
        "--one-family lets a batch be of one family"
    )
    return chosen, [note]


@dataclass
class _Limits:
    """What has been chosen per method, parent and cluster."""

    candidates: Candidates
    settings: SelectionSettings
    methods: Counter[str] = field(default_factory=Counter)
    parents: Counter[str] = field(default_factory=Counter)
    clusters: Clusters | None = field(init=False)

    def __post_init__(self) -> None:
        identity, size = self.settings.identity, self.settings.max_per_cluster or 1
        self.clusters = None if identity is None else Clusters(identity, size)

    def find_fate(self, place: int) -> Fate:
        """CHOSEN if no limit forbids the candidate; else the first limit that does."""
        of_method, of_parent = self.settings.max_per_method, self.settings.max_per_parent
        if of_method is not None and self.methods[self.candidates.methods[place]] >= of_method:
            return Fate.METHOD_LIMIT
        if of_parent is not None and any(
            self.parents[parent] >= of_parent for parent in self.candidates.parents[place]
        ):
            return Fate.PARENT_LIMIT
        if self.clusters is not None:
            cluster = self.clusters.find_cluster(self.candidates.pool.residues[place])
            if self.clusters.is_full(cluster):
                return Fate.CLUSTER_LIMIT
        return Fate.CHOSEN

    def add(self, place: int) -> None:
        """Count a candidate that was chosen."""
        self.methods[self.candidates.methods[place]] += 1
        self.parents.update(self.candidates.parents[place])
        if self.clusters is not None:
            residues = self.candidates.pool.residues[place]
            self.clusters.add(residues, self.clusters.find_cluster(residues))


def _make_choices(
    pool: Pool, controls: Sequence[int], chosen: Sequence[int], ranking: Ranking, price_cents: int | None
) -> Iterator[Choice]:
    for rank, place in enumerate([*controls, *chosen], start=1):
        is_control = rank <= len(controls)
        candidate = Candidate.of(pool[place])
        yield Choice(
            candidate=candidate.model_copy(update={"control": True}) if is_control else candidate,
            rank=rank,
            score=None if is_control else float(ranking.scores[place]),
            price_cents=price_cents,
            reason="control: bought in every round" if is_control else ranking.explain(place),
        )


def _describe_shortfall(n: int, affordable: int, chosen: int) -> Iterator[str]:
    if affordable < n:
        yield f"the budget pays for {affordable} of {many(n, 'design')}"
    if chosen < affordable:
        yield f"only {chosen} of {affordable} places are filled: the pool and the limits allow no more"
