"""One row per design: its measured values, the interval of K_D, its verdict and price. Knows no file format.

A row is a design of one experiment. Of several results of a kind the last one with an outcome counts, results of another
kind fill in what it does not have (a melting temperature), and a K_D is given only where the outcome is `measured`: the
number of a non-binder is an artefact of the fit.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from pydantic import Field

from prefect_assay.models.base import StoredModel
from prefect_assay.models.vocabulary import ExperimentType, snake_case
from prefect_assay.results.interval import kd_interval
from prefect_assay.results.kinetics.analysis import (
    PackageAnalysis,
    ReplicateKinetics,
    ReplicateMelting,
    Verdict,
)
from prefect_assay.results.row import Level, Outcome, ResultRow, best_binders

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
_OPEN: Final = frozenset({Outcome.UNKNOWN, Outcome.PENDING, Outcome.MISSING})
_KINDS: Final = {kind.value: place for place, kind in enumerate(ExperimentType)}
_TIERS: Final = {outcome: place for place, outcome in enumerate(Outcome)}
_Replicate = ReplicateKinetics | ReplicateMelting


class DesignSummary(StoredModel):
    """One design. Units as in `ResultRow`; the interval is the 95 % interval of K_D; the price is without VAT.

    `attributes` are the designer's own columns (method, ipTM, round, ...), as they were in the input file.
    """

    name: str
    experiment_code: str
    result_type: str = ""
    target: str | None = None
    control: bool | None = None
    outcome: Outcome
    qualifier: str | None = None
    kd_M: float | None = None  # noqa: N815
    kd_low_M: float | None = None  # noqa: N815
    kd_high_M: float | None = None  # noqa: N815
    kon_per_M_s: float | None = None  # noqa: N815
    koff_per_s: float | None = None
    tm_C: float | None = None  # noqa: N815
    concentration_nM: float | None = None  # noqa: N815
    binding: str | None = None
    binding_strength: str | None = None
    expression: str | None = None
    replicates: int = 0
    verdict: Verdict | None = None
    reasons: tuple[str, ...] = ()
    price_cents: float | None = None
    aa_string: str | None = None
    attributes: dict[str, str] = Field(default_factory=dict)


def summarize(
    rows: Iterable[ResultRow],
    *,
    analyses: Mapping[str, PackageAnalysis] = _NOTHING,
    targets: Mapping[str, str | None] = _NOTHING,
    prices: Mapping[str, float] = _NOTHING,
    attributes: Mapping[str, Mapping[str, str]] = _NOTHING,
) -> tuple[DesignSummary, ...]:
    """One summary per design and experiment, best first: the same rows in any order of experiments give the same list.

    Binders come as in `best_binders`, controls included, then what was measured without a binding call (melting
    temperature, then concentration, highest first), non-binders, designs that did not express, unknown, pending and
    missing ones; equals by name.

    Args:
        rows: summary and replicate rows, in the service's order of results.
        analyses: fits of the raw curves, by result id.
        targets: the target's name, by experiment code.
        prices: the price of a design in cents, without VAT, by experiment code.
        attributes: the designer's own columns, by design name.
    """
    entries: defaultdict[tuple[str, str], list[ResultRow]] = defaultdict(list)
    replicates: defaultdict[tuple[str, str, str, str], list[ResultRow]] = defaultdict(list)
    for row in rows:
        if row.level is Level.SUMMARY:
            entries[row.name, row.experiment_code].append(row)
        else:
            replicates[_place(row)].append(row)
    counting = {design: _latest_of_each_kind(entries[design]) for design in sorted(entries)}
    ranked = _ranked([found[0] for found in counting.values()])
    return tuple(
        _summary(
            counting[row.name, row.experiment_code],
            replicates[_place(row)],
            analyses=analyses,
            own={
                "target": targets.get(row.experiment_code),
                "price_cents": _finite(prices.get(row.experiment_code)),
                "attributes": dict(attributes.get(row.name, {})),
            },
        )
        for row in ranked
    )


def _place(row: ResultRow) -> tuple[str, str, str, str]:
    return row.experiment_code, row.name, row.result_id, row.result_type


def _latest_of_each_kind(rows: Sequence[ResultRow]) -> tuple[ResultRow, ...]:
    """One row per kind of result; first the one that the summary is about, binding before all others."""
    latest: dict[str, ResultRow] = {}
    for row in rows:
        earlier = latest.get(row.result_type)
        if earlier is None or row.outcome not in _OPEN or earlier.outcome in _OPEN:
            latest[row.result_type] = row
    return tuple(
        sorted(
            latest.values(),
            key=lambda row: (
                row.outcome in _OPEN,
                not row.result_id,
                _KINDS.get(snake_case(row.result_type), len(_KINDS)),
                row.result_type,
            ),
        )
    )


def _ranked(rows: Sequence[ResultRow]) -> tuple[ResultRow, ...]:
    """Binders in their ranking, then all others by outcome."""
    binders = best_binders(rows, controls=True)
    others = sorted(
        set(rows) - set(binders),
        key=lambda row: (
            _TIERS[row.outcome],
            -(_finite(row.tm_C) or -math.inf),
            -(_finite(row.concentration_nM) or -math.inf),
            row.name,
            row.experiment_code,
        ),
    )
    return (*binders, *others)


def _summary(
    entries: Sequence[ResultRow],
    replicates: Sequence[ResultRow],
    *,
    analyses: Mapping[str, PackageAnalysis],
    own: Mapping[str, Any],
) -> DesignSummary:
    row = entries[0]
    found = [analyses[entry.result_id] for entry in entries if entry.result_id in analyses]
    curves = [part for analysis in found for part in analysis.kinetics if part.name == row.name]
    melts = [part for analysis in found for part in analysis.melting if part.name == row.name]
    verdict, reasons = combined_verdict([*curves, *melts])
    return DesignSummary(
        name=row.name,
        experiment_code=row.experiment_code,
        result_type=row.result_type,
        control=row.control,
        outcome=row.outcome,
        **_binding_values(row, replicates, curves),
        tm_C=_first_number(entries, "tm_C"),
        concentration_nM=_first_number(entries, "concentration_nM"),
        expression=next((entry.expression for entry in entries if entry.expression), None),
        replicates=len(replicates),
        verdict=verdict,
        reasons=reasons,
        aa_string=next((entry.aa_string for entry in entries if entry.aa_string), None),
        **own,
    )


def _binding_values(
    row: ResultRow, replicates: Sequence[ResultRow], curves: Sequence[ReplicateKinetics]
) -> dict[str, Any]:
    """The binding columns of one row; constants only where they are a measurement."""
    words = {"binding": row.binding, "binding_strength": row.binding_strength}
    if row.outcome not in {Outcome.MEASURED, Outcome.BINDING}:
        return {**words, "qualifier": row.qualifier if row.kd_M is None else None}
    kd = _finite(row.kd_M)
    kd = kd if kd is not None and kd > 0 else None
    exact = kd if row.qualifier is None else None  # a limit has no interval
    low, high = kd_interval(exact, replicates, curves) if exact is not None else (None, None)
    return {
        **words,
        "qualifier": row.qualifier,
        "kd_M": kd,
        "kd_low_M": low,
        "kd_high_M": high,
        "kon_per_M_s": _finite(row.kon_per_M_s),
        "koff_per_s": _finite(row.koff_per_s),
    }


def combined_verdict(replicates: Sequence[_Replicate]) -> tuple[Verdict | None, tuple[str, ...]]:
    """The verdict of most replicates; without a majority `review`. None where no curve was looked at.

    Reasons are in the order of the replicates, each once; a replicate with another verdict is named in its reasons.
    """
    if not replicates:
        return None, ()
    counts = Counter(replicate.verdict for replicate in replicates)
    most, count = counts.most_common(1)[0]
    agreed = 2 * count > len(replicates)
    verdict = most if agreed else Verdict.REVIEW
    reasons = [] if agreed else [f"the replicates differ: {_counted(counts)}"]
    for replicate in replicates:
        prefix = "" if replicate.verdict is verdict else f"replicate {replicate.replicate or '?'}: "
        reasons += [f"{prefix}{reason}" for reason in replicate.reasons]
    return verdict, tuple(dict.fromkeys(reasons))


def _counted(counts: Counter[Verdict]) -> str:
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])


def _first_number(entries: Sequence[ResultRow], column: str) -> float | None:
    return next((value for entry in entries if (value := _finite(getattr(entry, column))) is not None), None)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
