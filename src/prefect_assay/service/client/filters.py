"""The filter and sort language of the lists (contract 4.1), built from Python values.

The contract does not define quoting. Words of letters, digits and `_ . : + -` are bare, as in its examples. Everything
else is in double quotes with backslash escapes, also text that would read as a number, a truth value or null.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import Enum
from typing import Final
from uuid import UUID

from prefect_assay.errors import InputError
from prefect_assay.service.models.vocabulary import SORT_COLUMNS_MAX

__all__ = [
    "Condition",
    "Expression",
    "Filter",
    "Ordering",
    "Sorting",
    "Value",
    "and_",
    "as_date",
    "as_float",
    "as_int",
    "as_text",
    "as_timestamp",
    "asc",
    "at",
    "between",
    "contains",
    "desc",
    "eq",
    "gt",
    "gte",
    "in_",
    "is_not_null",
    "is_null",
    "lt",
    "lte",
    "neq",
    "not_",
    "or_",
    "sorted_by",
]

_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
_BARE = re.compile(r"[A-Za-z0-9_.:+-]+")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_WORDS: Final = frozenset({"true", "false", "null", "none", "nan", "inf", "infinity"})


@dataclass(frozen=True, slots=True)
class _Term:
    text: str

    def __str__(self) -> str:
        return self.text


class Expression(_Term):
    """Something to compare or to sort by: a field, a JSON path into it, or a cast."""

    __slots__ = ()


class Filter(_Term):
    """A condition, ready for the `filter` parameter."""

    __slots__ = ()

    def __and__(self, other: "Filter") -> "Filter":
        return and_(self, other)

    def __or__(self, other: "Filter") -> "Filter":
        return or_(self, other)

    def __invert__(self) -> "Filter":
        return not_(self)


class Ordering(_Term):
    """One sort column in the canonical form, `asc(field)` or `desc(field)`."""

    __slots__ = ()


Field = str | Expression
Value = str | int | float | bool | date | datetime | UUID | Enum
Condition = Filter | str
Sorting = Ordering | str


def eq(field: Field, value: Value) -> Filter:
    """The field equals the value."""
    return _compare("eq", field, value)


def neq(field: Field, value: Value) -> Filter:
    """The field differs from the value."""
    return _compare("neq", field, value)


def gt(field: Field, value: Value) -> Filter:
    """The field is greater than the value."""
    return _compare("gt", field, value)


def lt(field: Field, value: Value) -> Filter:
    """The field is less than the value."""
    return _compare("lt", field, value)


def gte(field: Field, value: Value) -> Filter:
    """The field is at least the value."""
    return _compare("gte", field, value)


def lte(field: Field, value: Value) -> Filter:
    """The field is at most the value."""
    return _compare("lte", field, value)


def contains(field: Field, text: str) -> Filter:
    """The field contains the text."""
    return _compare("contains", field, text)


def between(field: Field, low: Value, high: Value) -> Filter:
    """The field lies between two values, both included."""
    return Filter(f"between({_field(field)},{_value(low)},{_value(high)})")


def in_(field: Field, values: Sequence[Value]) -> Filter:
    """The field is one of the values; InputError if the list is empty."""
    if isinstance(values, str) or not values:
        raise InputError(f"filter in({field}): give a list of at least one value")
    return Filter(f"in({','.join([_field(field), *map(_value, values)])})")


def and_(*conditions: Filter) -> Filter:
    """All conditions hold; at least one must be given."""
    return _joined("and", conditions)


def or_(*conditions: Filter) -> Filter:
    """One of the conditions holds; at least one must be given."""
    return _joined("or", conditions)


def not_(condition: Filter) -> Filter:
    """The condition does not hold."""
    return Filter(f"not({condition})")


def is_null(field: Field) -> Filter:
    """The field has no value."""
    return Filter(f"is_null({_field(field)})")


def is_not_null(field: Field) -> Filter:
    """The field has a value."""
    return Filter(f"is_not_null({_field(field)})")


def at(field: Field, key: str) -> Expression:
    """The value under a key of a JSON field; may be nested."""
    return Expression(f"at({_field(field)},{_value(key)})")


def as_float(field: Field) -> Expression:
    """The field, cast to a floating-point number."""
    return Expression(f"float({_field(field)})")


def as_int(field: Field) -> Expression:
    """The field, cast to an integer."""
    return Expression(f"int({_field(field)})")


def as_text(field: Field) -> Expression:
    """The field, cast to text."""
    return Expression(f"text({_field(field)})")


def as_timestamp(field: Field) -> Expression:
    """The field, cast to a timestamp."""
    return Expression(f"timestamp({_field(field)})")


def as_date(field: Field) -> Expression:
    """The field, cast to a date."""
    return Expression(f"date({_field(field)})")


def asc(field: Field) -> Ordering:
    """Smallest first."""
    return Ordering(f"asc({_field(field)})")


def desc(field: Field) -> Ordering:
    """Greatest first."""
    return Ordering(f"desc({_field(field)})")


def sorted_by(*columns: Ordering | str) -> str:
    """Several columns as one `sort` parameter; InputError unless there are 1 to 8 (contract 4.1)."""
    if not 1 <= len(columns) <= SORT_COLUMNS_MAX:
        raise InputError(f"sort: 1 to {SORT_COLUMNS_MAX} columns are possible, not {len(columns)}")
    return ",".join(map(str, columns))


def _compare(operator: str, field: Field, value: Value) -> Filter:
    return Filter(f"{operator}({_field(field)},{_value(value)})")


def _joined(operator: str, conditions: tuple[Filter, ...]) -> Filter:
    if not conditions:
        raise InputError(f"filter {operator}(): give at least one condition")
    return conditions[0] if len(conditions) == 1 else Filter(f"{operator}({','.join(map(str, conditions))})")


def _field(field: Field) -> str:
    return field.text if isinstance(field, Expression) else checked_field(field)


def checked_field(field: str) -> str:
    """Return a field name; InputError if it is malformed."""
    if not _FIELD.fullmatch(field):
        raise InputError(f"filter: {field!r} is not a field name; letters, digits, '_' and '.' are possible")
    return field


def _value(value: Value) -> str:
    plain = value.value if isinstance(value, Enum) else value
    return _text(plain) if isinstance(plain, str) else bare_text(plain)


def bare_text(value: Value) -> str:
    """A value without quotes; InputError for a number that is not finite and a timestamp without a time zone."""
    plain = value.value if isinstance(value, Enum) else value
    if isinstance(plain, bool):
        return "true" if plain else "false"
    if isinstance(plain, int | float):
        if not math.isfinite(plain):
            raise InputError(f"filter: {plain} cannot be compared with; use is_null for missing values")
        return repr(plain)
    if isinstance(plain, datetime):
        if plain.tzinfo is None:
            raise InputError("filter: a timestamp needs a time zone; all times of the service are UTC")
        return plain.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return str(plain)


def _text(value: str) -> str:
    if _BARE.fullmatch(value) and not _NUMBER.fullmatch(value) and value.lower() not in _WORDS:
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
