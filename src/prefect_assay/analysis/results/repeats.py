"""Measurements of one design: which rows are about the same design, and one row of several. Pure.

The same residues are the same design, in any campaign and under any name. A row without residues is only a design of its own
experiment.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from prefect_assay.analysis.results.design import DesignSummary, find_main_quantity, find_objective
from prefect_assay.analysis.results.interval import join_values
from prefect_assay.analysis.results.row import HAS_RESULT, OPEN, Outcome
from prefect_assay.service.assays import MAIN_QUANTITIES, Objective

T = TypeVar("T")
_INTERVALS = dict.fromkeys(("kd_low_M", "kd_high_M", "tm_low_C", "tm_high_C", "group", "reference", "fold"))


def get_residues(design: DesignSummary) -> str:
    """The residues of a design in upper case; empty where its table has none."""
    return "".join((design.aa_string or "").split()).upper()


def normalize_target(target: str | None) -> str:
    """The name of a target without case and further spaces: equal ones are one target."""
    return " ".join((target or "").split()).casefold()


def join_repeats(
    designs: Iterable[DesignSummary], objective: Objective | None = None
) -> tuple[DesignSummary, ...]:
    """One row per design and target, at the place of its first row: its outcome is that of most of its measurements.

    Only measurements of one kind decide on the outcome: those of `objective` where there are some, else of binding, else of
    another value. As many that bind as others count as binding. Those of other kinds fill in their numbers. A value is the mean
    of the exact ones, and a limit where more measurements are limits; a doubt says so. A mean over several experiments has no
    interval. A row without a target is about the only target of its design, if there is one; if its assay takes no target,
    about each.
    """
    groups: defaultdict[tuple[str, ...], list[DesignSummary]] = defaultdict(list)
    for design in designs:
        residues = get_residues(design)
        groups[(residues,) if residues else (design.experiment_code, design.name)].append(design)
    return tuple(
        _join_rows(part, objective)
        for rows in groups.values()
        for part in split_by_target(rows, lambda row: row.target, _may_be_about_binding)
    )


def split_by_target(
    rows: Sequence[T], get_target: Callable[[T], str | None], takes_target: Callable[[T], bool] = bool
) -> tuple[Sequence[T], ...]:
    """The rows about each target of a design. Those without one are about the only target, if there is one.

    What takes no target is about each.
    """
    by_target: defaultdict[str, list[T]] = defaultdict(list)
    targets = [*dict.fromkeys(target for row in rows if (target := normalize_target(get_target(row))))]
    for row in rows:
        row_target = normalize_target(get_target(row))
        is_about_all = not row_target and targets and (len(targets) == 1 or not takes_target(row))
        for target in targets if is_about_all else [row_target]:
            by_target[target].append(row)
    return tuple(by_target.values())


def _may_be_about_binding(row: DesignSummary) -> bool:
    return _find_kind(row) in (Objective.AFFINITY, None)


def _find_kind(row: DesignSummary) -> str | None:
    """What the outcome of a row is about: an objective, or the assay type; None where its table does not say."""
    if row.outcome in {Outcome.BINDING, Outcome.NO_BINDING}:
        return Objective.AFFINITY
    return find_objective(row) or row.result_type or None


def _join_rows(rows: Sequence[DesignSummary], objective: Objective | None) -> DesignSummary:
    known = [row for row in rows if row.outcome not in OPEN]
    if len(rows) == 1:
        return rows[0]
    attributes: dict[str, str] = {}
    for row in reversed(rows):
        attributes |= row.attributes
    if len(known) < 2:  # noqa: PLR2004  nothing to average
        return (known or rows)[0].model_copy(update={"attributes": attributes})
    kinds = [kind for row in known if (kind := _find_kind(row))]
    deciding = next((kind for kind in (objective, *Objective) if kind in kinds), (*kinds, None)[0])
    voters = [row for row in known if _find_kind(row) in (deciding, None)]
    positive = [row for row in voters if row.outcome in HAS_RESULT]
    if 2 * len(positive) >= len(voters):
        kept = positive
        outcome = (
            Outcome.MEASURED if any(row.outcome is Outcome.MEASURED for row in kept) else Outcome.BINDING
        )
    else:
        outcome = Counter(row.outcome for row in voters if row not in positive).most_common(1)[0][0]
        kept = [row for row in voters if row.outcome is outcome]
    used = [*kept, *(row for row in known if row not in voters and row.outcome in HAS_RESULT)]
    verdicts = {row.verdict for row in kept}
    joined = {
        kind: join_values(
            (
                (getattr(row, kind.column), row.qualifier if find_main_quantity(row) is kind else None)
                for row in used
            ),
            by_factors=kind.has_log_mean,
            noun="measurements",
        )
        for kind in MAIN_QUANTITIES
    }
    main = next((kind for kind in MAIN_QUANTITIES if joined[kind][0] is not None), None)
    values: dict[str, Any] = {
        **_INTERVALS,
        **{
            kind.column: value if sign is None or kind is main else None
            for kind, (value, sign, _) in joined.items()
        },
        "expression": next((row.expression for row in used if row.expression), None),
        "qualifier": joined[main][1] if main else None,
        "doubts": tuple(
            dict.fromkeys(
                doubt
                for part in (*(row.doubts for row in used), *(parts[2] for parts in joined.values()))
                for doubt in part
            )
        ),
        "outcome": outcome,
        "replicates": sum(row.replicates for row in kept),
        "verdict": verdicts.pop() if len(verdicts) == 1 else None,
        "extrapolated": any(row.extrapolated for row in used),
        "simulated": any(row.simulated for row in rows),
        "attributes": attributes,
    }
    return kept[0].model_copy(update=values)
