"""Counts each measurement once: several tables may have the same one of a history, as a campaign archives four of its own.

By experiment and name where both tables name the experiment; else by residues (without them by name) and values. Two targets are
two measurements.
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
from prefect_assay.analysis.results.interval import find_averaged, join_values
from prefect_assay.analysis.results.repeats import get_residues, normalize_target
from prefect_assay.analysis.results.row import HAS_RESULT, OPEN
from prefect_assay.analysis.results.tables import guard_cell
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
        return get_residues(self.design)

    @property
    def measurements(self) -> tuple[ResultRow, ...]:
        """The replicates, or the design's own value as the only one."""
        if self.replicates:
            return self.replicates
        columns = ResultRow.model_fields.keys() & DesignSummary.model_fields.keys()
        shared: dict[str, Any] = {column: getattr(self.design, column) for column in columns}
        return (ResultRow(result_id="", level=Level.REPLICATE, **shared),)


def merge_entries(entries: Iterable[Entry]) -> tuple[list[DesignSummary], list[str]]:
    """The designs in the order of their tables, and a note on what was merged."""
    kept: list[Entry] = []
    by_residues: defaultdict[str, list[int]] = defaultdict(list)
    by_name: defaultdict[str, list[int]] = defaultdict(list)
    repeats: Counter[tuple[str, str]] = Counter()
    differing, revised = 0, 0
    sizes: Counter[str] = Counter()
    for entry in entries:
        (table,) = entry.tables
        sizes[table] += 1
        named = by_name[entry.design.name]
        of_design = by_residues[entry.residues] if entry.residues else named
        places = sorted({*of_design, *(place for place in named if not kept[place].residues)})
        places.sort(key=lambda place: kept[place].design.name != entry.design.name)
        merged = next((place for place in places if _is_same_measurement(kept[place], entry)), None)
        if merged is not None:
            revised += _is_of_one_experiment(kept[merged], entry) and not _has_equal_values(
                kept[merged], entry
            )
            repeats[table, kept[merged].tables[0]] += 1
        else:
            merged = next((place for place in places if _is_further_replicate(kept[place], entry)), None)
            differing += merged is not None
        if merged is None:
            merged = len(kept)
            kept.append(entry)
        else:
            kept[merged] = _join_entries(kept[merged], entry)
        for index, key in ((by_residues, entry.residues), (by_name, entry.design.name)):
            if key and merged not in index[key]:
                index[key].append(merged)
    notes = [
        f"{count} of {sizes[table]} designs in {table} are measurements that {other} also has; each counts once"
        if table != other
        else f"{count} of {sizes[table]} designs in {table} are there twice, with the same experiment; each counts once"
        for (table, other), count in repeats.items()
    ]
    if differing:
        notes.append(
            f"{many(differing, 'design')} with other values in a further table: all count, as replicates"
        )
    if revised:
        notes.append(
            f"{many(revised, 'design')} with other values of one experiment: the table that was given last counts"
        )
    return [entry.design for entry in kept], notes


def _is_of_one_experiment(first: Entry, second: Entry) -> bool:
    """Whether both are the same design of the same experiment, by its code."""
    a, b = first.design, second.design
    return bool(
        a.experiment_code
        and a.experiment_code == b.experiment_code
        and guard_cell(a.name) == guard_cell(b.name)
        and (not a.result_type or not b.result_type or a.result_type == b.result_type)
    )


def _may_be_of_one_target(first: Entry, second: Entry) -> bool:
    targets = {normalize_target(entry.design.target) for entry in (first, second)} - {""}
    return len(targets) < 2  # noqa: PLR2004  one, or not named


def _is_same_measurement(first: Entry, second: Entry) -> bool:
    if not _may_be_of_one_target(first, second):
        return False
    if first.design.experiment_code and second.design.experiment_code:
        return _is_of_one_experiment(first, second)
    return not set(first.tables) & set(second.tables) and _has_equal_values(first, second)


def _is_further_replicate(first: Entry, second: Entry) -> bool:
    """Whether two different measurements are replicates of one design: no experiment separates them."""
    return (
        not first.design.experiment_code
        and not second.design.experiment_code
        and not set(first.tables) & set(second.tables)
        and first.residues == second.residues
        and _may_be_of_one_target(first, second)
    )


def _has_equal_values(first: Entry, second: Entry) -> bool:
    """Whether the values are the same, as far as both have some."""
    a, b = first.design, second.design
    if a.outcome in OPEN or b.outcome in OPEN:
        return True
    fewer, more = sorted((first.replicates, second.replicates), key=len)
    if fewer and not _leave_out_shared(fewer, more):
        return True
    if a.kd_M is None and b.kd_M is None:
        return a.outcome is b.outcome
    if (
        a.kd_M is None or b.kd_M is None
    ):  # a table of replicates may have values where the summary has only the call
        return {a.outcome, b.outcome} <= HAS_RESULT
    if (
        _is_same_value(a, b)
        or find_averaged(a.kd_M, second.replicates)
        or find_averaged(b.kd_M, first.replicates)
    ):
        return True
    # Tables give the laboratory's mean, the one over all replicates, or both.
    values, others = ([kd for kd in (design.kd_M, design.reported_kd_M) if kd] for design in (a, b))
    return any(math.isclose(kd, other, rel_tol=_ROUNDED) for kd in values for other in others)


def _is_same_value(a: DesignSummary | ResultRow, b: DesignSummary | ResultRow) -> bool:
    if a.outcome is not b.outcome or a.kd_M is None or b.kd_M is None:
        return a.outcome is b.outcome and a.kd_M is b.kd_M
    is_same_limit = (a.qualifier or "")[:1] == (b.qualifier or "")[:1]
    return is_same_limit and math.isclose(a.kd_M, b.kd_M, rel_tol=_ROUNDED)


def _leave_out_shared(rows: Sequence[ResultRow], others: Sequence[ResultRow]) -> list[ResultRow]:
    """The rows that have no partner among the others."""
    left, alone = list(others), []
    for row in rows:
        partner = next((place for place, other in enumerate(left) if _is_same_replicate(row, other)), None)
        if partner is None:
            alone.append(row)
        else:
            del left[partner]
    return alone


def _is_same_replicate(a: ResultRow, b: ResultRow) -> bool:
    has_numbers = a.replicate is not None and b.replicate is not None
    return (not has_numbers or a.replicate == b.replicate) and _is_same_value(a, b)


def _join_entries(first: Entry, second: Entry) -> Entry:
    """One entry of two: what one lacks, the other fills in."""
    tables = (*first.tables, *(table for table in second.tables if table not in first.tables))
    if _is_further_replicate(first, second) and not _has_equal_values(first, second):
        further = _leave_out_shared(second.measurements, first.measurements)
        replicates = (*first.measurements, *further)
        design = _fill_in(first.design, second.design)
        return Entry(design.model_copy(update=summarize_replicates(replicates)), tables, replicates)
    leading, other = first, second
    is_newer = _is_of_one_experiment(first, second) and second.design.outcome not in OPEN
    if is_newer or _weigh(second) > _weigh(first):
        leading, other = second, first
    replicates = max(leading.replicates, other.replicates, key=len)
    return replace(
        leading, design=_fill_in(leading.design, other.design), tables=tables, replicates=replicates
    )


def _weigh(entry: Entry) -> tuple[bool, bool, int]:
    design = entry.design
    return design.outcome not in OPEN, bool(design.experiment_code), design.replicates


def _fill_in(leading: DesignSummary, other: DesignSummary) -> DesignSummary:
    """The leading design with the other's columns where it has none; constants only with its own K_D."""
    skipped = {"outcome", "attributes", *(() if leading.kd_M else _CONSTANTS)}
    values = {
        field: value
        for field, value in other
        if field not in skipped and value and not getattr(leading, field)
    }
    return leading.model_copy(update=values | {"attributes": other.attributes | leading.attributes})


def summarize_replicates(replicates: Sequence[ResultRow]) -> dict[str, Any]:
    """Outcome and K_D of replicates: what most of them say; equals favour the better one.

    K_D is that of those with this outcome, by `join_values`.
    """
    counts = Counter(row.outcome for row in replicates)
    outcome = min(counts, key=lambda known: (-counts[known], _TIERS[known]))
    measured = (row for row in replicates if Outcome.MEASURED is row.outcome is outcome)
    kd, qualifier, doubts = join_values(((row.kd_M, row.qualifier) for row in measured), by_factors=True)
    values = {"qualifier": qualifier, "kd_M": kd, "doubts": doubts}
    return {"outcome": outcome, **values, "replicates": len(replicates)}
