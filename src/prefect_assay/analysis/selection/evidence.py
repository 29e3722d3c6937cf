"""What a history says about the aim of a round: hits as 1 and 0, or values on a scale on which more is better.

K_D and concentrations count as logarithms down to a hundredth of the good ones; below that, all are alike. One wrong entry so moves
the scale of no other. Controls say nothing here.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from prefect_assay.analysis.results import (
    DesignSummary,
    HitRate,
    is_hit,
    objective_value,
)
from prefect_assay.analysis.results.hits import limit_of
from prefect_assay.analysis.results.repeats import join_repeats, residues_of
from prefect_assay.analysis.selection.candidates import Floats
from prefect_assay.designs.selection import Aim, Objective, SelectionSettings

_USUAL: Final = (
    0.15  # hits among designs that were bought, before anything is known, and how many designs that counts
)
_USUAL_COUNTS: Final = 8.0
HIT_UNIT: Final = 0.36  # standard deviation of yes and no at the usual rate
_FEWEST: Final = 3
_MOST_HIT: Final = 0.5  # of what was measured: then hits are no longer the aim
_GOOD: Final = 0.9  # quantile of the values that is good
_DECADES: Final = 2.0  # below the good ones that still count
_EVEN: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Scale:
    """From values in the unit of the objective to what is modelled, and back.

    `reference` is the value that counts log10(2); None for values that are modelled as they are.
    """

    aim: Aim
    objective: Objective
    reference: float | None
    centre: float
    unit: float

    def modelled(self, value: float) -> float:
        """Higher is better."""
        if self.reference is None:
            return value
        low = self.objective.value_of.lower_is_better
        ratio = self.reference / value if low else value / self.reference
        return float(np.log10(1 + ratio))

    def value(self, standard: float) -> float | None:
        """The value of a standardized prediction; None for nothing, such as no binding."""
        modelled = standard * self.unit + self.centre
        if self.reference is None:
            return modelled
        ratio = 10**modelled - 1
        if ratio <= _EVEN:
            return None
        low = self.objective.value_of.lower_is_better
        return self.reference / ratio if low else self.reference * ratio


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """Measured designs by residues and target, with standardized values. `designs` names one design of each."""

    designs: tuple[DesignSummary, ...]
    targets: NDArray[np.int32]
    values: Floats
    bounds: NDArray[np.int8]
    counts: Floats  # measurements
    scale: Scale
    notes: tuple[str, ...]

    def taking(self, kept: NDArray[np.intp], note: str) -> "Learned":
        """Only the designs at these positions, and a note that says so."""
        return Learned(
            tuple(self.designs[at] for at in kept.tolist()),
            self.targets[kept],
            self.values[kept],
            self.bounds[kept],
            self.counts[kept],
            self.scale,
            (*self.notes, note),
        )


def aim_of(designs: Iterable[DesignSummary], settings: SelectionSettings) -> tuple[Aim, tuple[str, ...]]:
    """The aim that the settings name; without one most hits, unless most designs hit already and have values.

    Designs of other targets count: a first purchase that they led well is no reason to change the aim.
    """
    if settings.aim is not None:
        return settings.aim, ()
    objective, limit = settings.objective, settings.hit_limit
    hits = [
        (hit, design)
        for design in join_repeats(designs)
        if (hit := is_hit(design, objective, limit)) is not None
    ]
    valued = sum(objective_value(design, objective) is not None for hit, design in hits if hit)
    rate = HitRate(sum(hit for hit, _ in hits), len(hits))
    if limit is None and valued >= _FEWEST and valued > rate.hits / 2 and rate.hits > _MOST_HIT * rate.known:
        return Aim.BEST, (
            f"aim: the best value, because {rate.words} measured designs hit; --aim hits, or a hit limit, asks for more hits",
        )
    return Aim.HITS, ()


def learned(designs: Sequence[DesignSummary], targets: Sequence[int], settings: SelectionSettings) -> Learned:
    """The evidence of a history for the aim.

    Args:
        designs: the history, controls and open orders among them.
        targets: 0 where a design was measured on the target of the pool.
        settings: aim, objective and limit of a hit.
    """
    aim, notes = aim_of(designs, settings)
    if aim is Aim.BEST:
        return _values(designs, targets, settings, notes)
    return _hits(designs, targets, settings, notes)


def _hits(
    designs: Sequence[DesignSummary],
    targets: Sequence[int],
    settings: SelectionSettings,
    notes: tuple[str, ...],
) -> Learned:
    found: dict[tuple[int, str], list[float]] = {}
    named: dict[tuple[int, str], DesignSummary] = {}
    for design, target in zip(designs, targets, strict=True):
        hit = is_hit(design, settings.objective, settings.hit_limit)
        residues = residues_of(design)
        if hit is not None and residues:
            found.setdefault((target, residues), []).append(float(hit))
            named.setdefault((target, residues), design)
    keys = sorted(found)
    values = np.array([float(np.mean(found[key])) for key in keys], dtype=np.float64)
    targets_of = np.array([target for target, _ in keys], dtype=np.int32)
    own = targets_of == 0
    centre = (
        float((values[own].sum() + _USUAL * _USUAL_COUNTS) / (own.sum() + _USUAL_COUNTS)) if keys else _USUAL
    )
    return Learned(
        tuple(named[key] for key in keys),
        targets_of,
        _level(values - centre, targets_of) / HIT_UNIT,
        np.zeros(len(keys), dtype=np.int8),
        np.array([float(len(found[key])) for key in keys]),
        Scale(Aim.HITS, settings.objective, None, centre, HIT_UNIT),
        notes,
    )


def _values(
    designs: Sequence[DesignSummary],
    targets: Sequence[int],
    settings: SelectionSettings,
    notes: tuple[str, ...],
) -> Learned:
    """Exact values; limits; failures, which are at most the weakest value; hits without a value, which are at least that."""
    objective = settings.objective
    exact: dict[tuple[int, str], list[float]] = {}
    limits: dict[tuple[int, str], tuple[float, int]] = {}
    failed: dict[tuple[int, str], int] = {}
    named: dict[tuple[int, str], DesignSummary] = {}
    for design, target in zip(designs, targets, strict=True):
        residues = residues_of(design)
        if design.control or not residues:
            continue
        key = (target, residues)
        if (value := objective_value(design, objective)) is not None:
            exact.setdefault(key, []).append(value)
        elif (limit := limit_of(design, objective)) is not None:
            limits[key] = limit
        elif (hit := is_hit(design, objective)) is not None:
            failed[key] = -1 if hit else 1
        else:
            continue
        named.setdefault(key, design)
    own = [value for (target, _), values in exact.items() if target == 0 for value in values]
    every = own or [value for values in exact.values() for value in values]
    scale = _scale(every, objective)
    keys = sorted(named)
    values, bounds, counts = np.zeros(len(keys)), np.zeros(len(keys), dtype=np.int8), np.ones(len(keys))
    weakest = min((scale.modelled(value) for value in every), default=0.0)
    for at, key in enumerate(keys):
        if key in exact:
            values[at] = np.mean([scale.modelled(value) for value in exact[key]])
            counts[at] = len(exact[key])
        elif key in limits:
            values[at], bounds[at] = scale.modelled(limits[key][0]), limits[key][1]
        else:
            values[at], bounds[at] = weakest, failed[key]
    targets_of = np.array([target for target, _ in keys], dtype=np.int32)
    mask = targets_of == 0
    basis = values[mask] if mask.any() else values
    centre, unit = (float(np.mean(basis)), float(np.std(basis))) if len(basis) else (0.0, 1.0)
    unit = unit if unit > _EVEN else 1.0
    return Learned(
        tuple(named[key] for key in keys),
        targets_of,
        _level(values - centre, targets_of) / unit,
        bounds,
        counts,
        Scale(Aim.BEST, objective, scale.reference, centre, unit),
        notes,
    )


def _level(values: Floats, targets: NDArray[np.int32]) -> Floats:
    """Values of other targets, each minus the mean of its target: only differences within a target may hold on another."""
    for target in np.unique(targets[targets != 0]):
        at = targets == target
        values[at] -= values[at].mean()
    return values


def _scale(values: Sequence[float], objective: Objective) -> Scale:
    """Logarithms count down to a hundredth of the good values; temperatures are as they are."""
    reference = 1.0 if objective.value_of.by_factors else None
    if reference and values and objective.value_of.lower_is_better:
        reference = float(np.quantile(values, 1 - _GOOD)) * 10**_DECADES
    elif reference and values:
        reference = float(np.quantile(values, _GOOD)) / 10**_DECADES
    return Scale(Aim.BEST, objective, reference, 0.0, 1.0)
