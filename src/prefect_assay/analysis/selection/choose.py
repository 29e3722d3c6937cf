"""Choose the designs of the next round: what must not be bought again, what a budget pays for, and limits on monoculture."""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np

from prefect_assay.analysis.results import is_hit
from prefect_assay.analysis.results.repeats import residues_of
from prefect_assay.analysis.selection.candidates import (
    Candidates,
    best_of_duplicates,
    columns_of,
    with_direction,
)
from prefect_assay.analysis.selection.gp import GaussianProcessRanking
from prefect_assay.analysis.selection.history import History
from prefect_assay.analysis.selection.identity import Clusters
from prefect_assay.analysis.selection.ranking import Random, Ranking, TopScore
from prefect_assay.analysis.selection.targets import numbered
from prefect_assay.analysis.threads import use_one_thread
from prefect_assay.designs import pool_of
from prefect_assay.designs.candidate import METHOD, Candidate
from prefect_assay.designs.selection import (
    FATES,
    Choice,
    Fate,
    Selection,
    SelectionPolicy,
    SelectionSettings,
)
from prefect_assay.errors import InputError
from prefect_assay.service.assays import describe_objective
from prefect_assay.service.models.sequences import Pool
from prefect_assay.service.words import many

_PLACES: Final = {fate: place for place, fate in enumerate(FATES)}
_LISTED: Final = 5
_NEAR_COPIES: Final = 0.9  # identity within a family
_FAMILIES: Final = 3  # a batch is of more families than this, or of as many as there are
_FEWEST_OF_FAMILY: Final = 2


@use_one_thread()
def choose(
    pool: Pool | Iterable[Candidate],
    history: History,
    n: int,
    settings: SelectionSettings,
    *,
    price_cents: int | None,
    budget_cents: int | None,
    rounds_left: int | None,
) -> Selection:
    """See `selection.select`."""
    pool = pool if isinstance(pool, Pool) else pool_of(pool)
    settings, directed = with_direction(pool, settings)
    pool, duplicates = best_of_duplicates(pool, settings)
    affordable = _affordable(n, price_cents, budget_cents)
    controls = _controls(pool, settings)
    if len(controls) > affordable:
        raise InputError(
            f"there is room for {many(affordable, 'design')}, and {len(controls)} are controls, which are always bought; raise n or "
            "the budget, or mark fewer designs as controls"
        )
    candidates = columns_of(pool, settings)
    _refuse_idle_limits(candidates, history, settings)
    fates = np.full(len(pool), _PLACES[Fate.RANKED_LOWER], dtype=np.uint8)
    fates[controls] = _PLACES[Fate.CONTROL]
    targets, named = numbered(pool, history.designs, settings)
    if not settings.repeat_measured:
        _mark_measured(pool, history, targets, fates)
    free = fates == _PLACES[Fate.RANKED_LOWER]
    ranking = _ranking(candidates, free, history, settings, targets, rounds_left)
    if settings.policy is SelectionPolicy.TOP_SCORE:
        fates[free & np.isnan(ranking.scores)] = _PLACES[Fate.NO_SCORE]
    chosen, guarded = _walk(ranking, candidates, settings, affordable - len(controls), fates)
    return Selection(
        choices=tuple(_choices(pool, controls, chosen, ranking, price_cents)),
        policy=settings.policy,
        seed=settings.seed,
        pool_size=len(pool),
        fates=fates.tobytes(),
        scores=array("d", ranking.scores.tobytes()),
        notes=(
            *_read(pool),
            *history.notes,
            *directed,
            *duplicates,
            *named,
            *ranking.notes,
            *guarded,
            *_shortfall(n, affordable, len(controls) + len(chosen)),
        ),
    )


def _read(pool: Pool) -> Iterator[str]:
    """What was read of the pool in a special way, and what was left out of it."""
    yield from pool.notes
    yield from pool.report.doubts
    if pool.duplicates:
        count, rows = len(pool.duplicates), len(pool) + len(pool.duplicates)
        yield f"{count:,} of {rows:,} designs of the pool {'has' if count == 1 else 'have'} the residues of another one: left out"


def _affordable(n: int, price_cents: int | None, budget_cents: int | None) -> int:
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


def _controls(pool: Pool, settings: SelectionSettings) -> list[int]:
    """Positions of the designs that are always bought, in the order of the pool."""
    named = set(settings.controls)
    found = {at for at, name in enumerate(pool.names) if name in named} if named else set()
    if absent := named - {pool.names[at] for at in found}:
        listed = ", ".join(sorted(absent)[:_LISTED])
        raise InputError(f"{pool.source}: no design is called {listed}; name controls as in the pool")
    return sorted(found | pool.controls)


def _mark_measured(pool: Pool, history: History, targets: Sequence[int], fates: np.ndarray) -> None:
    """What was measured or ordered for the target of the pool; without any such result, for any target.

    A target that is called otherwise in the history than in the pool must not be a reason to buy designs again.
    """
    known = 0 in targets
    own = zip(history.designs, targets, strict=True)
    measured = {found for design, target in own if not (known and target) and (found := residues_of(design))}
    for at, residues in enumerate(pool.residues):
        if residues in measured and fates[at] != _PLACES[Fate.CONTROL]:
            fates[at] = _PLACES[Fate.MEASURED]


def _refuse_idle_limits(candidates: Candidates, history: History, settings: SelectionSettings) -> None:
    """InputError for a limit that could not keep any design out: nothing says what it is about."""
    source = candidates.pool.source
    for limit, given, known, what, column in (
        ("max_per_parent", settings.max_per_parent, candidates.parents, "parents", "parents"),
        (
            "max_per_method",
            settings.max_per_method,
            candidates.methods,
            "a method",
            settings.method_column or METHOD,
        ),
    ):
        if given is not None and not any(known):
            raise InputError(
                f"{source}: no candidate has {what}, so that the limit {limit} ({_option(limit)}) has no effect; add a column "
                f"{column!r}, or leave the limit out"
            )
    called = [design for design in history.designs if is_hit(design, settings.objective)]
    if (
        settings.hit_limit is not None
        and called
        and all(is_hit(design, settings.objective, settings.hit_limit) is None for design in called)
    ):
        raise InputError(
            f"the history has {many(len(called), 'hit')} and no {describe_objective(settings.objective).name} that a limit could be compared with, so that "
            f"hit_limit ({_option('hit_limit')}) has no effect; give a table with these values, or leave the limit out"
        )


def _option(setting: str) -> str:
    return f"--{setting.replace('_', '-')}"


def _ranking(
    candidates: Candidates,
    free: np.ndarray,
    history: History,
    settings: SelectionSettings,
    targets: Sequence[int],
    rounds_left: int | None,
) -> Ranking:
    match settings.policy:
        case SelectionPolicy.TOP_SCORE:
            return TopScore(candidates, free, settings)
        case SelectionPolicy.RANDOM:
            return Random(candidates, free, settings)
        case SelectionPolicy.GP:
            return GaussianProcessRanking(candidates, free, history, settings, targets, rounds_left)


def _walk(
    ranking: Ranking, candidates: Candidates, settings: SelectionSettings, places: int, fates: np.ndarray
) -> tuple[list[int], list[str]]:
    """Take what is offered until the places are filled, and note why others are passed over.

    What the guard of families keeps out is taken after all if places would stay empty.
    """
    chosen: list[int] = []
    limits = _Limits(candidates, settings, _of_one_family(places, ranking, settings))
    offers = ranking.offers()
    taken: bool | None = None
    while len(chosen) < places:
        try:
            at = offers.send(taken)  # type: ignore[arg-type]  # the first answer of a generator is None
        except StopIteration:
            break
        fate = limits.check(at)
        taken = fate is Fate.CHOSEN
        fates[at] = _PLACES[fate]
        if taken:
            chosen.append(at)
    kept_out = 0
    for at in limits.guarded:
        if len(chosen) == places:
            kept_out += 1
            continue
        fate = limits.check(at, guarding=False)
        fates[at] = _PLACES[fate]
        if fate is Fate.CHOSEN:
            chosen.append(at)
    if not kept_out:
        return chosen, []
    note = (
        f"{kept_out} candidates were passed over because {limits.most_of_family} of their family of near copies are chosen; "
        "--one-family lets a batch be of one family"
    )
    return chosen, [note]


def _of_one_family(places: int, ranking: Ranking, settings: SelectionSettings) -> int | None:
    """How many of one family of near copies a batch may have, if the user sets no limit and they are not all of one."""
    guards = isinstance(ranking, GaussianProcessRanking) and not ranking.one_family
    if not guards or settings.one_family or settings.identity is not None:
        return None
    return max(_FEWEST_OF_FAMILY, -(-places // _FAMILIES))


class _Limits:
    """What has been chosen per method, parent and cluster."""

    def __init__(
        self, candidates: Candidates, settings: SelectionSettings, most_of_family: int | None
    ) -> None:
        self._candidates = candidates
        self.most_of_family = most_of_family
        self.guarded: list[int] = []  # candidates that only the guard of families keeps out
        self._settings = settings
        self._methods: Counter[str] = Counter()
        self._parents: Counter[str] = Counter()
        self._clusters = None
        if settings.identity is not None:
            self._clusters = Clusters(settings.identity, settings.max_per_cluster or 1)
        elif most_of_family is not None:
            self._clusters = Clusters(_NEAR_COPIES, most_of_family)

    def check(self, at: int, *, guarding: bool = True) -> Fate:
        """CHOSEN if no limit forbids the candidate, which then counts; else the first limit that does.

        `guarding`: the guard of families counts as a limit.
        """
        most = self._settings
        method, parents = self._candidates.methods[at], self._candidates.parents[at]
        if most.max_per_method is not None and self._methods[method] >= most.max_per_method:
            return Fate.METHOD_LIMIT
        if most.max_per_parent is not None and any(
            self._parents[parent] >= most.max_per_parent for parent in parents
        ):
            return Fate.PARENT_LIMIT
        if self._clusters is not None and guarding:
            residues = self._candidates.pool.residues[at]
            cluster = self._clusters.find(residues)
            if self._clusters.full(cluster):
                if self.most_of_family is not None:
                    self.guarded.append(at)
                return Fate.CLUSTER_LIMIT
            self._clusters.add(residues, cluster)
        self._methods[method] += 1
        self._parents.update(parents)
        return Fate.CHOSEN


def _choices(
    pool: Pool, controls: list[int], chosen: list[int], ranking: Ranking, price_cents: int | None
) -> Iterator[Choice]:
    for rank, at in enumerate([*controls, *chosen], start=1):
        control = rank <= len(controls)
        candidate = Candidate.of(pool[at])
        yield Choice(
            candidate=candidate.model_copy(update={"control": True}) if control else candidate,
            rank=rank,
            score=None if control else float(ranking.scores[at]),
            price_cents=price_cents,
            reason="control: bought in every round" if control else ranking.reason(at),
        )


def _shortfall(n: int, affordable: int, chosen: int) -> list[str]:
    notes = []
    if affordable < n:
        notes.append(f"the budget pays for {affordable} of {many(n, 'design')}")
    if chosen < affordable:
        notes.append(
            f"only {chosen} of {affordable} places are filled: the pool and the limits allow no more"
        )
    return notes
