"""Measurements of one design: which rows are about the same design, and one row of several. Pure.

The same residues are the same design, in any campaign and under any name. A row without residues is only a design of its own
experiment.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from prefect_assay.analysis.results.design import DesignSummary, find_main_quantity
from prefect_assay.analysis.results.interval import join_values
from prefect_assay.analysis.results.row import HAS_RESULT, OPEN, Outcome
from prefect_assay.service.assays import MAIN_QUANTITIES

_INTERVALS = dict.fromkeys(("kd_low_M", "kd_high_M", "tm_low_C", "tm_high_C", "group", "reference", "fold"))


def get_residues(design: DesignSummary) -> str:
    """The residues of a design in upper case; empty where its table has none."""
    return "".join((design.aa_string or "").split()).upper()


def join_repeats(designs: Iterable[DesignSummary]) -> tuple[DesignSummary, ...]:
    """One row per design and target, at the place of its first row: its outcome is that of most of its measurements.

    As many measurements that bind as others count as binding. A value is the mean of the exact ones, and a limit where more
    measurements are limits; a doubt says so. A mean over several experiments has no interval. A row without a target is about the only target of its design, if there is one.
    """
    groups: defaultdict[tuple[str, ...], list[DesignSummary]] = defaultdict(list)
    for design in designs:
        residues = get_residues(design)
        groups[(residues,) if residues else (design.experiment_code, design.name)].append(design)
    joined: list[DesignSummary] = []
    for rows in groups.values():
        by_target: defaultdict[str, list[DesignSummary]] = defaultdict(list)
        targets = {(row.target or "").casefold() for row in rows} - {""}
        for row in rows:
            by_target[min(targets) if len(targets) == 1 else (row.target or "").casefold()].append(row)
        joined += map(_join_rows, by_target.values())
    return tuple(joined)


def _join_rows(rows: Sequence[DesignSummary]) -> DesignSummary:
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
    joined = {
        kind: join_values(
            (
                (getattr(row, kind.column), row.qualifier if find_main_quantity(row) is kind else None)
                for row in kept
            ),
            by_factors=kind.has_log_mean,
            noun="measurements",
        )
        for kind in MAIN_QUANTITIES
    }
    main = next((kind for kind in MAIN_QUANTITIES if joined[kind][0] is not None), None)
    values: dict[str, Any] = {
        **_INTERVALS,
        **{kind.column: value for kind, (value, sign, _) in joined.items() if sign is None or kind is main},
        "qualifier": joined[main][1] if main else None,
        "doubts": tuple(
            dict.fromkeys(
                doubt
                for part in (*(row.doubts for row in kept), *(parts[2] for parts in joined.values()))
                for doubt in part
            )
        ),
        "outcome": outcome,
        "replicates": sum(row.replicates for row in kept),
        "verdict": verdicts.pop() if len(verdicts) == 1 else None,
        "extrapolated": any(row.extrapolated for row in kept),
        "simulated": any(row.simulated for row in rows),
        "attributes": attributes,
    }
    return kept[0].model_copy(update=values)
