"""A pool as columns: score, method and parents of each candidate, and a number that breaks ties by the seed."""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from prefect_assay.designs.candidate import method_of, parents_of
from prefect_assay.designs.scores import read_score, score_direction
from prefect_assay.designs.selection import SelectionSettings
from prefect_assay.errors import InputError
from prefect_assay.service.models.sequences import Pool

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
_NO_METHOD: Final = ""


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Columns of a pool, by position. `scores` are higher for better candidates, NaN where there is no number.

    `ties` is a random permutation that depends on the seed, the names and the residues, but not on the order of the pool.
    """

    pool: Pool
    scores: Floats
    methods: Sequence[str]
    parents: Sequence[tuple[str, ...]]
    ties: NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.pool)

    def sort_by(self, values: Floats) -> list[int]:
        """Positions with a value, highest first; equal values in the order of `ties`."""
        order: list[int] = np.lexsort((self.ties, -values)).tolist()
        return order[: int(np.isfinite(values).sum())]


def resolve_direction(pool: Pool, settings: SelectionSettings) -> tuple[SelectionSettings, list[str]]:
    """The settings with the direction of the score, and a note where lower is better or the usual direction is reversed.

    Raises:
        InputError: the pool has no such column, or neither its title nor the settings say which direction is better.
    """
    column, chosen = settings.score_column, settings.higher_is_better
    if column is None:
        return settings, []
    if problem := settings.find_direction_problem(pool.report.producer):
        if not any(column in pool.unpack(extra) for extra in pool.extras if extra):
            raise _describe_missing_column(pool, column, "scores with a number in any row")
        raise InputError(f"{pool.source}: {problem}")
    usual = score_direction(column, pool.report.producer)
    better = usual if chosen is None else chosen
    words = "higher" if better else "lower"
    notes = []
    if chosen is None and not better:
        notes = [f"{column}: lower is better"]
    elif chosen is not None and usual is not None and chosen is not usual:
        notes = [f"{column}: {words} is better, as asked for; usually it is the other way round"]
    return settings.model_copy(update={"higher_is_better": better}), notes


def keep_best_duplicates(pool: Pool, settings: SelectionSettings) -> tuple[Pool, list[str]]:
    """The pool in which of designs with equal residues the one with the best score counts, with its name and columns."""
    column = settings.score_column
    if column is None or not pool.duplicates:
        return pool, []
    sign = 1 if settings.higher_is_better else -1

    def read_extra(extra: str) -> float:
        value = read_number(pool.unpack(extra).get(column, "")) if extra else math.nan
        return -math.inf if math.isnan(value) else sign * value

    best = {kept: kept for _, kept in pool.duplicates}  # by the name that is kept
    scores = {name: read_extra(pool.extras[index]) for index, name in enumerate(pool.names) if name in best}
    for (name, kept), extra in zip(pool.duplicates, pool.duplicate_extras, strict=True):
        scores[name] = read_extra(extra)
        if scores[name] > scores[best[kept]]:
            best[kept] = name
    better = {kept: name for kept, name in best.items() if name != kept}
    if not better:
        return pool, []
    kept, name = next(iter(better.items()))
    note = (
        f"{len(better)} of {len(pool):,} designs {'has' if len(better) == 1 else 'have'} a better {column} in another row with the same residues, which counts: "
        f"{name!r} in place of {kept!r}{', and so on' if len(better) > 1 else ''}"
    )
    return pool.keeping(frozenset(better.values())), [note]


def read_candidates(pool: Pool, settings: SelectionSettings) -> Candidates:
    """Read the columns that the settings name.

    Raises:
        InputError: the pool has no such column, or no number in the column of scores.
    """
    score, method = settings.score_column, settings.method_column
    scores = np.full(len(pool), np.nan)
    methods: list[str] = [_NO_METHOD] * len(pool)
    parents: list[tuple[str, ...]] = [()] * len(pool)
    shared: dict[str, str] = {}  # a million candidates have few methods
    sign = 1 if settings.higher_is_better else -1
    for place, extra in enumerate(pool.extras):
        if not extra:
            continue
        columns = pool.unpack(extra)
        if score is not None and score in columns:
            scores[place] = sign * read_number(columns[score])
        if (cell := method_of(columns, method)) is not None:
            methods[place] = shared.setdefault(cell, cell)
        parents[place] = parents_of(columns)
    if score is not None and not np.isfinite(scores).any():
        raise _describe_missing_column(pool, score, "scores with a number in any row")
    if method is not None and not shared:
        raise _describe_missing_column(pool, method, "methods")
    return Candidates(pool, scores, methods, parents, _hash_ties(pool, settings.seed))


def read_number(cell: str) -> float:
    """A finite number, or NaN for everything else."""
    value = read_score(cell)
    return math.nan if value is None else value


def _describe_missing_column(pool: Pool, column: str, what: str) -> InputError:
    titles: dict[str, None] = {}
    for extra in pool.extras[:1000]:
        titles.update(dict.fromkeys(pool.unpack(extra) if extra else {}))
    listed = ", ".join(title[:40] for title in list(titles)[:20]) or "none"
    return InputError(f"{pool.source}: no column {column!r} of {what}; its columns are: {listed}")


def _hash_ties(pool: Pool, seed: int) -> NDArray[np.uint64]:
    """A hash of seed, name and residues: the same in every process, on every machine, in any order of the pool."""
    key, size = f"{seed}".encode(), 8
    digests = [
        hashlib.blake2b(
            f"{name}\n{residues}".encode("utf-8", "surrogatepass"), digest_size=size, key=key
        ).digest()
        for name, residues in zip(pool.names, pool.residues, strict=True)
    ]
    return np.frombuffer(b"".join(digests), dtype="<u8")
