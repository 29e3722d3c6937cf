"""Turns the service's result records into tidy rows (contract 2.10).

Nothing raises for odd content, so that a new field does not end a wait of ten days: the rest goes to `extra`, and a value that
cannot be read is a line of `list_unread_values`.
"""

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from prefect_assay.analysis.results.calls import CALL_FIELDS, read_call
from prefect_assay.analysis.results.design import find_main_quantity
from prefect_assay.analysis.results.interval import join_values
from prefect_assay.analysis.results.mapping import ResultMapping
from prefect_assay.analysis.results.matching import Matched, match_results
from prefect_assay.analysis.results.measurements import (
    RecordReader,
    RecordReading,
    decide_outcome,
    find_unit,
    list_other_fields,
    name_assay_type,
    read_apparent_kd,
)
from prefect_assay.analysis.results.quantities import Unread
from prefect_assay.analysis.results.row import (
    HAS_RESULT,
    MEAN_OF,
    OPEN,
    Level,
    Outcome,
    ResultRow,
)
from prefect_assay.service.assays import KD, MAIN_QUANTITIES, QUANTITIES
from prefect_assay.service.models.answer_json import without_open_links
from prefect_assay.service.models.result import Replicate, Result, ResultEntry
from prefect_assay.service.models.sequences import ProteinSequence
from prefect_assay.service.words import many

# Consumed by columns of their own, in addition to the fields that a reading has taken.
_ROW_FIELDS: Final = frozenset({"result_type", "sequence_name", "name", "replicates"})
_SEQUENCE_COLUMNS: Final = frozenset({"name", "aa_string", "control"})
UNCLEAR_UNIT: Final = "not clear"
_SHOWN: Final = 60  # letters of a target in a doubt


def read_rows(
    results: Iterable[Result],
    *,
    experiment_code: str = "",
    ordered: Sequence[ProteinSequence] = (),
    complete: bool = False,
    matched: Matched | None = None,
    unread: bool = False,
    highest_molar: float | None = None,
    mapping: ResultMapping | None = None,
) -> tuple[ResultRow, ...]:
    """Tidy rows: for each design a summary row, then one row per replicate.

    A result that lists a design several times has a row per replicate: the summary row has the geometric mean of K_D and of rate
    constants, the mean of other values, and the outcome of most replicates.

    Each design of `ordered` without a result gets a row: `pending`, or when the results are `complete` `missing`, but
    `unknown` next to an entry that may be its, or where part of the results is `unread`. `matched` says which design each entry
    is about. Whether a design is a control, and its residues, come from the result, or else from the order: a thermostability
    result says neither (service-shapes, Results). A K_D above `highest_molar`, the highest concentration, gets a doubt.
    `mapping` declares fields that have no published meaning.
    """
    results = tuple(results)
    matched = matched or match_results(results, ordered)
    reader = RecordReader.of(results, highest_molar, mapping)
    made = [
        row
        for i, result in enumerate(results)
        for row in _read_result(i, result, experiment_code, matched, reader)
    ]
    names = {design.name for design in matched.designs.values()}
    absent = [design for design in ordered if design.name not in names]
    unknown = Outcome.UNKNOWN if matched.nameless or unread else Outcome.MISSING
    outcome = unknown if complete else Outcome.PENDING
    return (*made, *(_make_absent_row(design, experiment_code, outcome) for design in absent))


def list_unread_values(results: Iterable[Result], mapping: ResultMapping | None = None) -> tuple[str, ...]:
    """A line per result and value that is not read, with the reason: numbers, qualifiers, units and words for calls."""
    results = tuple(results)
    reader = RecordReader.of(results, mapping=mapping)
    counts = Counter(
        (result.id, problem)
        for result in results
        for entry in result.summary
        for problem in reader.list_problems(result, entry)
    )
    return tuple(
        f"{what} in result {result_id} is {reason} ({many(count, 'row')}): it is not read, and the column extra has it as it came"
        for (result_id, (what, reason)), count in counts.items()
    )


def find_outcome(values: Mapping[str, Any]) -> Outcome:
    """The outcome of a row by its words and columns, such as those of a table of measurements."""
    return decide_outcome(
        {name: read_call(values.get(name), name) for name in CALL_FIELDS},
        has_kd=values.get("kd_M") is not None,
        is_measured=values.get("tm_C") is not None,
    )


def _make_absent_row(design: ProteinSequence, experiment_code: str, outcome: Outcome) -> ResultRow:
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


def _read_result(
    index: int, result: Result, experiment_code: str, matched: Matched, reader: RecordReader
) -> Iterator[ResultRow]:
    """The rows of a result: entries about one design and target are its replicates."""
    groups: defaultdict[tuple[str, str, str], list[int]] = defaultdict(list)
    for number, entry in enumerate(result.summary):
        target = json.dumps((entry.model_extra or {}).get("target"), sort_keys=True, default=str)
        groups[matched.name((index, number)), name_assay_type(result, entry), target].append(number)
    targets = Counter((name, kind) for name, kind, _ in groups)
    for (name, kind, target), numbers in groups.items():
        made = [
            list(_rows_of_entry((index, number), result, experiment_code, matched, reader))
            for number in numbers
        ]
        rows = made[0] if len(made) == 1 else list(_join_replicates(made))
        yield from rows if targets[name, kind] == 1 else _name_target(rows, target)


def _rows_of_entry(
    place: tuple[int, int], result: Result, experiment_code: str, matched: Matched, reader: RecordReader
) -> Iterator[ResultRow]:
    """The summary row of one entry, then a row for each replicate. `place`: the numbers of the result and of the entry."""
    entry = result.summary[place[1]]
    ordered = matched.designs.get(place)
    control = _read_control(entry)
    shared = {
        "experiment_code": experiment_code,
        "result_id": result.id,
        "result_type": name_assay_type(result, entry),
        "name": matched.name(place),
        "control": ordered.control if control is None and ordered else control,
        "aa_string": entry.aa_string or (ordered.aa_string if ordered else None),
    }
    whole = reader.read(result, entry, entry)
    summary = _make_row(shared, result, entry, entry, whole, reader)
    rows = []
    for part in entry.replicates:
        reading = reader.read(result, entry, part)
        if whole.is_called and not reading.is_called and whole.outcome not in HAS_RESULT:
            reading = replace(
                reading, outcome=whole.outcome
            )  # what is called of the design holds for each replicate
        rows.append(_make_row(shared, result, entry, part, reading, reader))
    says_nothing = whole.outcome is Outcome.UNKNOWN and not whole.is_called
    if says_nothing and any(row.outcome not in OPEN for row in rows):
        joined, *rows = _join_replicates([[summary, *rows]])
        kept = {name: getattr(summary, name) for name in ("kd_log_std", "fit_quality")}
        extra = {**json.loads(joined.extra or "{}"), MEAN_OF: "replicates"}
        yield from (joined.model_copy(update={**kept, "extra": _dump_json(extra)}), *rows)
    else:
        yield from (summary, *rows)


def _make_row(
    shared: Mapping[str, Any],
    result: Result,
    entry: ResultEntry,
    part: ResultEntry | Replicate,
    reading: RecordReading,
    reader: RecordReader,
) -> ResultRow:
    places = reader.find_places(result, entry, part)
    record = places[0]
    values = {
        **reading.columns,
        "log10_kd": _compute_log10(reading.columns["kd_M"]),
        "kd_log_std": _format_number(record.get("kd_log_std")),
        "fit_quality": _read_text(record.get("fit_quality")),
        "replicate": _read_whole(record.get("replicate")),
        "doubt": "; ".join(reading.doubts) or None,
    }
    filled = {name for name in ("kd_log_std", "fit_quality", "replicate") if values[name] is not None}
    raw = without_open_links(part.model_dump(mode="json"))
    left_out = _ROW_FIELDS | reading.taken | filled
    extra = {key: value for key, value in raw.items() if key not in left_out and value not in (None, "")}
    for name in list_other_fields(name_assay_type(result, entry)):
        if name not in extra and record.get(name) is not None:
            extra[name] = record[name]  # also where a mapping says so
    if part is entry:
        _keep_rest_of_sequence(extra)
    if "kd_app" in extra or any(name in extra for name in KD.fields):
        unit = find_unit(KD, *places)
        if isinstance(unit, Unread) or (unit is None and KD.word in reader.in_other_units):
            extra["kd_units"] = UNCLEAR_UNIT
        elif unit is not None:
            extra["kd_units"] = unit
    return ResultRow(
        **shared,
        **values,
        level=Level.SUMMARY if part is entry else Level.REPLICATE,
        outcome=reading.outcome,
        extra=_dump_json(extra),
    )


def _join_replicates(entries: Sequence[Sequence[ResultRow]]) -> Iterator[ResultRow]:
    """A summary row of the entries of one design, then a row per replicate."""
    replicates: list[ResultRow] = []
    summaries: list[ResultRow] = []  # of entries whose replicates count
    for summary, *rows in entries:
        if _say_less(rows, summary):
            replicates.append(summary)
        else:
            replicates += rows
            summaries.append(summary)
    outcomes = Counter(
        Outcome.MEASURED if row.outcome in HAS_RESULT else row.outcome
        for row in replicates
        if row.outcome not in OPEN
    )
    most = outcomes.most_common(2)
    doubts = []
    if not most:
        outcome = replicates[0].outcome
    elif len(most) > 1 and most[0][1] == most[1][1]:
        outcome = Outcome.UNKNOWN
        doubts.append("as many replicates say one thing as another")
    else:
        outcome = most[0][0]
    used = [row for row in replicates if row.outcome in HAS_RESULT] if outcome is Outcome.MEASURED else []
    if used and all(row.outcome is Outcome.BINDING for row in used):
        outcome = Outcome.BINDING
    values: dict[str, Any] = dict.fromkeys(["qualifier", *(kind.column for kind in QUANTITIES)])
    for kind in QUANTITIES:
        measured = [row for row in used if getattr(row, kind.column) is not None]
        parts = [
            (getattr(row, kind.column), row.qualifier)
            for row in measured or (summaries if used else [])
            if row.qualifier is None or find_main_quantity(row) is kind
        ]
        value, sign, limit_doubts = join_values(parts, by_factors=kind.has_log_mean)
        if sign is None:
            values[kind.column] = value
        elif all(values[main.column] is None for main in MAIN_QUANTITIES):
            values |= {kind.column: value, "qualifier": sign}
        doubts += limit_doubts
    first = replicates[0]
    words = {
        name: next(
            (word for row in (*(used or replicates), *summaries) if (word := getattr(row, name)) is not None),
            None,
        )
        for name in ("binding", "binding_strength", "expression")
    }
    doubts += dict.fromkeys(row.doubt for row in replicates if row.doubt)
    yield first.model_copy(
        update={
            "level": Level.SUMMARY,
            "replicate": None,
            "outcome": outcome,
            "kd_log_std": None,
            "fit_quality": None,
            **values,
            **words,
            "log10_kd": _compute_log10(values["kd_M"]),
            "doubt": "; ".join(doubts) or None,
            "extra": _dump_json({**_read_shared_extra(entries), "replicates_listed": len(replicates)}),
        }
    )
    numbers = [row.replicate for row in replicates]
    is_numbered = None not in numbers and len({*numbers}) == len(numbers)
    for number, row in enumerate(replicates, start=1):
        yield row.model_copy(
            update={"level": Level.REPLICATE, "replicate": row.replicate if is_numbered else number}
        )


def _say_less(rows: Sequence[ResultRow], summary: ResultRow) -> bool:
    """Whether the replicates of an entry have no outcome, or a call where the entry has a value."""
    outcomes = {row.outcome for row in rows} - OPEN
    return not outcomes or (outcomes == {Outcome.BINDING} and summary.outcome is Outcome.MEASURED)


def _name_target(rows: Iterable[ResultRow], target: str) -> Iterator[ResultRow]:
    """The rows of a design that its result has several targets of: in `extra` is which one, so that replicates stay apart."""
    for row in rows:
        extra = {**json.loads(row.extra or "{}"), "one_of_targets": json.loads(target)}
        doubts = [row.doubt] if row.doubt else []
        if row.level is Level.SUMMARY:
            doubts.append(f"measured against several targets, and this is of {target[:_SHOWN]}")
        yield row.model_copy(update={"extra": _dump_json(extra), "doubt": "; ".join(doubts) or None})


def _read_shared_extra(entries: Sequence[Sequence[ResultRow]]) -> dict[str, Any]:
    """The fields without a column that are equal in all entries of a design, such as `positive_control`."""
    extras = [json.loads(summary.extra or "{}") for summary, *_ in entries]
    shared = {
        name: value
        for name, value in extras[0].items()
        if all(name in extra and extra[name] == value for extra in extras)
    }
    if any(read_apparent_kd(extra) != read_apparent_kd(shared) for extra in extras):
        shared.pop("kd_app", None)  # its unit or a limit differs
    return shared


def _read_control(entry: ResultEntry) -> bool | None:
    value = entry.sequence.get("control") if isinstance(entry.sequence, dict) else None
    return value if isinstance(value, bool) else None


def _keep_rest_of_sequence(extra: dict[str, Any]) -> None:
    sequence = extra.pop("sequence", None)
    if isinstance(sequence, dict):
        rest = {key: value for key, value in sequence.items() if key not in _SEQUENCE_COLUMNS and value}
        if rest:
            extra["sequence"] = rest


def _dump_json(extra: Mapping[str, Any]) -> str | None:
    return json.dumps(extra, sort_keys=True, ensure_ascii=False) if extra else None


def _format_number(value: Any) -> float | None:
    """A finite number, or None. Null is not zero, and NaN is not a measurement."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _read_whole(value: Any) -> int | None:
    number = _format_number(value)
    return int(number) if number is not None and number.is_integer() else None


def _compute_log10(value: float | None) -> float | None:
    return math.log10(value) if value else None


def _read_text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
