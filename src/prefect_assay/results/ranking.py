"""Rank designs for the next design round: best binders first, and nothing counted that was not seen."""

from collections.abc import Iterable
from typing import Final

from prefect_assay.results.row import Level, Outcome, ResultRow

_TIERS: Final = {Outcome.MEASURED: 0, Outcome.BINDING: 1}
_STRENGTHS: Final = {"strong": 0, "medium": 1, "weak": 2}


def best_binders(
    rows: Iterable[ResultRow], *, limit: int | None = None, controls: bool = False
) -> tuple[ResultRow, ...]:
    """Summary rows of binders: measured ones by K_D (M, ascending), then those with only a binding call.

    A screening call is not an affinity: designs without a K_D stand behind all that have one, strong before
    medium before weak. Non-binders, designs that did not express and unknown outcomes are left out.

    Args:
        rows: rows of one experiment or of a whole campaign.
        limit: how many to return; all by default.
        controls: whether control sequences take part.
    """
    candidates = [
        row
        for row in rows
        if row.level is Level.SUMMARY
        and (row.outcome is Outcome.BINDING or (row.outcome is Outcome.MEASURED and (row.kd_M or 0) > 0))
        and (controls or not row.control)
    ]
    return tuple(sorted(candidates, key=_order)[:limit])


def _order(row: ResultRow) -> tuple[int, float, int, str]:
    affinity = row.kd_M if row.kd_M is not None else float("inf")
    strength = _STRENGTHS.get(row.binding_strength or "", len(_STRENGTHS))
    return _TIERS[row.outcome], affinity, strength, row.name
