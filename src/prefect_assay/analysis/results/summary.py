"""One row per design: its value with interval, what the laboratory reports, verdict, group of ranks, doubts and price.

A row is a design of one experiment. Of several results of a kind the last one with an outcome counts. Results of
another kind fill in what it does not have, such as a melting temperature. K_D is the geometric mean over all replicates
that have one, or a limit. The laboratory's own mean, over the replicates of its choice, is next to it. The number of
a non-binder is an artefact of the fit, and left out.
"""

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from prefect_assay.analysis.kinetics.analysis import (
    PackageAnalysis,
    ReplicateKinetics,
    ReplicateMelting,
    Verdict,
)
from prefect_assay.analysis.results.calls import CALL_FIELDS, CallField, read_call
from prefect_assay.analysis.results.controls import compare_with_controls, expects_binding
from prefect_assay.analysis.results.design import (
    DesignSummary,
    find_main_quantity,
    get_sort_key,
    is_made_up,
)
from prefect_assay.analysis.results.interval import (
    Mean,
    Scatter,
    average_values,
    find_averaged,
    find_fitted_interval,
    find_fitted_limit,
    join_values,
    list_measured,
    pool_scatter,
)
from prefect_assay.analysis.results.measurements import (
    EXTRAPOLATED,
    RecordReader,
    measures_affinity,
    read_apparent_kd,
)
from prefect_assay.analysis.results.quantities import finite_or_none
from prefect_assay.analysis.results.ranks import Ranked, assign_groups
from prefect_assay.analysis.results.row import (
    HAS_RESULT,
    MEAN_OF,
    OPEN,
    Level,
    Outcome,
    ResultRow,
)
from prefect_assay.service.assays import ASSAY_TYPES, CONCENTRATION, FURTHER_QUANTITIES, QuantityKind
from prefect_assay.service.models.vocabulary import snake_case

_REPORTED: Final = ("reported_kd_M", "reported_qualifier", "replicates_reported", "reported_tm_C")
_NOTHING: Final[Mapping[Any, Any]] = MappingProxyType({})
_KINDS: Final = {kind.value: place for place, kind in enumerate(ASSAY_TYPES)}
_NM: Final = 1e-9
_Replicate = ReplicateKinetics | ReplicateMelting
_Place = tuple[str, str, str, str, str]


@dataclass(frozen=True, slots=True)
class Scatters:
    """The scatter between replicates: of log10 K_D in decades, of T_m in degrees Celsius. None: not known."""

    log_kd: Scatter | None = None
    tm_C: Scatter | None = None  # noqa: N815


def summarize(
    rows: Iterable[ResultRow],
    *,
    analyses: Mapping[tuple[str, str], PackageAnalysis] = _NOTHING,
    targets: Mapping[str, str | None] = _NOTHING,
    prices: Mapping[str, float] = _NOTHING,
    attributes: Mapping[str, Mapping[str, str]] = _NOTHING,
    earlier: Sequence[ResultRow] = (),
    campaign_id: str = "",
    highest_molar: Mapping[str, float] = _NOTHING,
    simulated: bool = False,
) -> tuple[DesignSummary, ...]:
    """One summary per design and experiment, best first: the same rows in any order of experiments give the same list.

    Binders come first by K_D (M, ascending; a lower limit follows all others), controls included, then those with only a call,
    then what was measured without a binding call (melting temperature, then concentration, highest first), non-binders, designs
    that did not express, unknown, pending and missing ones; equals by name.

    Args:
        rows: summary and replicate rows, in the service's order of results.
        analyses: fits of the raw curves, by experiment code and result id.
        targets: the target's name, by experiment code.
        prices: the price of a design in cents, without VAT, by experiment code.
        attributes: the designer's own columns, by design name.
        earlier: replicate rows of earlier campaigns (`list_counted_replicates`), whose scatter also counts.
        campaign_id: the campaign of all rows.
        highest_molar: the highest concentration in M, by experiment code; fits say it of their designs.
        simulated: a local lab has answered. Values that a lab says it made up are marked in any case.
    """
    rows = tuple(rows)
    replicates = _group_by_place(rows)
    scatters = pool_scatters(rows, earlier)
    made = [
        _summarize_design(
            _take_latest_of_kinds(summary_rows),
            replicates,
            scatters,
            analyses=analyses,
            context={
                "target": targets.get(code),
                "price_cents": finite_or_none(prices.get(code)),
                "attributes": dict(attributes.get(name, {})),
                "campaign_id": campaign_id,
                "simulated": simulated,
            },
            highest_molar=highest_molar.get(code),
        )
        for (name, code), summary_rows in sorted(_group_summaries(rows).items())
    ]
    made.sort(key=lambda ranked: get_sort_key(ranked.summary))
    return compare_with_controls(assign_groups(made))


def pool_scatters(rows: Iterable[ResultRow], earlier: Iterable[ResultRow] = ()) -> Scatters:
    """The scatter between the replicates of a campaign's designs that count, and of earlier campaigns."""
    current, before = _group_by_place(list_counted_replicates(rows)), _group_by_place(earlier)
    return Scatters(
        log_kd=pool_scatter(map(_list_log_kds, current.values()), map(_list_log_kds, before.values())),
        tm_C=pool_scatter(map(_list_tms, current.values()), map(_list_tms, before.values())),
    )


def list_counted_replicates(rows: Iterable[ResultRow]) -> tuple[ResultRow, ...]:
    """The replicates of the results that count: a result that a later one replaces may list the same measurements."""
    rows = tuple(rows)
    designs = _group_summaries(rows).values()
    counted = {_get_place(row) for summaries in designs for row in _take_latest_of_kinds(summaries)}
    replaced = {_get_place(row) for summaries in designs for row in summaries} - counted
    return tuple(row for row in rows if row.level is Level.REPLICATE and _get_place(row) not in replaced)


def _group_summaries(rows: Iterable[ResultRow]) -> dict[tuple[str, str], list[ResultRow]]:
    """The summary rows of each design and experiment."""
    groups: defaultdict[tuple[str, str], list[ResultRow]] = defaultdict(list)
    for row in rows:
        if row.level is Level.SUMMARY:
            groups[row.name, row.experiment_code].append(row)
    return groups


def _group_by_place(rows: Iterable[ResultRow]) -> dict[_Place, list[ResultRow]]:
    groups: defaultdict[_Place, list[ResultRow]] = defaultdict(list)
    for row in rows:
        if row.level is Level.REPLICATE:
            groups[_get_place(row)].append(row)
    return groups


def _get_place(row: ResultRow) -> _Place:
    target = str(_read_extra(row).get("one_of_targets", ""))
    return row.experiment_code, row.name, row.result_id, row.result_type, target


def _list_log_kds(replicates: Iterable[ResultRow]) -> list[float]:
    return [math.log10(row.kd_M) for row in list_measured(replicates) if row.kd_M and row.qualifier is None]


def _list_tms(replicates: Iterable[ResultRow]) -> list[float]:
    return [value for value, sign in _signed_tms(replicates) if sign is None]


def _signed_tms(replicates: Iterable[ResultRow]) -> list[tuple[float, str | None]]:
    """Melting temperatures, each with its sign if it is a limit."""
    return [
        (value, row.qualifier if row.kd_M is None else None)
        for row in replicates
        if row.outcome is not Outcome.NO_EXPRESSION and (value := _read_count(row, "tm_C")) is not None
    ]


def _take_latest_of_kinds(rows: Sequence[ResultRow]) -> tuple[ResultRow, ...]:
    """One row per kind of result; first the one that the summary is about, binding before all others."""
    latest: dict[str, ResultRow] = {}
    for row in rows:
        earlier = latest.get(row.result_type)
        if earlier is None or row.outcome not in OPEN or earlier.outcome in OPEN:
            latest[row.result_type] = row
    return tuple(
        sorted(
            latest.values(),
            key=lambda row: (
                row.outcome in OPEN,
                not row.result_id,
                _KINDS.get(snake_case(row.result_type), len(_KINDS)),
                row.result_type,
            ),
        )
    )


def _summarize_design(
    entries: Sequence[ResultRow],
    replicates: Mapping[_Place, Sequence[ResultRow]],
    scatters: Scatters,
    *,
    analyses: Mapping[tuple[str, str], PackageAnalysis],
    context: Mapping[str, Any],
    highest_molar: float | None,
) -> Ranked:
    row = entries[0]
    results = [(entry.experiment_code, entry.result_id) for entry in entries]
    packages = [analyses[result] for result in results if result in analyses]
    curves = [part for analysis in packages for part in analysis.kinetics if part.name == row.name]
    melts = [part for analysis in packages for part in analysis.melting if part.name == row.name]
    verdict, reasons = combine_verdicts([*curves, *melts])
    measurements = replicates.get(_get_place(row), ())
    binding, log_kd = _summarize_binding(row, measurements, curves, scatters.log_kd)
    temperature, tm = _summarize_melting(entries, replicates, scatters.tm_C)
    is_beside_kd = binding.get("kd_M") is not None
    # A design has one sign, that of its main value: a limit without one would be an exact value.
    if (is_beside_kd or temperature["tm_C"] is None) and temperature.pop("qualifier"):
        temperature["tm_C"] = temperature["reported_tm_C"] = None
    doubts = (*binding.pop("doubts", ()), *temperature.pop("tm_doubts"))
    extra = _read_extra(row)
    values = {
        "name": row.name,
        "experiment_code": row.experiment_code,
        "result_type": row.result_type,
        "control": row.control,
        "outcome": row.outcome,
        **{
            kind.column: _find_first_number(entries, kind.column)
            for kind in (CONCENTRATION, *FURTHER_QUANTITIES)
        },
        "expression": next((entry.expression for entry in entries if entry.expression), None),
        "replicates": len(measurements),
        "verdict": verdict,
        "reasons": reasons,
        "doubts": doubts,
        "expects_binding": expects_binding(row.control, extra, context["attributes"]),
        "data_source": next((word for entry in entries if (word := _find_data_source(entry))), None),
        "aa_string": next((entry.aa_string for entry in entries if entry.aa_string), None),
    }
    design = DesignSummary.model_validate({**values, **binding, **temperature, **context})
    main = find_main_quantity(design)
    marks = {
        **dict.fromkeys(
            kind.column
            for kind in (CONCENTRATION, *FURTHER_QUANTITIES)
            if (kind is not main or design.qualifier is None) and _is_limit(kind, entries)
        ),
        **(dict.fromkeys(_REPORTED) if MEAN_OF in extra else {}),
        "extrapolated": _is_extrapolated(design, [row, *measurements], curves, highest_molar),
        "simulated": design.simulated or is_made_up(design),
    }
    return Ranked(design.model_copy(update=marks), log_kd=log_kd, tm=tm)


def is_of_lab(row: ResultRow) -> bool:
    """Whether a local lab has given the row: it alone says where its values are from."""
    return _find_data_source(row) is not None


def _find_data_source(row: ResultRow) -> str | None:
    word = _read_extra(row).get("data_source")
    return word if isinstance(word, str) else None


def _is_extrapolated(
    design: DesignSummary,
    rows: Sequence[ResultRow],
    curves: Sequence[ReplicateKinetics],
    highest_molar: float | None,
) -> bool:
    """Whether K_D is above the highest concentration: of the curves, else as ordered, else as the rows say."""
    if design.kd_M is None or design.qualifier is not None:
        return False
    highest = max((dose for curve in curves for dose in curve.concentrations_nM), default=0.0) * _NM
    highest = highest or highest_molar or 0.0
    if highest:
        return design.kd_M > highest
    return any(row.doubt is not None and EXTRAPOLATED in row.doubt for row in rows)


def _summarize_binding(
    row: ResultRow,
    replicates: Sequence[ResultRow],
    curves: Sequence[ReplicateKinetics],
    scatter: Scatter | None,
) -> tuple[dict[str, Any], Mean | None]:
    """The binding columns of one row; constants only where they are a measurement."""
    words = {"binding": row.binding, "binding_strength": row.binding_strength}
    if row.outcome not in HAS_RESULT:
        return {**words, "qualifier": row.qualifier if row.kd_M is None else None}, None
    reported = _take_positive(row.kd_M)
    used = find_averaged(reported, replicates) if reported is not None else ()
    stated, mean = _read_stated_kd(row, replicates, curves, scatter)
    stated["doubts"] = (*stated.get("doubts", ()), *_list_row_doubts(row))
    values = {
        **words,
        "kon_per_M_s": finite_or_none(row.kon_per_M_s),
        "koff_per_s": finite_or_none(row.koff_per_s),
        "reported_kd_M": reported,
        "reported_qualifier": row.qualifier if reported is not None else None,
        "replicates_reported": len(used) or None,
        "qualifier": row.qualifier,
        **stated,
    }
    if stated.get("kd_M") is not None:
        values["outcome"] = (
            Outcome.MEASURED
        )  # a weak binder, whose replicates the laboratory does not average
    return values, mean


def _read_stated_kd(
    row: ResultRow,
    replicates: Sequence[ResultRow],
    curves: Sequence[ReplicateKinetics],
    scatter: Scatter | None,
) -> tuple[dict[str, Any], Mean | None]:
    """K_D with its qualifier and interval, and its mean over the replicates (log10 M) where it is one."""
    measured = list_measured(replicates)
    exact = [replicate for replicate in measured if replicate.qualifier is None]
    if (limit := _find_kd_limit(row, measured, curves)) is not None:
        return {"kd_M": limit[1], "qualifier": limit[0], "doubts": limit[2]}, None
    if exact and len(exact) == len(measured):
        mean = average_values([math.log10(replicate.kd_M) for replicate in exact if replicate.kd_M], scatter)
        low, high = map(_raise_ten, mean.interval)
        if mean.error is None:
            low, high = find_fitted_interval(
                10**mean.value, [part for part in curves if part.replicate == exact[0].replicate]
            )
        doubts = _list_doubts(mean, replicates)
        values = {"kd_M": 10**mean.value, "replicates_averaged": mean.count, "doubts": doubts}
        return {**values, "qualifier": None, "kd_low_M": low, "kd_high_M": high}, mean
    kd = _take_positive(row.kd_M) or _read_apparent(row)
    if measured:  # some are limits, and no limit holds for most
        limit_doubts: tuple[str, ...] = (
            f"{len(measured) - len(exact)} of {len(measured)} replicates are limits, so there is no mean over all",
        )
        if kd is None:
            kd, _, limit_doubts = _join_kds(measured)
        return {"kd_M": kd, "qualifier": None, "doubts": limit_doubts}, None
    if kd is None:
        return {}, None
    low, high = find_fitted_interval(kd, curves)
    return {"kd_M": kd, "qualifier": None, "kd_low_M": low, "kd_high_M": high}, None


def _find_kd_limit(
    row: ResultRow, measured: Sequence[ResultRow], curves: Sequence[ReplicateKinetics]
) -> tuple[str, float, tuple[str, ...]] | None:
    """The limit that K_D is only known by, with its sign and doubts: of the curves, the laboratory, or most replicates."""
    if (bound := find_fitted_limit(curves)) is not None:
        return *bound, ()
    reported = _take_positive(row.kd_M)
    if reported is not None and row.qualifier is not None:
        return row.qualifier, reported, ()
    kd, sign, doubts = _join_kds(measured)
    return (sign, kd, doubts) if kd is not None and sign is not None else None


def _join_kds(measured: Iterable[ResultRow]) -> tuple[float | None, str | None, tuple[str, ...]]:
    return join_values(((replicate.kd_M, replicate.qualifier) for replicate in measured), by_factors=True)


def _list_row_doubts(row: ResultRow) -> tuple[str, ...]:
    """The doubts of a row, without the one that has a column of its own."""
    doubts = row.doubt.split("; ") if row.doubt else []
    return tuple(doubt for doubt in doubts if not doubt.startswith(EXTRAPOLATED))


def _list_doubts(mean: Mean, replicates: Sequence[ResultRow]) -> tuple[str, ...]:
    doubts = []
    if mean.is_own:
        doubts.append(
            "the replicates differ more than those of other designs: the interval is from them alone"
        )
    negative = sum(replicate.outcome is Outcome.NO_BINDING for replicate in replicates)
    if negative:
        doubts.append(f"{negative} of {len(replicates)} replicates do not bind; {mean.count} give the K_D")
    return tuple(doubts)


def _summarize_melting(
    entries: Sequence[ResultRow], replicates: Mapping[_Place, Sequence[ResultRow]], scatter: Scatter | None
) -> tuple[dict[str, Any], Mean | None]:
    """T_m as the mean over the replicates of the entry that reports one, with its interval; a limit stays one."""
    entry = next((candidate for candidate in entries if _read_count(candidate, "tm_C") is not None), None)
    parts = next(
        (
            temperatures
            for candidate in entries
            if (temperatures := _signed_tms(replicates.get(_get_place(candidate), ())))
        ),
        [],
    )
    values = [value for value, sign in parts if sign is None]
    reported = entry.tm_C if entry is not None else None
    sign = entry.qualifier if entry is not None and entry.kd_M is None else None
    doubts: tuple[str, ...] = ()
    if len(values) < len(parts):
        value, joined_sign, doubts = join_values(parts, by_factors=False)
        if reported is None or (sign is None and joined_sign is not None):
            reported, sign = value, joined_sign
    if not values or sign is not None or doubts:
        shown = {"tm_C": reported, "qualifier": sign, "tm_doubts": doubts}
        return {**shown, "reported_tm_C": entry.tm_C if entry is not None else None}, None
    mean = average_values(values, scatter)
    low, high = mean.interval
    interval = {"tm_low_C": low, "tm_high_C": high}
    return {
        "tm_C": mean.value,
        **interval,
        "reported_tm_C": reported,
        "qualifier": None,
        "tm_doubts": (),
    }, mean


def _read_apparent(row: ResultRow) -> float | None:
    """The apparent K_D (M), which the laboratory gives where its class has no mean."""
    return read_apparent_kd(_read_extra(row)) if measures_affinity(row.result_type) else None


def _read_extra(row: ResultRow) -> Mapping[str, Any]:
    try:
        extra = json.loads(row.extra) if row.extra else {}
    except ValueError:
        return {}
    return extra if isinstance(extra, dict) else {}


def _take_positive(value: float | None) -> float | None:
    number = finite_or_none(value)
    return number if number is not None and number > 0 else None


def _raise_ten(value: float | None) -> float | None:
    try:
        return None if value is None else 10**value
    except OverflowError:
        return None


def combine_verdicts(replicates: Sequence[_Replicate]) -> tuple[Verdict | None, tuple[str, ...]]:
    """The verdict of most replicates; without a majority `review`. None where no curve was looked at.

    Reasons are in the order of the replicates, each once; a replicate with another verdict is named in its reasons.
    """
    if not replicates:
        return None, ()
    counts = Counter(replicate.verdict for replicate in replicates)
    most, count = counts.most_common(1)[0]
    agreed = 2 * count > len(replicates)
    verdict = most if agreed else Verdict.REVIEW
    reasons = [] if agreed else [f"the replicates differ: {_count_kinds(counts)}"]
    for replicate in replicates:
        prefix = "" if replicate.verdict is verdict else f"replicate {replicate.replicate or '?'}: "
        reasons += [f"{prefix}{reason}" for reason in replicate.reasons]
    return verdict, tuple(dict.fromkeys(reasons))


def _count_kinds(counts: Counter[Verdict]) -> str:
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])


def _find_first_number(entries: Sequence[ResultRow], column: str) -> float | None:
    return next((value for entry in entries if (value := _read_count(entry, column)) is not None), None)


def _is_limit(kind: QuantityKind, entries: Sequence[ResultRow]) -> bool:
    """Whether the first number of a kind is a limit, whose sign is lost in a row about another value."""
    entry = next((entry for entry in entries if _read_count(entry, kind.column) is not None), None)
    return entry is not None and entry.qualifier is not None and find_main_quantity(entry) is kind


def _read_count(row: ResultRow, column: str) -> float | None:
    """A number of a row, unless a word for a call in it is unknown, or the assay measures it and its outcome is open.

    Then it stays out of ranking, statistics and learning.
    """
    names: tuple[CallField, ...] = tuple(CALL_FIELDS)
    is_unclear = any(read_call(getattr(row, name), name).unread is not None for name in names)
    is_refused = row.outcome in OPEN and column not in _list_columns_beside(row.result_type)
    return None if is_unclear or is_refused else finite_or_none(getattr(row, column))


def _list_columns_beside(kind: str) -> frozenset[str]:
    """The columns of an assay type that are not a measurement of it, such as the concentration of an affinity."""
    fields = RecordReader().find_fields(kind)
    return frozenset(one.column for one in fields.columns if one not in fields.measured)
