"""Counts each measurement once: several tables may have the same one of a history, as a campaign archives four of its own.

By experiment and name where both tables name the experiment; else by residues (without them by name) and values.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from prefect_assay.analysis.results import (
    DesignSummary,
    Level,
    Outcome,
    ResultRow,
)
from prefect_assay.analysis.results.interval import averaged, join_values
from prefect_assay.analysis.results.repeats import residues_of
from prefect_assay.analysis.results.row import HAS_RESULT, OPEN
from prefect_assay.analysis.results.tables import guarded
from prefect_assay.service.words import many

_TIERS: Final = {outcome: place for place, outcome in enumerate(Outcome)}
_CONSTANTS: Final = ("qualifier", "kd_M", "kd_low_M", "kd_high_M", "kon_per_M_s", "koff_per_s")
_ROUNDED: Final = 0.005  # three digits


@dataclass(frozen=True, slots=True)
class Entry:
    """One design as a table has it, with its replicates if the table has them; `tables` are those that say so."""

    design: DesignSummary
    tables: tuple[str, ...]
    replicates: tuple[ResultRow, ...] = ()

    @property
    def residues(self) -> str:
        """Upper case; empty where the table has none."""
        return residues_of(self.design)

    @property
    def measurements(self) -> tuple[ResultRow, ...]:
        """The replicates, or the design's own value as the only one."""
        return self.replicates or (_row_of(self.design),)


def counted_once(entries: Iterable[Entry]) -> tuple[list[DesignSummary], list[str]]:
    """The designs in the order of their tables, and a note on what was merged."""
    kept: list[Entry] = []
    by_residues: defaultdict[str, list[int]] = defaultdict(list)
    by_name: defaultdict[str, list[int]] = defaultdict(list)
    repeats: Counter[tuple[str, str]] = Counter()
    differ, revised = 0, 0
    sizes: Counter[str] = Counter()
    for entry in entries:
        (table,) = entry.tables
        sizes[table] += 1
        named = by_name[entry.design.name]
        places = by_residues[entry.residues] if entry.residues else named
        places = sorted({*places, *(at for at in named if not kept[at].residues)})
        places.sort(key=lambda at: kept[at].design.name != entry.design.name)
        found = next((at for at in places if _same(kept[at], entry)), None)
        if found is None:
            found = next((at for at in places if _of_one_design(kept[at], entry)), None)
            differ += found is not None
        else:
            revised += _of_one_experiment(kept[found], entry) and not _equal(kept[found], entry)
            repeats[table, kept[found].tables[0]] += 1
        if found is None:
            found = len(kept)
            kept.append(entry)
        else:
            kept[found] = _joined(kept[found], entry)
        for index, key in ((by_residues, entry.residues), (by_name, entry.design.name)):
            if key and found not in index[key]:
                index[key].append(found)
    notes = [
        f"{count} of {sizes[table]} designs in {table} are measurements that {other} has, too; each counts once"
        if table != other
        else f"{count} of {sizes[table]} designs in {table} are there twice, with the same experiment; each counts once"
        for (table, other), count in repeats.items()
    ]
    if differ:
        notes.append(
            f"{many(differ, 'design')} with other values in a further table: all count, as replicates"
        )
    if revised:
        notes.append(
            f"{many(revised, 'design')} with other values of one experiment: the table that was given last counts"
        )
    return [entry.design for entry in kept], notes


def _of_one_experiment(first: Entry, second: Entry) -> bool:
    """Whether both are the same design of the same experiment, by its code."""
    a, b = first.design, second.design
    return bool(
        a.experiment_code
        and a.experiment_code == b.experiment_code
        and guarded(a.name) == guarded(b.name)
        and (not a.result_type or not b.result_type or a.result_type == b.result_type)
    )


def _same(first: Entry, second: Entry) -> bool:
    """Whether both are one measurement."""
    if first.design.experiment_code and second.design.experiment_code:
        return _of_one_experiment(first, second)
    return not set(first.tables) & set(second.tables) and _equal(first, second)


def _of_one_design(first: Entry, second: Entry) -> bool:
    """Whether two different measurements are replicates of one design: no experiment separates them."""
    return (
        not first.design.experiment_code
        and not second.design.experiment_code
        and not set(first.tables) & set(second.tables)
        and first.residues == second.residues
    )


def _equal(first: Entry, second: Entry) -> bool:
    """Whether the values are the same, as far as both have some."""
    a, b = first.design, second.design
    if a.outcome in OPEN or b.outcome in OPEN:
        return True
    if first.replicates and second.replicates and _contained(first.replicates, second.replicates):
        return True
    if a.kd_M is None and b.kd_M is None:
        return a.outcome is b.outcome
    if a.kd_M is not None and b.kd_M is not None:
        means = _mean_of(a, second.replicates) or _mean_of(b, first.replicates)
        return _same_value(a, b) or means or _same_report(a, b)
    # A table of replicates may have values where the summary has only the call.
    return {a.outcome, b.outcome} <= HAS_RESULT


def _mean_of(design: DesignSummary, replicates: Sequence[ResultRow]) -> bool:
    return design.kd_M is not None and bool(averaged(design.kd_M, replicates))


def _same_report(a: DesignSummary, b: DesignSummary) -> bool:
    """Whether a K_D of one is one of the other: tables give the laboratory's mean, the one over all replicates, or both."""
    values, others = ([kd for kd in (each.kd_M, each.reported_kd_M) if kd] for each in (a, b))
    return any(math.isclose(kd, other, rel_tol=_ROUNDED) for kd in values for other in others)


def _same_value(a: DesignSummary | ResultRow, b: DesignSummary | ResultRow) -> bool:
    if a.kd_M is None or b.kd_M is None:
        return a.outcome is b.outcome and a.kd_M is b.kd_M
    return (
        a.outcome is b.outcome
        and (a.qualifier or "")[:1] == (b.qualifier or "")[:1]
        and math.isclose(a.kd_M, b.kd_M, rel_tol=_ROUNDED)
    )


def _contained(first: Sequence[ResultRow], second: Sequence[ResultRow]) -> bool:
    """Whether the one has every replicate of the other, each as often."""
    few, many = sorted((first, second), key=len)
    return not _without(few, many)


def _without(rows: Sequence[ResultRow], others: Sequence[ResultRow]) -> list[ResultRow]:
    """The rows that have no partner among the others."""
    left, found = list(others), []
    for row in rows:
        at = next((at for at, other in enumerate(left) if _same_replicate(row, other)), None)
        if at is None:
            found.append(row)
        else:
            del left[at]
    return found


def _same_replicate(a: ResultRow, b: ResultRow) -> bool:
    numbered = a.replicate is not None and b.replicate is not None
    return (not numbered or a.replicate == b.replicate) and _same_value(a, b)


def _joined(first: Entry, second: Entry) -> Entry:
    """One entry of two: what one lacks, the other fills in."""
    tables = (*first.tables, *(table for table in second.tables if table not in first.tables))
    if _of_one_design(first, second) and not _equal(first, second):
        replicates = (*first.measurements, *_without(second.measurements, first.measurements))
        design = _filled(first.design, second.design)
        return Entry(design.model_copy(update=summary_of(replicates)), tables, replicates)
    leading, other = first, second
    if (_of_one_experiment(first, second) and second.design.outcome not in OPEN) or _weight(second) > _weight(
        first
    ):
        leading, other = second, first
    replicates = max(leading.replicates, other.replicates, key=len)
    return replace(
        leading, design=_filled(leading.design, other.design), tables=tables, replicates=replicates
    )


def _weight(entry: Entry) -> tuple[bool, bool, int]:
    design = entry.design
    return design.outcome not in OPEN, bool(design.experiment_code), design.replicates


def _filled(leading: DesignSummary, other: DesignSummary) -> DesignSummary:
    """The leading design with the other's columns where it has none; constants only beside its own K_D."""
    own = {"outcome", "attributes", *(() if leading.kd_M else _CONSTANTS)}
    values = {
        field: value for field, value in other if field not in own and value and not getattr(leading, field)
    }
    return leading.model_copy(update=values | {"attributes": other.attributes | leading.attributes})


def _row_of(design: DesignSummary) -> ResultRow:
    columns = ResultRow.model_fields.keys() & DesignSummary.model_fields.keys()
    shared: dict[str, Any] = {column: getattr(design, column) for column in columns}
    return ResultRow(result_id="", level=Level.REPLICATE, **shared)


def summary_of(replicates: Sequence[ResultRow]) -> dict[str, Any]:
    """Outcome and K_D of replicates: what most of them say; equals favour the better one.

    K_D is that of those with this outcome, by `join_values`.
    """
    counts = Counter(row.outcome for row in replicates)
    outcome = min(counts, key=lambda found: (-counts[found], _TIERS[found]))
    kd, qualifier, doubts = join_values(
        ((row.kd_M, row.qualifier) for row in replicates if Outcome.MEASURED is row.outcome is outcome),
        by_factors=True,
    )
    return {
        "outcome": outcome,
        "qualifier": qualifier,
        "kd_M": kd,
        "doubts": doubts,
        "replicates": len(replicates),
    }
