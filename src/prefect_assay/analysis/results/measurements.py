"""What one record of a result says: its quantities, its calls, its outcome, and what is left unread.

A record is an entry of a result, or one of its replicates. Which fields are a measurement depends on the assay type. A field
that casts doubt on a number, such as a qualifier in an unknown word, leaves the number unread: it never becomes exact.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from prefect_assay.analysis.results.calls import (
    CALL_FIELDS,
    Call,
    CallField,
    ReadCall,
    is_negative_phrase,
    read_call,
)
from prefect_assay.analysis.results.mapping import ResultMapping
from prefect_assay.analysis.results.quantities import (
    SIGNS,
    Quantity,
    Unread,
    find_unit_factor,
    read_quantity,
    split_value,
)
from prefect_assay.analysis.results.row import Outcome
from prefect_assay.service.assays import (
    ASSAY_TYPES,
    CONCENTRATION,
    KD,
    MAIN_QUANTITIES,
    QUANTITIES,
    QuantityKind,
    find_assay_type,
)
from prefect_assay.service.models.result import Replicate, Result, ResultEntry
from prefect_assay.service.models.vocabulary import snake_case
from prefect_assay.service.words import listed


class AssayFields(NamedTuple):
    """The quantities of an assay type that have a column, and those of them that are a measurement of it."""

    columns: tuple[QuantityKind, ...] = ()
    measured: tuple[QuantityKind, ...] = ()


_UNSTATED: Final = AssayFields(
    tuple(dict.fromkeys(kind for one in ASSAY_TYPES.values() if one.is_published for kind in one.columns)),
    tuple(dict.fromkeys(kind for one in ASSAY_TYPES.values() if one.is_published for kind in one.measured)),
)
"""Those of a result that does not state its type: of the published shapes."""
EXTRAPOLATED: Final = "extrapolated"
FACTOR_BETWEEN_RATES_AND_KD: Final = 3.0
"""K_D and k_off / k_on that differ by more get a doubt."""

_EMPTY: Final = frozenset({"", "null", "none", "na", "n/a", "nan"})
_FIELDS_SHOWN: Final = 6  # of an entry that is not read
_SAME_SHOWN: Final = 0.05  # a value and its display, which is rounded
_SAME_VALUE: Final = 0.01
# Fields next to a number that say nothing on whether it is exact.
_BESIDE: Final = re.compile(
    r"_(?:units?|mean|value|app|1to1|log_std|std|sd|sem|error|method|model|source|quality|confidence|display)$"
)
_LIMITING: Final = re.compile(
    r"(?:^|_)(?:qualifier|relation|operator|modifier|comparator|sign|inequality|censor(?:ed|ing)?|limit|bound|prefix"
    r"|out_of_range|above|below|beyond|exceeds?|saturated)(?:_|$)"
)
_LIMIT_TEXT: Final = re.compile(
    r"(?:k_?d|affinity|tm|t_m)?\s*(?:is|=|:)?\s*(?:[<>≤≥≲≳]=?|&[lg][te];|gt|lt|gte|lte|(?:greater|less|more|lower|higher) than|above|below)"
    r"\s*[0-9.].*",
    re.IGNORECASE,
)
_NOT_NUMBERS: Final = frozenset(
    {
        "sequence",
        "sequence_name",
        "sequence_id",
        "name",
        "aa_string",
        "target",
        "metadata",
        "replicates",
        "replicate",
    }
    | {"result_type", "id"}
)
# A call in a field of another name confirms one, or makes it unknown.
_CALL_LIKE: Final = frozenset(
    {
        "call",
        "binding_call",
        "binding_status",
        "binding_class",
        "binding_result",
        "binding_outcome",
        "hit",
        "is_hit",
    }
    | {"classification", "class", "outcome", "verdict", "label", "bound", "is_bound", "binder_class"}
)


_ALL_CALL_FIELDS: Final = frozenset(one for names in CALL_FIELDS.values() for one in names)
_NEGATIVE_CALLS: Final = frozenset({Call.DOES_NOT_BIND, Call.NO_EXPRESSION})


_SAY_NO_LIMIT: Final = _NOT_NUMBERS | _ALL_CALL_FIELDS
# Fields of known shapes that describe a measurement and have no outcome, and how the names of others end.
_SAY_NO_OUTCOME: Final = (
    _SAY_NO_LIMIT
    | {"state", "method", "binding_model", "fit_quality", "confidence", "rmse_max_signal_pct", "performance"}
    | {"place", "positive_control", "data_source", "bli_result_id", "initial_330nm", "onset", "active"}
    | {"onset_pts_for_ratio", "inflection_pts_for_ratio", "unread_replicates"}
)
_ENDS_WITHOUT_OUTCOME: Final = ("unit", "units", "_std", "_method", "_display")
_APPARENT_FIELDS: Final = frozenset({"value", "ci_low", "ci_high"})


class Problem(NamedTuple):
    """A value that is not read: which one, and why."""

    what: str
    reason: str


@dataclass(frozen=True)
class RecordReading:
    """The columns of a record, its outcome, and its problems. `taken` are the fields that have a column of their own."""

    columns: Mapping[str, Any]
    outcome: Outcome
    taken: frozenset[str]
    problems: tuple[Problem, ...] = ()
    doubts: tuple[str, ...] = ()
    is_called: bool = False  # has a call of its own; that a design expresses decides nothing else


@dataclass(frozen=True)
class RecordReader:
    """Reads the records of one experiment.

    `in_other_units` are the kinds with a number that cannot be in the column's unit and has none of its own: then no number
    without a unit is read. `highest_molar` is the highest concentration of the experiment, above which a K_D is extrapolated.
    """

    in_other_units: frozenset[str] = frozenset()
    highest_molar: float | None = None
    mapping: ResultMapping | None = None
    results: tuple[Result, ...] = field(default=(), repr=False)

    @classmethod
    def of(
        cls,
        results: Iterable[Result],
        highest_molar: float | None = None,
        mapping: ResultMapping | None = None,
    ) -> "RecordReader":
        """The reader of an experiment's results."""
        known = tuple(results)
        reader = cls(highest_molar=highest_molar, mapping=mapping, results=known)
        return replace(reader, in_other_units=frozenset(reader.find_kinds_in_other_units()))

    def find_fields(self, kind: str) -> AssayFields:
        """The fields of an assay type, with those that the mapping declares."""
        declared = self.mapping.find_kinds(kind) if self.mapping else ()
        assay = find_assay_type(kind)
        fields = assay or (AssayFields() if kind else _UNSTATED)
        measured = () if assay and assay.is_call else declared
        return AssayFields((*fields.columns, *declared), (*fields.measured, *measured))

    def find_places(
        self, result: Result, entry: ResultEntry, part: ResultEntry | Replicate
    ) -> tuple[Mapping[str, Any], ...]:
        """Where a unit of a record may be named, from the inside out: the record itself comes first."""
        record = record_of(part)
        if self.mapping:
            record = self.mapping.apply(name_assay_type(result, entry), record)
        return record, entry.model_extra or {}, result.model_extra or {}, result.metadata

    def find_kinds_in_other_units(self) -> Iterator[str]:
        """The kinds with a number without a unit that cannot be in the column's."""
        for result in self.results:
            for entry in result.summary:
                kinds = self.find_fields(name_assay_type(result, entry)).columns
                for places in (self.find_places(result, entry, part) for part in parts_of(entry)):
                    for kind in kinds:
                        if find_unit(kind, *places) is None and not all(
                            _may_be_in_column_unit(kind, number) for number in _list_numbers(kind, places[0])
                        ):
                            yield kind.word

    def read(self, result: Result, entry: ResultEntry, part: ResultEntry | Replicate) -> RecordReading:
        """Read one record: the entry itself, or one of its replicates."""
        kind = name_assay_type(result, entry)
        assay = self.find_fields(kind)
        places = self.find_places(result, entry, part)
        record = places[0]
        columns: dict[str, Any] = {kind.column: None for kind in QUANTITIES}
        taken: set[str] = set()
        problems: list[Problem] = []
        readings: dict[QuantityKind, Quantity] = {}
        for quantity in QUANTITIES:
            fields = _list_filled(quantity, record)
            if not fields:
                continue
            if quantity not in assay.columns:
                reason = f"{_show(record[fields[0]])}, which is not a value of {_name_type(kind)}"
                problems.append(Problem(fields[0], reason))
                continue
            reading = self._read_quantity(quantity, fields, record, places)
            if isinstance(reading, Unread):
                problems.append(Problem(quantity.word, reading.reason))
            else:
                readings[quantity] = reading
        main = next((quantity for quantity in MAIN_QUANTITIES if quantity in readings), None)
        for quantity, reading in readings.items():
            if reading.qualifier is not None and quantity is not main:
                problems.append(Problem(quantity.word, _describe_other_limit(quantity, reading)))
            else:
                columns[quantity.column] = reading.value
                taken.update(_list_filled(quantity, record))
        columns["qualifier"] = readings[main].qualifier if main else _read_shown_qualifier(record)
        names: tuple[CallField, ...] = tuple(CALL_FIELDS)
        calls = {name: _read_call(name, record) for name in names}
        stated: dict[CallField, ReadCall] = {name: calls[name][0] for name in names}
        for name, (call, text, used) in calls.items():
            columns[name] = text
            taken.update(used)
            if call.unread is not None:
                problems.append(Problem(name, f"{call.unread[:60]!a}, which is not a known word for a call"))
        if _contradict_each_other(stated["binding"], stated["binding_strength"]):
            both = f"{_show(columns['binding'])} and binding_strength {_show(columns['binding_strength'])}"
            problems.append(Problem("binding", f"{both}, which contradict each other"))
        is_measured = any(columns[quantity.column] is not None for quantity in assay.measured) or any(
            _holds_value(name, record.get(name)) for name in list_other_fields(kind)
        )
        outcome = decide_outcome(
            stated,
            has_kd=columns["kd_M"] is not None,
            is_measured=is_measured or _is_measured_by_call(kind, stated),
            is_in_progress=read_call(record.get("state")).call is Call.IN_PROGRESS,
        )
        return RecordReading(
            columns,
            outcome,
            frozenset(taken),
            tuple(problems),
            self._find_doubts(columns),
            any(call.call not in {Call.NOT_STATED, Call.EXPRESSES} for call in stated.values()),
        )

    def list_problems(self, result: Result, entry: ResultEntry) -> Iterator[Problem]:
        """The problems of an entry and of its replicates; without any, the fields of one that has no value and no call."""
        kind = name_assay_type(result, entry)
        readings = [self.read(result, entry, part) for part in parts_of(entry)]
        records = [self.find_places(result, entry, part)[0] for part in parts_of(entry)]
        problems = [problem for reading in readings for problem in reading.problems]
        problems += [problem for record in records for problem in _list_odd_fields(kind, record)]
        yield from problems
        if problems or any(one.outcome is not Outcome.UNKNOWN or one.is_called for one in readings):
            return
        names = dict.fromkeys(
            name
            for record, reading in zip(records, readings, strict=True)
            for name in _list_unread_fields(record, reading.taken)
        )
        if names:
            shown = listed([_show(name) for name in names], _FIELDS_SHOWN)
            yield Problem("an entry", f"without a value or a call in a known field, and has {shown}")

    def _read_quantity(
        self,
        kind: QuantityKind,
        fields: list[str],
        record: Mapping[str, Any],
        places: Iterable[Mapping[str, Any]],
    ) -> Quantity | Unread:
        unit = find_unit(kind, *places)
        if isinstance(unit, Unread):
            return unit
        if unit is None and kind.word in self.in_other_units:
            return Unread(f"without a unit, and the numbers of the experiment are not all in {kind.shown[0]}")
        return read_recorded_quantity(kind, fields, record, unit)

    def _find_doubts(self, columns: Mapping[str, Any]) -> tuple[str, ...]:
        """What is odd about the numbers of a record, without any of them being impossible."""
        kd, kon, koff = columns["kd_M"], columns["kon_per_M_s"], columns["koff_per_s"]
        doubts = []
        if kd and self.highest_molar and kd > self.highest_molar and columns["qualifier"] != ">":
            doubts.append(
                f"{EXTRAPOLATED}: K_D is above the highest concentration, {self.highest_molar * 1e9:g} nM"
            )
        if kd and kon and koff and columns["qualifier"] is None:
            ratio = koff / kon / kd
            if not 1 / FACTOR_BETWEEN_RATES_AND_KD <= ratio <= FACTOR_BETWEEN_RATES_AND_KD:
                doubts.append(f"k_off / k_on is {koff / kon:.3g} M, and K_D is {kd:.3g} M")
        return tuple(doubts)


def _list_odd_fields(kind: str, record: Mapping[str, Any]) -> Iterator[Problem]:
    """The fields without a quantity of their own that have a text in place of a number, or no objects as replicates."""
    for name in (*list_other_fields(kind), "kd_log_std"):
        value = record.get(name)
        if isinstance(value, str) and not is_empty(value) and not _holds_value(name, value):
            yield Problem(name, f"{_show(value)}, which is a text and not a number")
    if not is_empty(unread := record.get("unread_replicates")):
        yield Problem("replicates", f"{_show(unread)}, which is not a list of objects")


def _list_unread_fields(record: Mapping[str, Any], taken: frozenset[str]) -> Iterator[str]:
    """The filled fields of a record that may be about its outcome, and that no column has taken."""
    for name, value in record.items():
        key = str(snake_case(name))
        is_described = key in _SAY_NO_OUTCOME or key.endswith(_ENDS_WITHOUT_OUTCOME)
        is_filled = not is_empty(value) and value is not False and value not in ([], {}, ())
        if is_filled and name not in taken and not is_described:
            yield name


def _is_measured_by_call(kind: str, calls: Mapping[CallField, ReadCall]) -> bool:
    """Whether a positive call is a measurement of this type, such as `high` of an expression."""
    assay = find_assay_type(kind)
    name = assay.measured_by_call if assay else None
    return name is not None and calls[name].call in {Call.BINDS, Call.EXPRESSES}


def decide_outcome(
    calls: Mapping[CallField, ReadCall], *, has_kd: bool, is_measured: bool, is_in_progress: bool = False
) -> Outcome:
    """The outcome of one record by its calls and by whether it holds a measurement of its type.

    A negative call overrides a number: where all replicates were called, a fitted K_D of a non-binder is an artefact of the fit.
    A call in unknown words makes the outcome unknown, and so do calls that contradict each other.
    """
    binding, strength, expression = (calls[name] for name in ("binding", "binding_strength", "expression"))
    binds = binding.call is Call.BINDS
    outcome = Outcome.MEASURED if is_measured else Outcome.UNKNOWN
    if Call.NO_EXPRESSION in {binding.call, strength.call, expression.call}:
        outcome = Outcome.NO_EXPRESSION
    elif is_in_progress or binding.call is Call.IN_PROGRESS:
        outcome = Outcome.PENDING
    elif binding.unread is not None or _contradict_each_other(binding, strength):
        outcome = Outcome.UNKNOWN
    elif Call.DOES_NOT_BIND in {binding.call, strength.call}:
        outcome = Outcome.NO_BINDING
    elif not binds and (strength.unread is not None or expression.unread is not None):
        outcome = Outcome.UNKNOWN
    elif has_kd:
        outcome = Outcome.MEASURED
    elif binds or strength.call is Call.BINDS:
        outcome = Outcome.BINDING
    return outcome


def _contradict_each_other(binding: ReadCall, strength: ReadCall) -> bool:
    """Whether one call says that a design binds, and the other one that it does not."""
    return {binding.call, strength.call} == {Call.BINDS, Call.DOES_NOT_BIND}


def read_recorded_quantity(
    kind: QuantityKind, fields: Sequence[str], record: Mapping[str, Any], unit: str | None = None
) -> Quantity | Unread:
    """The quantity in the fields of a record, with the qualifier that other fields of the record give it."""
    reading = read_quantity(record.get(fields[0]), unit=unit, quantity=kind)
    if isinstance(reading, Unread):
        return reading
    for name in fields[1:]:
        other = read_quantity(record[name], unit=unit, quantity=kind)
        if not _agree(reading, other, _SAME_VALUE):
            return Unread(f"{_show(record[fields[0]])} in {fields[0]} and {_show(record[name])} in {name}")
    return _apply_limits(kind, reading, record, unit)


def name_assay_type(result: Result, entry: ResultEntry) -> str:
    """The assay type of an entry, as its result or the entry itself states it, in snake case."""
    return str(snake_case(entry.result_type or result.result_type))


def list_other_fields(kind: str) -> tuple[str, ...]:
    """The measured fields of an assay type that have no column; none of a type that the table does not have."""
    assay = find_assay_type(kind)
    return assay.other_fields if assay else ()


def measures_affinity(word: str) -> bool:
    """Whether the results of this assay type are a K_D."""
    assay = find_assay_type(word)
    return assay is not None and KD in assay.measured


def record_of(part: ResultEntry | Replicate) -> dict[str, Any]:
    """All fields of a record, as received."""
    return {**{name: getattr(part, name) for name in type(part).model_fields}, **(part.model_extra or {})}


def parts_of(entry: ResultEntry) -> tuple[ResultEntry | Replicate, ...]:
    """The records of an entry: itself, then its replicates."""
    return (entry, *entry.replicates)


def is_empty(value: Any) -> bool:
    """Whether a field says nothing."""
    if isinstance(value, float) and math.isnan(value):
        return True
    return value is None or (isinstance(value, str) and value.strip().casefold() in _EMPTY)


def find_unit(kind: QuantityKind, *places: Mapping[str, Any]) -> str | Unread | None:
    """The unit that a record, or what it is in, names for a quantity, from the inside out; None if none does.

    `kd_units` is published; `kd_unit`, `unit` and `units` are its other spellings. Two of one place that differ contradict each
    other.
    """
    main = next(
        (one for one in MAIN_QUANTITIES if any(not is_empty(places[0].get(f)) for f in one.fields)),
        None,
    )
    if main is None and not is_empty(places[0].get("kd_app")):
        main = KD
    for place in places:
        fields = {str(snake_case(name)): value for name, value in place.items() if not is_empty(value)}
        stated = [fields[name] for name in sorted(kind.unit_names()) if name in fields]
        shared = [fields[name] for name in ("unit", "units") if name in fields]
        for value in shared:
            if isinstance(value, Mapping):
                inner = {str(snake_case(name)): one for name, one in value.items()}
                stated += [inner[name] for name in (*kind.fields, kind.column) if inner.get(name)]
            elif main is kind:
                stated.append(value)
        units = [str(value).strip() for value in stated]
        factors = {find_unit_factor(kind, unit) for unit in units}
        if len(factors) > 1:
            return Unread(f"in {' and '.join(map(_show, units))}: units that contradict each other")
        if units:
            return units[0]
    return None


def read_apparent_kd(extra: Mapping[str, Any]) -> float | None:
    """The apparent K_D in M of a row's `extra` (service-shapes, Results), if it is an exact value in a known unit.

    None where it has fields of its own that are not published, such as a unit, or where the record says that K_D is a limit.
    """
    stated = extra.get("kd_app")
    fields = stated if isinstance(stated, Mapping) else {"value": stated}
    names = {str(snake_case(name)) for name, value in extra.items() if not is_empty(value)}
    if not fields.keys() <= _APPARENT_FIELDS or any(name.startswith("kd_app_") for name in names):
        return None
    if any(_LIMIT_TEXT.fullmatch(str(extra.get(name)).strip()) for name in KD.fields):
        return None
    unit = extra.get("kd_units")
    record = {**extra, "kd_app": fields.get("value")}
    reading = read_recorded_quantity(KD, ["kd_app"], record, None if unit is None else str(unit))
    return reading.value if isinstance(reading, Quantity) and reading.qualifier is None else None


def _list_numbers(kind: QuantityKind, record: Mapping[str, Any]) -> list[float]:
    """The numbers of a kind in a record that have no unit of their own, the apparent K_D among them."""
    values = [record.get(name) for name in kind.fields]
    if kind is KD:
        apparent = record.get("kd_app")
        values.append(apparent.get("value") if isinstance(apparent, Mapping) else apparent)
    parts = (split_value(value) for value in values if not is_empty(value))
    return [number for number, _, unit in parts if number is not None and not unit]


def _may_be_in_column_unit(kind: QuantityKind, number: float) -> bool:
    least = 0.0 if kind.is_positive else kind.least
    return least <= number <= min(kind.most, kind.most_without_unit)


def _apply_limits(
    kind: QuantityKind, reading: Quantity, record: Mapping[str, Any], unit: str | None
) -> Quantity | Unread:
    """The quantity with the qualifier that other fields of the record give it; unread where they say something unclear."""
    signs = {reading.qualifier} - {None}
    for name, value in record.items():
        key = str(snake_case(name))
        if is_empty(value) or value is False or key in _SAY_NO_LIMIT or _is_about_another(kind, key):
            continue
        sign = _read_limit(kind, reading, key, value, unit)
        if sign is None:
            return Unread(
                f"{reading.value:g} {kind.shown[0]} next to {_show(value)} in {name}, which is not a known limit"
            )
        signs |= {SIGNS[sign]} - {None}
    if len(signs) > 1:
        return Unread(f"{reading.value:g} {kind.shown[0]}, both above and below")
    return Quantity(reading.value, next(iter(signs), None))


def _is_about_another(kind: QuantityKind, key: str) -> bool:
    """Whether a field is the value itself, or belongs to another quantity of the record."""
    fields = [name for other in QUANTITIES for name in other.fields]
    is_of_kind = key.startswith(tuple(f"{name}_" for name in kind.fields))
    return key in fields or (key.startswith(tuple(f"{name}_" for name in fields)) and not is_of_kind)


def _read_limit(kind: QuantityKind, reading: Quantity, key: str, value: Any, unit: str | None) -> str | None:
    """The sign that a field gives a quantity, `=` where it gives none; None where it may be a limit that is not known here."""
    is_of_kind = key.startswith(tuple(f"{stem}_" for stem in kind.fields))
    if is_of_kind and key.endswith("_display"):
        shown = read_quantity(value, unit=None if has_unit(value) else unit, quantity=kind)
        agrees = isinstance(shown, Quantity) and _agree(reading, shown, _SAME_SHOWN)
        return (shown.qualifier or "=") if isinstance(shown, Quantity) and agrees else None
    may_limit = bool(_LIMITING.search(key))
    if may_limit or (is_of_kind and not _BESIDE.search(key)):
        # Another number is the end of an interval or a further statistic; 1 may be a flag.
        if isinstance(value, int | float) and not isinstance(value, bool) and not (may_limit and value == 1):
            return "="
        word = str(value).strip()
        return word if word in SIGNS else None
    return None if isinstance(value, str) and _LIMIT_TEXT.fullmatch(value.strip()) else "="


def has_unit(value: Any) -> bool:
    """Whether a text ends in letters, such as those of a unit."""
    return isinstance(value, str) and bool(re.search(r"[^\W\d_]\s*$", value))


def _agree(one: Quantity, other: Quantity | Unread, tolerance: float) -> bool:
    return isinstance(other, Quantity) and math.isclose(one.value, other.value, rel_tol=tolerance)


def _list_filled(kind: QuantityKind, record: Mapping[str, Any]) -> list[str]:
    return [name for name in kind.fields if not is_empty(record.get(name))]


def _describe_other_limit(kind: QuantityKind, reading: Quantity) -> str:
    limit = f"{reading.qualifier}{reading.value:g} {kind.shown[0]}"
    return f"{limit}, and only the main value of a row, such as its K_D, can be a limit"


def _read_shown_qualifier(record: Mapping[str, Any]) -> str | None:
    """`<` or `>` of the display of a concentration, in a row without a main value."""
    shown = read_quantity(record.get("concentration_display"), quantity=CONCENTRATION)
    return shown.qualifier if isinstance(shown, Quantity) else None


def _read_call(name: CallField, record: Mapping[str, Any]) -> tuple[ReadCall, str | None, tuple[str, ...]]:
    """A call with its word for the column and the fields it is in; fields that differ make it unknown."""
    used = tuple(one for one in CALL_FIELDS[name] if not _says_nothing(record.get(one)))
    reads = [read_call(record[one], name) for one in used]
    if name == "binding":
        for other, value in record.items():
            key = snake_case(other)
            may_call = other not in _ALL_CALL_FIELDS and key not in _NOT_NUMBERS
            is_negative = may_call and is_negative_phrase(value)
            if not is_negative and key in _CALL_LIKE and not _says_nothing(value):
                is_negative = read_call(value, name).call is not Call.BINDS
            if is_negative and not (reads and reads[0].call in _NEGATIVE_CALLS):
                reads.insert(0, ReadCall(Call.UNKNOWN, f"{other}: {value}"))
    if not reads:
        return ReadCall(Call.NOT_STATED), None, used
    words = {read.call for read in reads}
    text = _show_word(record[used[0]]) if used else None
    if len(words) > 1 and reads[0].unread is None:
        return ReadCall(Call.UNKNOWN, ", ".join(f"{one}: {record[one]}" for one in used)), text, used
    return reads[0], text, used


def _says_nothing(value: Any) -> bool:
    return read_call(value).call is Call.NOT_STATED


def _show_word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _holds_value(name: str, value: Any) -> bool:
    """A number, numbers by name, or the name of a bin."""
    if name == "bin":
        return isinstance(value, str) and not is_empty(value)
    if isinstance(value, Mapping):
        return any(_holds_value(name, one) for one in value.values())
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _name_type(kind: str) -> str:
    if not kind or find_assay_type(kind):
        return f"a result of type {kind}"
    return f"the unknown type {_show(kind)}"


def _show(value: Any) -> str:
    return (ascii(value) if isinstance(value, str) else str(value))[:60]
