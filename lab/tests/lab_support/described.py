"""Values held against the description of the service more strictly than a client may: as the local lab must keep it.

An answer of the service may have fields that are described nowhere, and may lack what is published but no part of the
contract. Neither is allowed to the lab.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from functools import cache
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from jsonschema import Draft202012Validator, FormatChecker

from assay_lab.api import Route, find_operation, load_document

Schema = Mapping[str, Any]
DOCUMENT = load_document(partner=True)


def find_problems(value: Any, schema: Schema) -> list[str]:
    """Where a value is off a schema of the description."""
    whole = {**schema, "components": DOCUMENT["components"]}
    checker = Draft202012Validator(whole, format_checker=_format_checker())
    return sorted(f"{error.json_path}: {error.message}" for error in checker.iter_errors(value))


@cache
def _format_checker() -> Any:
    """The formats of the document; those of jsonschema itself depend on what else is installed."""
    readers = {"uuid": UUID, "date": date.fromisoformat, "date-time": _read_time, "uri": _read_uri}
    checker = FormatChecker(formats=())
    for name, read in readers.items():
        checker.checks(name, raises=ValueError)(
            lambda value, read=read: not isinstance(value, str) or bool(read(value))
        )
    return checker


def _read_time(text: str) -> datetime:
    """RFC 3339: with an offset (contract 1)."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None or not re.match(r"\d{4}-\d\d-\d\d[Tt]", text):
        raise ValueError(text)
    return moment


def _read_uri(text: str) -> str:
    if not urlsplit(text).scheme or re.search(r"\s", text):
        raise ValueError(text)
    return text


def resolve_reference(part: Schema) -> Schema:
    """What `$ref` names, with what stands beside it."""
    while "$ref" in part:
        target: Any = DOCUMENT
        for step in part["$ref"].removeprefix("#/").split("/"):
            target = target[step]
        part = {**target, **{name: value for name, value in part.items() if name != "$ref"}}
    return part


def body_schema(route: Route) -> Schema | None:
    """The schema of a route's JSON body."""
    return json_schema(find_operation(route).get("requestBody", {}))


def json_schema(part: Schema) -> Schema | None:
    """The schema of a body or an answer; None where it is not JSON."""
    schema: Schema | None = part.get("content", {}).get("application/json", {}).get("schema")
    return schema


def find_strict_problems(value: Any, schema: Schema) -> list[str]:
    """Where a value is off its schema, has an undescribed field, or lacks a published one."""
    return [*find_problems(value, schema), *_gaps(value, schema, "body")]


def find_places(schema: Schema, value: Any = ..., place: str = "") -> Iterator[str]:
    """The place of every field that a schema describes, such as `items[].id`; with a value, only of those it has.

    Keys that the caller chooses are `*`.
    """
    for form in _forms(value, schema):
        if "items" in form:
            for item in [...] if value is ... else value if isinstance(value, list) else ():
                yield from find_places(form["items"], item, f"{place}[]")
        for name, below in _fields(form, value):
            field = form.get("properties", {}).get(name, form.get("additionalProperties"))
            here = f"{place}.{name if name in form.get('properties', {}) else '*'}".lstrip(".")
            if isinstance(field, Mapping):
                yield here
                yield from find_places(field, below, here)


def _fields(form: Schema, value: Any) -> Iterator[tuple[str, Any]]:
    if value is ...:
        names = [*form.get("properties", ()), *(["*"] if "additionalProperties" in form else ())]
        yield from ((name, ...) for name in names)
    elif isinstance(value, dict):
        yield from value.items()


def _gaps(value: Any, schema: Schema, place: str) -> Iterator[str]:
    forms = list(_forms(value, schema))
    if isinstance(value, list):
        for form in forms:
            for item in value if "items" in form else ():
                yield from _gaps(item, form["items"], f"{place}[]")
    if isinstance(value, dict) and not any(_is_free(form) for form in forms):
        for form in forms:
            missing = set(form.get("x-published-required", ())) - value.keys()
            yield from (f"{place}: the published field {name!r} is missing" for name in sorted(missing))
        for name, below in value.items():
            yield from _gaps_of_field(name, below, forms, place)


def _gaps_of_field(name: str, value: Any, forms: list[Schema], place: str) -> Iterator[str]:
    described = [field_schema for form in forms if (field_schema := _property(form, name)) is not None]
    if not described:
        yield f"{place}: the field {name!r} is described nowhere"
    for schema in described:
        yield from _gaps(value, schema, f"{place}.{name}")


def _forms(value: Any, schema: Schema) -> Iterator[Schema]:
    """The plain schemas that describe a value: references followed, and of several forms those that fit."""
    schema = resolve_reference(schema)
    yield schema
    for part in schema.get("allOf", ()):
        yield from _forms(value, part)
    for word in ("anyOf", "oneOf"):
        for part in schema.get(word, ()):
            if value is ... or not find_problems(value, part):
                yield from _forms(value, part)


def _is_free(schema: Schema) -> bool:
    """Whether a schema describes any JSON value, or an object of any fields."""
    shaping = {
        "type", "properties", "additionalProperties", "allOf", "anyOf", "oneOf", "if", "required", "not",
    }  # fmt: skip
    return schema.get("additionalProperties") is True or not shaping & schema.keys()


def _property(schema: Schema, name: str) -> Schema | None:
    field_schema: Schema | None = schema.get("properties", {}).get(name)
    if field_schema is None and isinstance(schema.get("additionalProperties"), Mapping):
        field_schema = schema["additionalProperties"]
    return field_schema


def without_nulls(value: Any) -> Any:
    """A body without its nulls: the lab takes a null for a field that may be left out."""
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    if isinstance(value, dict):
        return {name: without_nulls(item) for name, item in value.items() if item is not None}
    return value
