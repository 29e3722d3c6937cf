"""What a history says about the aim of a round: hits as 1 and 0, or values on a scale on which more is better.

K_D and concentrations count as logarithms, from a hundredth of the good ones (the best tenth) to ten times these: what is worse or fails
counts as that hundredth, and one entry that is far too good moves the scale of no other. Controls say nothing here.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from prefect_assay.analysis.results import DesignSummary, HitRate, get_objective_value, is_hit
from prefect_assay.analysis.results.hits import find_limit
from prefect_assay.analysis.results.repeats import get_residues, join_repeats
from prefect_assay.analysis.selection.candidates import Floats
from prefect_assay.designs.selection import Aim, SelectionSettings
from prefect_assay.service.assays import Objective, describe_objective

# Hits among designs that were bought, before anything is known, and how many designs that counts.
_USUAL, _USUAL_COUNTS = 0.15, 8.0
HIT_UNIT: Final = 0.36  # standard deviation of yes and no at the usual rate
_FEWEST: Final = 3
_MOST_HIT: Final = 0.5  # of what was measured: then hits are no longer the aim
_GOOD: Final = 0.9  # quantile of the values that is good
_DECADES_BELOW, _DECADES_ABOVE = 2.0, 1.0
_EVEN: Final = 1e-9


@dataclass(frozen=True, slots=True)
class ObjectiveScale:
    """From standardized predictions back to the unit of the objective. `floor` is what failures count as, standardized."""

    aim: Aim
    objective: Objective
    centre: float
    unit: float
    floor: float = -math.inf

    def to_value(self, standard: float) -> float | None:
        """The value of a standardized prediction; None for nothing, such as no binding."""
        if standard <= self.floor:
            return None
        modelled = standard * self.unit + self.centre
        kind = describe_objective(self.objective)
        if not kind.by_factors:
            return modelled
        return float(10 ** (-modelled if kind.lower_is_better else modelled))


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """Measured designs by residues, with standardized values and numbers of measurements; `designs` names one design of each."""

    designs: tuple[DesignSummary, ...]
    values: Floats
    counts: Floats
    scale: ObjectiveScale
    notes: tuple[str, ...]


def find_aim(designs: Iterable[DesignSummary], settings: SelectionSettings) -> tuple[Aim, tuple[str, ...]]:
    """The aim that the settings name; without one most hits, unless most designs hit already and have values."""
    if settings.aim is not None:
        return settings.aim, ()
    objective, limit = settings.objective, settings.hit_limit
    hits = [
        (hit, design)
        for design in join_repeats(designs, objective)
        if (hit := is_hit(design, objective, limit)) is not None
    ]
    valued = sum(get_objective_value(design, objective) is not None for hit, design in hits if hit)
    rate = HitRate(sum(hit for hit, _ in hits), len(hits))
    if limit is None and valued >= _FEWEST and valued > rate.hits / 2 and rate.hits > _MOST_HIT * rate.known:
        return Aim.BEST, (
            f"aim: the best value, because {rate.words} measured designs hit; --aim hits, or a hit limit, asks for more hits",
        )
    return Aim.HITS, ()


def read_evidence(designs: Sequence[DesignSummary], settings: SelectionSettings) -> Evidence:
    """The evidence of a history for the aim; controls and open orders say nothing."""
    aim, notes = find_aim(designs, settings)
    limit = settings.hit_limit if aim is Aim.HITS else None
    exact = [get_objective_value(design, settings.objective) for design in designs if not design.control]
    known = orient_values([value for value in exact if value is not None], settings.objective)
    middle = float(np.median(known)) if known.size else math.inf
    measured: dict[str, tuple[DesignSummary, list[float]]] = {}
    for design in designs:
        residues, hit = get_residues(design), is_hit(design, settings.objective, limit)
        value = None if hit is None else float(hit)
        if aim is Aim.BEST and not design.control:
            value = _read_value(design, settings.objective, hit=hit, middle=middle)
        if residues and value is not None:
            measured.setdefault(residues, (design, []))[1].append(value)
    kept = [measured[residues] for residues in sorted(measured)]
    lists = [values for _, values in kept]
    make_scale = _scale_hits if aim is Aim.HITS else _scale_values
    values, scale = make_scale(lists, settings.objective)
    counts = np.array([float(len(repeats)) for repeats in lists])
    return Evidence(tuple(design for design, _ in kept), values, counts, scale, notes)


def _read_value(
    design: DesignSummary, objective: Objective, *, hit: bool | None, middle: float
) -> float | None:
    """More is better. A failure is -inf and a hit without a value NaN; None says nothing.

    A limit counts as its value, but as no better than `middle` if the design is at most so good.
    """
    value, limit = get_objective_value(design, objective), find_limit(design, objective)
    if value is None and limit is None:
        return None if hit is None else math.nan if hit else -math.inf
    oriented = float(orient_values([limit[0] if limit else value], objective)[0])
    return min(oriented, middle) if limit and limit[1] > 0 else oriented


def orient_values(values: Sequence[float | None], objective: Objective) -> Floats:
    """Values on a scale on which more is better, decades or degrees; NaN for None."""
    numbers = np.array([math.nan if value is None else value for value in values], dtype=np.float64)
    if not describe_objective(objective).by_factors:
        return numbers
    with np.errstate(divide="ignore"):
        logs = np.log10(numbers)
    return -logs if describe_objective(objective).lower_is_better else logs


def _scale_hits(lists: Sequence[Sequence[float]], objective: Objective) -> tuple[Floats, ObjectiveScale]:
    """One standardized share of hits per design."""
    values = np.array([float(np.mean(repeats)) for repeats in lists])
    centre = float((values.sum() + _USUAL * _USUAL_COUNTS) / (len(values) + _USUAL_COUNTS))
    return (values - centre) / HIT_UNIT, ObjectiveScale(Aim.HITS, objective, centre, HIT_UNIT)


def _scale_values(lists: Sequence[Sequence[float]], objective: Objective) -> tuple[Floats, ObjectiveScale]:
    """One standardized value per design."""
    every = np.array([value for repeats in lists for value in repeats], dtype=np.float64)
    exact = every[np.isfinite(every)]
    low, middle, high = 0.0, 0.0, 0.0
    if exact.size:
        low, middle, good, high = np.quantile(exact, [0, 0.5, _GOOD, 1]).tolist()
        if describe_objective(objective).by_factors:
            low, high = max(low, good - _DECADES_BELOW), good + _DECADES_ABOVE
    values = np.array(
        [float(np.mean(np.clip(np.nan_to_num(repeats, nan=middle), low, high))) for repeats in lists],
        dtype=np.float64,
    )
    centre, unit = (float(values.mean()), float(values.std())) if values.size else (0.0, 1.0)
    unit = unit if unit > _EVEN else 1.0
    floor = (low - centre) / unit if np.isneginf(every).any() else -math.inf
    return (values - centre) / unit, ObjectiveScale(Aim.BEST, objective, centre, unit, floor)
