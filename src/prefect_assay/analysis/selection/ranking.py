"""The order in which candidates are offered: what all policies share, and the two that need no history."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from prefect_assay.analysis.selection.candidates import Candidates, Floats, Mask
from prefect_assay.designs.selection import SelectionSettings
from prefect_assay.errors import InputError

Offers = Generator[int, bool | None, None]
"""Positions in the order of preference; the answer to each is whether it was chosen, and None begins."""
_DIGITS: Final = 4


class Ranking(Protocol):
    """One policy at work. `scores` are by position, NaN for candidates that are not offered.

    `is_of_one_family`: families of near copies are not a reason to pass a candidate over.
    """

    @property
    def scores(self) -> Floats: ...  # noqa: D102

    @property
    def notes(self) -> Sequence[str]: ...  # noqa: D102

    @property
    def is_of_one_family(self) -> bool: ...  # noqa: D102

    def offer(self) -> Offers:
        """Offer each candidate at most once."""
        ...

    def explain(self, place: int, /) -> str:
        """Why this candidate was chosen, in one line without a line end."""
        ...


@dataclass(frozen=True, slots=True)
class FixedRanking:
    """An order that does not follow from what was chosen."""

    scores: Floats
    order: Sequence[int]
    explain: Callable[[int], str]
    notes: Sequence[str] = ()
    is_of_one_family: bool = True

    def offer(self) -> Offers:
        """All in their order."""
        for place in self.order:
            yield int(place)


def rank_by_score(candidates: Candidates, free: Mask, settings: SelectionSettings) -> FixedRanking:
    """By the designer's score; equal scores in random order."""
    if settings.score_column is None:
        raise InputError("the policy top_score needs a score; name the designer's column, such as ipTM")
    scores = np.where(free, candidates.scores, np.nan)
    order = candidates.sort_by(scores)
    ranks = {place: rank for rank, place in enumerate(order, start=1)}
    return FixedRanking(
        scores,
        order,
        lambda place: f"{format_score(scores[place], settings)}, place {ranks[place]:,} of {len(order):,}",
    )


def rank_at_random(candidates: Candidates, free: Mask, settings: SelectionSettings) -> FixedRanking:
    """In an order that only the seed decides."""
    scores = np.where(free, 0.0, np.nan)
    order = candidates.sort_by(scores)
    reason = f"drawn at random from {len(order):,} with seed {settings.seed}"
    return FixedRanking(scores, order, lambda _: reason)


def format_score(score: float, settings: SelectionSettings) -> str:
    """The score as the designer wrote it, with its column: `ipTM 0.93`."""
    written = score if settings.higher_is_better else -score
    return f"{settings.score_column} {written:.{_DIGITS}g}"
