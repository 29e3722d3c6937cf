"""The order in which candidates are offered: what all policies share, and the two that need no history."""

from collections.abc import Generator
from typing import Final, Protocol

import numpy as np

from prefect_assay.analysis.selection.candidates import Candidates, Floats, Mask
from prefect_assay.designs.selection import SelectionSettings
from prefect_assay.errors import InputError

Offers = Generator[int, bool, None]
"""Positions in the order of preference; the answer to each is whether it was chosen."""


class Ranking(Protocol):
    """One policy at work. `scores` are by position, NaN for candidates that are not offered."""

    scores: Floats
    notes: tuple[str, ...]

    def offers(self) -> Offers:
        """Offer each candidate at most once."""
        ...

    def reason(self, at: int) -> str:
        """Why this candidate was chosen, in one line without a line end."""
        ...


class TopScore:
    """By the designer's score; equal scores in random order."""

    notes: tuple[str, ...] = ()

    def __init__(self, candidates: Candidates, free: Mask, settings: SelectionSettings) -> None:
        if settings.score_column is None:
            raise InputError("the policy top_score needs a score; name the designer's column, such as ipTM")
        self.scores = np.where(free, candidates.scores, np.nan)
        self._candidates = candidates
        self._settings = settings
        self._order = candidates.sorted_by(self.scores)
        self._places = {int(at): place for place, at in enumerate(self._order, start=1)}

    def offers(self) -> Offers:
        """All in their order."""
        for at in self._order:
            yield int(at)

    def reason(self, at: int) -> str:
        """The score and its place among all scores."""
        score = score_text(self.scores[at], self._settings)
        return f"{score}, place {self._places[at]:,} of {len(self._order):,}"


class Random:
    """In an order that only the seed decides."""

    notes: tuple[str, ...] = ()

    def __init__(self, candidates: Candidates, free: Mask, settings: SelectionSettings) -> None:
        self.scores = np.where(free, 0.0, np.nan)
        self._order = candidates.sorted_by(self.scores)
        self._reason = f"drawn at random from {len(self._order):,} with seed {settings.seed}"

    def offers(self) -> Offers:
        """All in their order."""
        for at in self._order:
            yield int(at)

    def reason(self, at: int) -> str:  # noqa: ARG002 - it is the same for all
        """The draw."""
        return self._reason


_DIGITS: Final = 4


def score_text(score: float, settings: SelectionSettings) -> str:
    """The score as the designer wrote it, with its column: `ipTM 0.93`."""
    own = score if settings.higher_is_better else -score
    return f"{settings.score_column} {own:.{_DIGITS}g}"
