"""Filter and sort trees to SQL (contract 4.1): only listed columns, every value bound.

NULL behaves as in SQL: it equals nothing, and sorts last. A cast that fails gives NULL.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from assay_lab.kernel import times
from assay_lab.kernel.refusals import Refusal
from assay_lab.requests.core import uuid_or_none
from assay_lab.requests.filters import Atom, Expression, Node, parse_expression, parse_sort, refusal_at
from assay_lab.vocabulary import SORT_COLUMNS_MAX, snake_case

Kind = Literal["text", "uuid", "enum", "int", "float", "bool", "timestamp", "date", "json", "any"]

_COMPARISONS: Final = {"eq": "=", "neq": "<>", "gt": ">", "lt": "<", "gte": ">=", "lte": "<="}
_CASTS: Final[dict[str, tuple[str, Kind]]] = {
    "float": ("lab_float({})", "float"),
    "int": ("lab_int({})", "int"),
    "text": ("CAST({} AS TEXT)", "text"),
    "timestamp": ("lab_stamp({})", "timestamp"),
    "date": ("substr(lab_stamp({}), 1, 10)", "date"),
}
_INT64: Final = 2**63
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_FLOAT: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_LIKE_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class Column:
    """A column that a list can be filtered and sorted by."""

    sql: str
    kind: Kind = "text"
    values: frozenset[str] = frozenset()  # of an enum
    # Further words for the values, such as those of a second vocabulary
    aliases: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sql:
    """A piece of SQL with its bound values."""

    text: str
    values: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class _Field:
    sql: Sql
    kind: Kind
    enum: frozenset[str] = frozenset()
    aliases: Mapping[str, str] = field(default_factory=dict)
    document: Sql | None = None  # the JSON that `sql` looks into, and the path inside
    path: str = "$"


class _Compiler:
    def __init__(self, columns: Mapping[str, Column], what: str) -> None:
        self._columns = columns
        self._what = what

    def fail(self, expression: Expression, message: str) -> Refusal:
        return refusal_at(self._what, expression.position, message)

    def condition(self, tree: Expression) -> Sql:
        if isinstance(tree, Atom):
            raise self.fail(tree, f"expected a condition, not {tree.text!r}")
        if tree.name in ("and", "or"):
            return self._joined(tree)
        if tree.name == "not":
            inner = self.condition(self._arity(tree, 1)[0])
            return Sql(f"NOT ({inner.text})", inner.values)
        return self._test(tree)

    def _joined(self, tree: Node) -> Sql:
        if not tree.arguments:
            raise self.fail(tree, f"{tree.name} needs at least one condition")
        parts = [self.condition(argument) for argument in tree.arguments]
        text = f" {tree.name.upper()} ".join(f"({part.text})" for part in parts)
        return Sql(text, tuple(value for part in parts for value in part.values))

    def _test(self, tree: Node) -> Sql:
        if tree.name in _COMPARISONS:
            return self._compared(tree, f"{_COMPARISONS[tree.name]} ?", 1)
        match tree.name:
            case "contains":
                return self._contains(tree)
            case "between":
                return self._compared(tree, "BETWEEN ? AND ?", 2)
            case "in":
                return self._in(tree)
            case "is_null" | "is_not_null":
                field = self.field(self._arity(tree, 1)[0])
                return Sql(f"{field.sql.text} {tree.name.replace('_', ' ').upper()}", field.sql.values)
            case unknown:
                raise self.fail(tree, f"unknown operator {unknown!r}")

    def _in(self, tree: Node) -> Sql:
        count = len(tree.arguments) - 1
        if count < 1:
            raise self.fail(tree, "in needs a field and at least one value")
        return self._compared(tree, f"IN ({', '.join('?' * count)})", count)

    def _compared(self, tree: Node, test: str, count: int) -> Sql:
        """A test of the first argument, a field, with `count` values."""
        first, *rest = self._arity(tree, count + 1)
        field = self.field(first)
        values = [self._value(field, argument) for argument in rest]
        return Sql(f"{field.sql.text} {test}", (*field.sql.values, *values))

    def _contains(self, tree: Node) -> Sql:
        field = self.field(self._arity(tree, 2)[0])
        if field.kind not in ("text", "enum", "any"):
            raise self.fail(
                tree, f"contains needs a text field, and this one is {field.kind}; cast it with text(...)"
            )
        return contains(field.sql, str(self._value(_Field(field.sql, "text"), tree.arguments[1])))

    def _arity(self, tree: Node, count: int) -> tuple[Expression, ...]:
        if len(tree.arguments) != count:
            raise self.fail(tree, f"{tree.name} takes {count} arguments, not {len(tree.arguments)}")
        return tree.arguments

    def field(self, tree: Expression) -> _Field:
        """A column, `at(field,key)` or a cast of either."""
        if isinstance(tree, Atom):
            column = None if tree.quoted else self._columns.get(tree.text)
            if column is None:
                raise self.fail(tree, f"unknown field {tree.text!r}")
            return _Field(Sql(column.sql), column.kind, column.values, column.aliases)
        if tree.name == "at":
            return self._at(tree)
        if tree.name in _CASTS:
            inner = self.field(self._arity(tree, 1)[0])
            template, kind = _CASTS[tree.name]
            return _Field(Sql(template.format(inner.sql.text), inner.sql.values), kind)
        raise self.fail(tree, f"{tree.name!r} is neither a field, a cast nor at(...)")

    def _at(self, tree: Node) -> _Field:
        inner_tree, key_tree = self._arity(tree, 2)
        inner = self.field(inner_tree)
        if inner.kind not in ("json", "any"):
            raise self.fail(tree, "at(...) needs a JSON field")
        key = self._text(key_tree)
        if any(letter in key for letter in '"\\\0'):  # SQLite's paths have no escapes, and end at a NUL
            raise self.fail(key_tree, "a key cannot contain a quotation mark, a backslash or a NUL")
        # at(at(f,a),b) is one path into f: nested, the SQL would double with every step.
        document, path = inner.document or inner.sql, f'{inner.path}."{key}"'
        # Only JSON text has keys: a number or a plain string gives NULL.
        guarded = f"CASE WHEN json_valid({document.text}) THEN json_extract({document.text}, ?) END"
        values = (*document.values, *document.values, path)
        return _Field(Sql(guarded, values), "any", document=document, path=path)

    def _text(self, tree: Expression) -> str:
        if isinstance(tree, Node):
            raise self.fail(tree, "expected a value")
        return tree.text

    def _value(self, field: _Field, tree: Expression) -> Any:
        if isinstance(tree, Node) and tree.name in _CASTS:
            # Contract 4.1 does not restrict where a cast goes: around a value, it decides how the value is read.
            kind = _CASTS[tree.name][1]
            value = self._value(_Field(field.sql, kind), self._arity(tree, 1)[0])
            if field.kind in (kind, "any") or {field.kind, kind} == {"int", "float"}:
                return value
            tree = Atom(str(value), tree.position, quoted=True)
        text = self._text(tree)
        if field.kind == "any" and isinstance(tree, Atom) and tree.quoted:
            return text  # a quoted number is text
        try:
            return _READERS[field.kind](text) if field.kind != "enum" else _enum(text, field)
        except ValueError:
            hint = f", one of {', '.join(sorted(field.enum))}" if field.enum else ""
            raise self.fail(tree, f"{text!r} is not a value of type {field.kind}{hint}") from None


def _integer(text: str) -> int:
    number = int(text)  # also accepts "1_000" and " 1 ", which the pattern refuses
    if not _INTEGER.fullmatch(text) or not -_INT64 <= number < _INT64:
        raise ValueError(text)
    return number


def _number(text: str) -> float:
    number = float(text)
    if not _FLOAT.fullmatch(text) or not math.isfinite(number):
        raise ValueError(text)
    return number


def _boolean(text: str) -> int:
    return ("false", "true").index(text.lower())


def _uuid(text: str) -> str:
    uuid_text = uuid_or_none(text)
    if uuid_text is None:
        raise ValueError(text)
    return uuid_text


def _enum(text: str, field: _Field) -> str:
    word = snake_case(text)
    word = field.aliases.get(word, word)
    if word not in field.enum:
        raise ValueError(text)
    return word


def _anything(text: str) -> Any:
    for reader in (_integer, _number, _boolean):
        try:
            return reader(text)
        except ValueError:
            continue
    return text


_READERS: Final[dict[str, Callable[[str], Any]]] = {
    "text": str,
    "json": str,
    "uuid": _uuid,
    "int": _integer,
    "float": _number,
    "bool": _boolean,
    "timestamp": lambda text: times.stamp(times.parse(text)),
    "date": times.parse_day,
    "any": _anything,
}


def contains(field: Sql, text: str) -> Sql:
    """Substring match that ignores the case of ASCII letters, without wildcards."""
    if "\x00" in text or len(text) > _LIKE_MAX:  # LIKE ends at a NUL, and refuses long patterns
        return Sql(f"instr(lower({field.text}), lower(?)) > 0", (*field.values, text))
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return Sql(f"{field.text} LIKE ? ESCAPE '\\'", (*field.values, f"%{escaped}%"))


def where(text: str, columns: Mapping[str, Column]) -> Sql:
    """A filter to a condition."""
    return _Compiler(columns, "filter").condition(parse_expression(text))


def compare(column: Column, operator: str, text: str, name: str) -> Sql:
    """The per-field query form, such as `geq(created_at)=value` (contract 4.1)."""
    tree = Node(operator, (Atom(name, 0), Atom(text, 0, quoted=True)), 0)
    return _Compiler({name: column}, name).condition(tree)


def order_by(text: str, columns: Mapping[str, Column], tie_break: str) -> Sql:
    """A sort to ORDER BY terms, at most eight columns (contract 8), with a tie-break for stable pages."""
    compiler = _Compiler(columns, "sort")
    items = parse_sort(text)
    if len(items) > SORT_COLUMNS_MAX:
        raise compiler.fail(items[SORT_COLUMNS_MAX], f"more than {SORT_COLUMNS_MAX} columns")
    terms: list[str] = []
    values: tuple[Any, ...] = ()
    direction = "ASC"
    for item in items:
        field, direction = _sort_item(compiler, item)
        terms.append(f"{field.sql.text} {direction} NULLS LAST")
        values += field.sql.values
    return Sql(", ".join([*terms, f"{tie_break} {direction}"]), values)


def _sort_item(compiler: _Compiler, item: Expression) -> tuple[_Field, str]:
    if isinstance(item, Node):
        if item.name not in ("asc", "desc") or len(item.arguments) != 1:
            raise compiler.fail(item, "expected asc(field), desc(field), -field, +field or field:asc")
        return compiler.field(item.arguments[0]), item.name.upper()
    # Prefix and suffix forms take bare fields only.
    text, direction = item.text, "ASC"
    if text[:1] in ("-", "+"):
        text, direction = text[1:], "DESC" if text[0] == "-" else "ASC"
    elif text.endswith((":asc", ":desc")):
        text, _, suffix = text.rpartition(":")
        direction = suffix.upper()
    return compiler.field(Atom(text, item.position, item.quoted)), direction
