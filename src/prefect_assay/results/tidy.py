"""Turns the service's result records into tidy rows (contract 2.10).

Nothing raises for odd content, so that a new field does not end a wait of ten days: the rest goes to `extra`.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from prefect_assay.models.archived import without_open_links
from prefect_assay.models.result import Replicate, Result, ResultEntry
from prefect_assay.models.sequences import ProteinSequence
from prefect_assay.models.vocabulary import ExperimentType, snake_case
from prefect_assay.models.words import many
from prefect_assay.results.matching import Matched, match
from prefect_assay.results.row import Level, Outcome, ResultRow
from prefect_assay.results.units import QUANTITIES, Units, parts_of, places_of

# Consumed by columns of their own; everything else of a record is kept in `extra`.
_ENTRY_COLUMNS: Final = frozenset(
    {"result_type", "sequence_name", "name", "kd_mean", "kd_log_std", "kon_mean", "koff_mean", "binding"}
    | {"binding_strength", "expression", "fit_quality", "tm", "replicates", "concentration_value"}
)
_REPLICATE_COLUMNS: Final = frozenset(
    {"replicate", "kd", "kon", "koff", "binding", "expression", "fit_quality"}
    | {"tm", "binding_strength", "concentration_value"}
)
_WORDS: Final = ("binding", "binding_strength", "expression", "fit_quality")
_CALLS: Final = frozenset({"true", "false", "unknown", "in_progress"})  # service-shapes, Results
_NO_EXPRESSION: Final = frozenset({"none", "no", "false", "no_expression", "not_expressed", "failed"})
_BINDS: Final = frozenset({"strong", "medium", "weak"})
# Their numbers have columns: a screening without a call, or a melting curve without a Tm, measured nothing.
_OWN_COLUMN: Final = frozenset(
    {ExperimentType.AFFINITY, ExperimentType.SCREENING, ExperimentType.THERMOSTABILITY}
)
_NOT_MEASURED: Final = frozenset({"sequence", "target", "place", "metadata"})
_SEQUENCE_COLUMNS: Final = frozenset({"name", "aa_string", "control"})


def rows(
    results: Iterable[Result],
    *,
    experiment_code: str = "",
    ordered: Sequence[ProteinSequence] = (),
    complete: bool = False,
    matched: Matched | None = None,
    unread: bool = False,
) -> tuple[ResultRow, ...]:
    """Tidy rows: for each design a summary row, then one row per replicate.

    Each design of `ordered` without a result gets a row, too: `pending`, or when the results are `complete` `missing`, but
    `unknown` beside an entry that may be its, or where part of the results is `unread`. `matched` says which design each entry is about. Whether a design is a control, and its residues, come from the result, or else from the order: a thermostability
    result says neither (service-shapes, Results).
    """
    results = tuple(results)
    matched = matched or match(results, ordered)
    units = Units.of(results)
    found = [
        row
        for i, result in enumerate(results)
        for row in _result_rows(i, result, experiment_code, matched, units)
    ]
    names = {design.name for design in matched.designs.values()}
    absent = [design for design in ordered if design.name not in names]
    unknown = Outcome.UNKNOWN if matched.nameless or unread else Outcome.MISSING
    outcome = unknown if complete else Outcome.PENDING
    return (*found, *(_absent_row(design, experiment_code, outcome) for design in absent))


def unread_values(results: Iterable[Result]) -> tuple[str, ...]:
    """A line per result with numbers in an unknown unit, or with binding calls in unknown words, which are not guessed."""
    results = tuple(results)
    calls = Counter(
        (result.id, part.binding)
        for result in results
        for entry in result.summary
        for part in parts_of(entry)
        if part.binding is not None and _word(part.binding) not in _CALLS
    )
    said = ", ".join(sorted(_CALLS))
    return (
        *Units.of(results).lines(),
        *(
            f"binding in result {result_id} is {call!a} ({many(count, 'row')}), and the words known here are {said}: it is no call"
            for (result_id, call), count in calls.items()
        ),
    )


def _absent_row(design: ProteinSequence, experiment_code: str, outcome: Outcome) -> ResultRow:
    return ResultRow(
        experiment_code=experiment_code,
        result_id="",
        result_type="",
        level=Level.SUMMARY,
        name=design.name,
        control=design.control,
        outcome=outcome,
        aa_string=design.aa_string,
    )


def _result_rows(
    index: int, result: Result, experiment_code: str, matched: Matched, units: Units
) -> Iterator[ResultRow]:
    for number, entry in enumerate(result.summary):
        ordered = matched.designs.get((index, number))
        control = _control(entry)
        shared = {
            "experiment_code": experiment_code,
            "result_id": result.id,
            "result_type": entry.result_type or result.result_type,
            "name": matched.name((index, number)),
            "control": ordered.control if control is None and ordered else control,
            "aa_string": entry.aa_string or (ordered.aa_string if ordered else None),
        }
        for part in parts_of(entry):
            raw = without_open_links(part.model_dump(mode="json"))
            columns = _ENTRY_COLUMNS if part is entry else _REPLICATE_COLUMNS
            extra = {key: value for key, value in raw.items() if key not in columns and value is not None}
            extra |= without_open_links(dict(part.unread))
            places = places_of(result, entry, part)
            values = {
                column: value
                for quantity in QUANTITIES
                for column, value in units.column(quantity, extra, *places).items()
            }
            if isinstance(part, Replicate):
                replicate: dict[str, Any] = {**values, "replicate": part.replicate}
                yield _row(Level.REPLICATE, shared, replicate, raw, extra)
            else:
                _keep_rest_of_sequence(extra)
                yield _row(
                    Level.SUMMARY, shared, {**values, "kd_log_std": _number(part.kd_log_std)}, raw, extra
                )


def _row(
    level: Level,
    shared: Mapping[str, Any],
    values: dict[str, Any],
    raw: Mapping[str, Any],
    extra: Mapping[str, Any],
) -> ResultRow:
    values |= {word: _text(raw.get(word)) for word in _WORDS}
    values["log10_kd"] = _log10(values["kd_M"])
    return ResultRow(
        **shared,
        **values,
        level=level,
        outcome=outcome_of(str(shared["result_type"]), values, extra),
        qualifier=_qualifier(values, raw),
        extra=json.dumps(extra, sort_keys=True, ensure_ascii=False) if extra else None,
    )


def _control(entry: ResultEntry) -> bool | None:
    value = entry.sequence.get("control") if isinstance(entry.sequence, dict) else None
    return value if isinstance(value, bool) else None


def _keep_rest_of_sequence(extra: dict[str, Any]) -> None:
    sequence = extra.pop("sequence", None)
    if isinstance(sequence, dict):
        rest = {key: value for key, value in sequence.items() if key not in _SEQUENCE_COLUMNS and value}
        if rest:
            extra["sequence"] = rest


def _qualifier(values: Mapping[str, Any], raw: Mapping[str, Any]) -> str | None:
    """`<` or `>` of the row's main value: K_D, or without one the concentration."""
    source = ("kd_qualifier", "kd_display") if values["kd_M"] is not None else ("concentration_display",)
    for field in source:
        text = str(raw.get(field) or "").strip()
        if text[:1] in {"<", ">"}:
            return text[0]
    return None


def _number(value: Any) -> float | None:
    """A finite float, or None. Null is not zero, and NaN is not a measurement."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def _log10(value: float | None) -> float | None:
    return math.log10(value) if value is not None and value > 0 else None


def _text(value: Any) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else None


def outcome_of(result_type: str, values: Mapping[str, Any], extra: Mapping[str, Any]) -> Outcome:
    """The outcome of one row, by its type, its columns and what has no column.

    A negative binding call overrides a number: where all replicates were called, a fitted K_D of a non-binder is an
    artefact of the fit. A number overrides everything else.
    """
    verdict = _call(values)
    if verdict in {Outcome.NO_EXPRESSION, Outcome.NO_BINDING, Outcome.PENDING}:
        return verdict
    kind = snake_case(result_type)
    if values.get("kd_M") is not None or values.get("tm_C") is not None:
        return Outcome.MEASURED
    if verdict is Outcome.UNKNOWN and kind not in _OWN_COLUMN and _reports_something(kind, values, extra):
        return Outcome.MEASURED
    return verdict


def _call(values: Mapping[str, Any]) -> Outcome:
    """The outcome in the laboratory's words, without any number."""
    binding, strength = _word(values.get("binding")), _word(values.get("binding_strength"))
    if _word(values.get("expression")) in _NO_EXPRESSION:
        return Outcome.NO_EXPRESSION
    if binding == "in_progress":
        return Outcome.PENDING
    if binding == "false" or (strength == "none" and binding != "true"):
        return Outcome.NO_BINDING
    return Outcome.BINDING if binding == "true" or strength in _BINDS else Outcome.UNKNOWN


def _reports_something(kind: str, values: Mapping[str, Any], extra: Mapping[str, Any]) -> bool:
    """Return True if a type without columns of its own reports a number, or an expression level in words."""
    if values.get("concentration_nM") is not None:
        return True
    if kind == ExperimentType.EXPRESSION and _word(values.get("expression")) not in {"", "unknown"}:
        return True
    return _holds_number({key: value for key, value in extra.items() if key not in _NOT_MEASURED})


def _word(value: Any) -> str:
    return str(snake_case(value)).strip() if isinstance(value, str) else ""


def _holds_number(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(_holds_number(item) for item in value.values())
    if isinstance(value, list):
        return any(_holds_number(item) for item in value)
    return isinstance(value, int | float) and not isinstance(value, bool)
