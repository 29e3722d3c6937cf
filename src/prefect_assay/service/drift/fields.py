"""Compares the fields of real answers with those that the client reads, and names them so that they can be shown to others.

A field's value is never kept: only its JSON type, how often it occurs, the powers of ten of numbers, and single words of
fields that hold the service's own vocabulary. A key that may be someone's own, such as a design's name, becomes `*`.
"""

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, get_args

from pydantic import BaseModel

from prefect_assay.service.client.decoding import find_rows
from prefect_assay.service.drift.compare import field_of
from prefect_assay.service.drift.document import Facts, above, known_interface
from prefect_assay.service.drift.usage import Read, Usage, usage_by_operation
from prefect_assay.service.drift.witness import Exchange
from prefect_assay.service.models.base import Page, wire_names
from prefect_assay.service.models.service import USER_KEYED
from prefect_assay.service.models.vocabulary import (
    ExperimentStatus,
    ExperimentType,
    InvoiceStatus,
    Method,
    PaymentMethod,
    QuoteStatus,
    ResultsStatus,
    snake_case,
)

# Their values are the service's vocabulary, and shown where they are one word.
_WORD_FIELDS: Final = frozenset(
    {
        "currency",
        "experiment_type",
        "kind",
        "method",
        "methods",
        "pricing_version",
        "result_type",
        "results_status",
        "role",
        "status",
    }
)
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,31}")
VOCABULARY: Final = frozenset(
    word.value
    for kind in (
        ExperimentType,
        Method,
        ExperimentStatus,
        ResultsStatus,
        QuoteStatus,
        InvoiceStatus,
        PaymentMethod,
    )
    for word in kind
)
# A name that nobody describes is shown if it is made of words, as names of fields are: without digits, in lower or camel case.
_NAME: Final = re.compile(r"[a-z]{1,16}(?:_[a-z]{1,16}|[A-Z][a-z]{1,15}){0,5}")
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d[\d:.]*(Z|[+-]\d\d:?\d\d)?)?")
_NUMBER: Final = re.compile(r"[<>]?\s*[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")
_TYPES: Final = {bool: "boolean", int: "integer", float: "number", dict: "object", list: "array"}
_DEPTH_MAX: Final = 12
_HIDDEN: Final = "*"


class FieldState(StrEnum):
    """What the client makes of a field."""

    READ = "read"
    INSIDE = "inside a field that is kept whole"
    UNREAD = "unread"
    MISSING = "missing"
    ABSENT = "absent"  # it is read where a service sends it
    ODD = "odd"  # its value is of a kind that the client leaves out
    NEW_WORD = "new word"  # a status that is in no published vocabulary


@dataclass(frozen=True, slots=True)
class SeenField:
    """One field of one call, over all answers of the rehearsal."""

    operation: str
    place: str
    state: FieldState
    count: int = 0  # how often it has a value
    types: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    powers_of_ten: tuple[int, int] | None = None
    required: bool = False  # an answer without it can't be read


@dataclass(slots=True)
class _Seen:
    count: int = 0
    types: set[str] = field(default_factory=set)
    words: set[str] = field(default_factory=set)
    powers: set[int] = field(default_factory=set)

    def add(self, name: str, value: Any, private: Collection[str]) -> None:
        self.count += value is not None
        self.types.add(_type_of(value))
        if isinstance(value, int | float) and not isinstance(value, bool) and value and math.isfinite(value):
            self.powers.add(math.floor(math.log10(abs(value))))
        is_word = isinstance(value, str) and name in _WORD_FIELDS and _WORD.fullmatch(value)
        if is_word and (snake_case(value) in VOCABULARY or str(value).casefold() not in private):
            self.words.add(str(value))


def compare_answers(
    exchanges: Iterable[Exchange], described: Mapping[str, Facts], private: Iterable[str] = ()
) -> tuple[SeenField, ...]:
    """Every field of the answers, and every field that the client reads and that isn't there, by call.

    Args:
        exchanges: what a `WitnessClient` has kept.
        described: the interface that the client knows, and the service's own description: their names can be shown.
        private: names and residues of designs, which are never shown.
    """
    answers: defaultdict[str, dict[object, Exchange]] = defaultdict(dict)
    for one in exchanges:
        if one.operation != "GET /openapi.json":  # `drift` compares it
            answers[one.operation].setdefault(one.request, one)
    hidden = {text.casefold() for text in private}
    for called in answers.values():
        hidden.update(text for one in called.values() for text in _list_user_texts(one.body))
    uses = usage_by_operation()
    reader = _Reader(list_published_names(described), hidden)
    return tuple(
        seen
        for name in sorted(answers)
        for seen in reader.fields(name, uses.get(name), answers[name].values())
    )


def list_published_names(described: Mapping[str, Facts]) -> set[str]:
    """The names of fields in a description and in the client's models: they are shown, whoever's text is the same."""
    places = [place for facts in described.values() for place in facts]
    places += [
        name for used in usage_by_operation().values() for read in used.read.values() for name in read.names
    ]
    return {part for place in places for part in re.split(r"[ .\[\]]+", place)}


def _list_user_texts(value: Any, name: str = "") -> Iterator[str]:
    """All texts in lower case, except those in vocabulary fields. A key equal to one of them is a user's own."""
    if isinstance(value, dict):
        for key, inside in value.items():
            yield from _list_user_texts(inside, key)
    elif isinstance(value, list):
        for inside in value:
            yield from _list_user_texts(inside, name)
    elif isinstance(value, str) and name not in _WORD_FIELDS:
        yield value.casefold()


class _Reader:
    def __init__(self, known: Collection[str], private: Collection[str]) -> None:
        self._known, self._private = known, private

    def fields(self, operation: str, use: Usage | None, answers: Iterable[Exchange]) -> Iterator[SeenField]:
        seen: defaultdict[str, _Seen] = defaultdict(_Seen)
        odd: dict[str, FieldState] = {}
        for one in answers:
            body = _normalized(one.body, use)
            for place, name, value in self._places(body, ""):
                seen[place].add(name, value, self._private)
            if use is not None:
                odd |= dict(_odd_values(one.value, body, ""))
        reads = list(use.read.values()) if use else []
        names = {name: read for read in reads for name in read.names}
        for place, shape in sorted(seen.items()):
            if place.endswith("[]") or (place == "count" and use is not None and use.is_list):
                continue  # the client counts rows itself
            state = odd.get(place) or _state_of(place, names)
            powers = (min(shape.powers), max(shape.powers)) if shape.powers else None
            required = place in names and names[place].required
            types, words = tuple(sorted(shape.types)), tuple(sorted(shape.words))
            yield SeenField(operation, place, state, shape.count, types, words, powers, required)
        sent = _always_sent(operation)
        for read in reads:
            name, holder = read.names[0], above(read.names[0])
            if not seen.keys() & set(read.names) and (holder is None or seen[holder].count):
                is_missing = read.required or sent.intersection(read.names)
                state = FieldState.MISSING if is_missing else FieldState.ABSENT
                yield SeenField(operation, name, state, required=read.required)

    def _places(
        self, value: Any, place: str, name: str = "", depth: int = 0
    ) -> Iterator[tuple[str, str, Any]]:
        if place:
            yield place, name, value
        if depth > _DEPTH_MAX:
            return
        if isinstance(value, dict):
            for key, inside in value.items():
                shown = _HIDDEN if name in USER_KEYED else self._shown(key, value)
                yield from self._places(inside, f"{place}.{shown}" if place else shown, shown, depth + 1)
        elif isinstance(value, list):
            # Rows of a list that is keyed by its user are records, whose names are the service's.
            for inside in value:
                yield from self._places(inside, f"{place}[]", "", depth + 1)

    def _shown(self, key: str, holder: Mapping[str, Any]) -> str:
        if key in self._known:
            return key
        if not _NAME.fullmatch(key) or key.casefold() in self._private:
            return _HIDDEN
        alike = [
            frozenset(inside)
            for one, inside in holder.items()
            if isinstance(inside, dict) and one not in self._known
        ]
        return _HIDDEN if len(alike) > 1 and len(set(alike)) == 1 else key  # records by someone's keys


def _always_sent(operation: str) -> frozenset[str]:
    """The fields that each answer has by the interface that the client was written for."""
    facts = known_interface().get(operation, {})
    return frozenset(
        name for place, fact in facts.items() if fact.get("required") and (name := field_of(place))
    )


def _normalized(body: Any, use: Usage | None) -> Any:
    """The body as the client sees it: the rows of a list under `items`."""
    if use is None or not use.is_list:
        return body
    rows = find_rows(body)
    if rows is None:
        return body
    rest = (
        {name: value for name, value in body.items() if value is not rows} if isinstance(body, dict) else {}
    )
    return {"items": rows, **rest}


def _state_of(place: str, names: Mapping[str, Read]) -> FieldState:
    if place in names:
        return FieldState.READ
    holder = above(place)
    while holder is not None:
        if any(name.startswith((f"{holder}.", f"{holder}[]")) for name in names):
            return FieldState.UNREAD
        if holder in names:
            return FieldState.INSIDE
        holder = above(holder)
    return FieldState.UNREAD


def _odd_values(value: Any, raw: Any, place: str) -> Iterator[tuple[str, FieldState]]:
    """The fields whose value the model has left out, and statuses in words of the service's own."""
    if isinstance(value, Page):
        value, raw, place = value.items, raw.get("items") if isinstance(raw, dict) else None, "items"
    if isinstance(value, tuple) and isinstance(raw, list) and len(value) == len(raw):
        for one, inside in zip(value, raw, strict=True):
            yield from _odd_values(one, inside, f"{place}[]")
    if not (isinstance(value, BaseModel) and isinstance(raw, dict)):
        return
    for name, info in type(value).model_fields.items():
        spelled = next(
            (one for one in wire_names(name, info.validation_alias) if raw.get(one) is not None), None
        )
        if spelled is None:
            continue
        here, read = f"{place}.{spelled}".lstrip("."), getattr(value, name)
        if read is None or (read in ((), {}) and raw[spelled] not in ([], {}, "")):
            yield here, FieldState.ODD
        elif type(read) is str and _has_vocabulary(info.annotation):
            yield here, FieldState.NEW_WORD
        else:
            yield from _odd_values(read, raw[spelled], here)


def _has_vocabulary(annotation: Any) -> bool:
    is_words = isinstance(annotation, type) and issubclass(annotation, StrEnum)
    return is_words or any(map(_has_vocabulary, get_args(annotation)))


def _type_of(value: Any) -> str:
    if not isinstance(value, str):
        return _TYPES.get(type(value), "null")
    if not value.strip():
        return "empty text"
    if _UUID.fullmatch(value):
        return "uuid"
    if match := _TIME.fullmatch(value):
        return "time" if match[2] else "time without an offset" if match[1] else "date"
    if value.startswith(("https://", "http://")):
        return "address"
    return "number as text" if _NUMBER.fullmatch(value) else "text"
