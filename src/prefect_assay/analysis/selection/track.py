"""How earlier proposals did: per method how many were proposed, bought and hit; predicted scores against measured values.

Needs no NumPy.
"""

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import correlation, fmean
from typing import Final

from prefect_assay.analysis.results import (
    DesignSummary,
    HitRate,
    count_hit_rates,
    get_objective_value,
    is_hit,
)
from prefect_assay.analysis.results.repeats import join_repeats
from prefect_assay.designs.candidate import method_of
from prefect_assay.designs.scores import read_score
from prefect_assay.designs.selection import REASON_COLUMN, SelectionSettings
from prefect_assay.service.assays import describe_objective

NO_METHOD: Final = "(no method)"
_BANDS: Final = (0.1, 0.25, 0.5, math.inf)
_FEWEST: Final = 3  # pairs, and different values of each: fewer say nothing


@dataclass(frozen=True, slots=True)
class MethodRecord:
    """One method. Controls are left out; A design that was measured several times counts once."""

    method: str
    proposed: int
    bought: int
    rate: HitRate


@dataclass(frozen=True, slots=True)
class ScoreRecord:
    """Spearman's coefficient of a score and what was measured, positive where a higher score was better; NaN: too few."""

    column: str
    designs: int
    rho: float


def count_by_method(
    designs: Sequence[DesignSummary],
    settings: SelectionSettings,
    passed_over: Mapping[str | None, int],
    unanswered: Mapping[str | None, int],
) -> tuple[MethodRecord, ...]:
    """One line per method, in the order of their hit rates.

    Args:
        designs: those with results, open ones included.
        settings: objective and limit of a hit.
        passed_over: how many candidates of a method were proposed and not chosen.
        unanswered: how many were chosen and have no row of results yet.
    """

    def get_method(design: DesignSummary) -> str:
        return method_of(design.attributes) or NO_METHOD

    rates = count_hit_rates(designs, get_method, settings.objective, settings.hit_limit)
    measured = Counter(get_method(design) for design in join_repeats(designs) if not design.control)
    open_orders, not_chosen = Counter[str](), Counter[str]()
    for total, counts in ((open_orders, unanswered), (not_chosen, passed_over)):
        for name, count in counts.items():
            total[name or NO_METHOD] += count
    records = []
    for method in measured.keys() | open_orders.keys() | not_chosen.keys():
        bought = measured[method] + open_orders[method]
        rate = rates.get(method, HitRate(0, 0))
        records.append(MethodRecord(method, bought + not_chosen[method], bought, rate))
    return tuple(
        sorted(records, key=lambda record: (-(record.rate.rate if record.rate.known else -1), record.method))
    )


def correlate_score(
    designs: Iterable[DesignSummary], column: str, settings: SelectionSettings
) -> ScoreRecord:
    """A designer's score against K_D, melting temperature or concentration; limits and controls are left out."""
    sign = -1 if describe_objective(settings.objective).lower_is_better else 1
    pairs = [
        (score, sign * value)
        for design in join_repeats(designs, settings.objective)
        if not design.control
        and (value := get_objective_value(design, settings.objective)) is not None
        and (score := read_score(design.attributes.get(column, ""))) is not None
    ]
    return ScoreRecord(column, len(pairs), _correlate(pairs))


def _correlate(pairs: Sequence[tuple[float, float]]) -> float:
    """Spearman's: Pearson's coefficient of the ranks; equal values share the mean of their ranks."""
    columns = list(zip(*pairs, strict=True))
    if len(pairs) < _FEWEST or any(len(set(values)) == 1 for values in columns):
        return math.nan
    return correlation(*map(_rank_values, columns))


def _rank_values(values: Sequence[float]) -> list[float]:
    order = sorted(values)
    return [bisect_left(order, value) + bisect_right(order, value) for value in values]


@dataclass(frozen=True, slots=True)
class Calibration:
    """Designs that `gp` chose with a chance to hit within a band, and what was found. `predicted` is their mean chance."""

    low: float
    high: float
    predicted: float
    rate: HitRate

    @property
    def cells(self) -> tuple[str, ...]:
        """The band, designs, mean chance, hits, hit rate and its interval, as a line of a table."""
        return (
            f"{self.low:.0%} to {min(self.high, 1):.0%}",
            f"{self.rate.known:,}",
            f"{self.predicted:.0%}",
            f"{self.rate.hits:,}",
            *self.rate.cells,
        )


CALIBRATION: Final = ("Predicted", "Measured", "Mean predicted", "Hits", "Hit rate", "95 % interval")
"""The titles of `Calibration.cells`."""


def calibrate_chances(
    designs: Iterable[DesignSummary], settings: SelectionSettings
) -> tuple[Calibration, ...]:
    """Predicted chances to hit against hits, by band; empty where no design was chosen by a chance to hit, with the same limit."""
    bands: dict[float, list[tuple[float, bool]]] = {}
    for design in join_repeats(designs, settings.objective):
        chance = read_score(design.attributes.get("selection_score", ""))
        hit = is_hit(design, settings.objective, settings.hit_limit)
        chosen_by = design.attributes.get(REASON_COLUMN, "")
        if hit is None or chance is None or not chosen_by.startswith(settings.chance):
            continue
        high = next(high for high in _BANDS if chance <= high)
        bands.setdefault(high, []).append((chance, hit))
    lows = dict(zip(_BANDS, (0.0, *_BANDS), strict=False))
    return tuple(
        Calibration(
            lows[high],
            high,
            fmean(chance for chance, _ in pairs),
            HitRate(sum(hit for _, hit in pairs), len(pairs)),
        )
        for high, pairs in sorted(bands.items())
    )
