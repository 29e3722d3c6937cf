"""Measurements of one design: which rows are about the same design, and one row of several. Pure.

The same residues are the same design, in any campaign and under any name. A row without residues is only a design of its own
experiment.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean, geometric_mean
from typing import Any

from prefect_assay.analysis.results.design import DesignSummary
from prefect_assay.analysis.results.row import HAS_RESULT, OPEN, Outcome
from prefect_assay.service.assays import KD, MAIN_QUANTITIES

_INTERVALS = dict.fromkeys(("kd_low_M", "kd_high_M", "tm_low_C", "tm_high_C", "group", "reference", "fold"))


def residues_of(design: DesignSummary) -> str:
    """The residues of a design in upper case; empty where its table has none."""
    return "".join((design.aa_string or "").split()).upper()


def join_repeats(designs: Iterable[DesignSummary]) -> tuple[DesignSummary, ...]:
    """One row per design and target, at the place of its first row: its outcome is that of most of its measurements.

    As many measurements that bind as others count as binding. K_D is the geometric mean of those that are no limits. A mean
    over several experiments has no interval. A row without a target is about the only target of its design, if there is one.
    """
    groups: defaultdict[tuple[str, ...], list[DesignSummary]] = defaultdict(list)
    for design in designs:
        residues = residues_of(design)
        groups[(residues,) if residues else (design.experiment_code, design.name)].append(design)
    joined: list[DesignSummary] = []
    for rows in groups.values():
        by_target: defaultdict[str, list[DesignSummary]] = defaultdict(list)
        targets = {(row.target or "").casefold() for row in rows} - {""}
        for row in rows:
            by_target[min(targets) if len(targets) == 1 else (row.target or "").casefold()].append(row)
        joined += map(_join, by_target.values())
    return tuple(joined)


def _join(rows: Sequence[DesignSummary]) -> DesignSummary:
    known = [row for row in rows if row.outcome not in OPEN]
    if len(rows) == 1:
        return rows[0]
    attributes: dict[str, str] = {}
    for row in reversed(rows):
        attributes |= row.attributes
    if len(known) < 2:  # noqa: PLR2004  nothing to average
        return (known or rows)[0].model_copy(update={"attributes": attributes})
    positive = [row for row in known if row.outcome in HAS_RESULT]
    if 2 * len(positive) >= len(known):
        kept = positive
        outcome = (
            Outcome.MEASURED if any(row.outcome is Outcome.MEASURED for row in kept) else Outcome.BINDING
        )
    else:
        outcome = Counter(row.outcome for row in known if row not in positive).most_common(1)[0][0]
        kept = [row for row in known if row.outcome is outcome]
    verdicts = {row.verdict for row in kept}
    values: dict[str, Any] = {
        **_INTERVALS,
        **_join_kd(kept),
        "outcome": outcome,
        **{
            kind.column: _mean(getattr(row, kind.column) for row in kept)
            for kind in MAIN_QUANTITIES
            if kind is not KD
        },
        "replicates": sum(row.replicates for row in kept),
        "verdict": verdicts.pop() if len(verdicts) == 1 else None,
        "extrapolated": any(row.extrapolated for row in kept),
        "simulated": any(row.simulated for row in rows),
        "attributes": attributes,
    }
    return kept[0].model_copy(update=values)


def _join_kd(rows: Iterable[DesignSummary]) -> dict[str, Any]:
    """K_D in M and its qualifier: a limit only where all are limits on the same side."""
    by_sign: defaultdict[str | None, list[float]] = defaultdict(list)
    for row in rows:
        if row.kd_M:
            by_sign[row.qualifier].append(row.kd_M)
    if None in by_sign:
        return {"qualifier": None, "kd_M": geometric_mean(by_sign[None])}
    if len(by_sign) != 1:
        return {"qualifier": None, "kd_M": None}
    ((sign, limits),) = by_sign.items()
    return {"qualifier": sign, "kd_M": min(limits) if sign == ">" else max(limits)}


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
