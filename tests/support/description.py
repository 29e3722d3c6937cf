"""The calls of `openapi.yaml`, and values checked against its schemas.

Example:
    >>> operation = find_operation("GET", "/api/v1/updates")
    >>> operation.operation_id
    'updates.list'
    >>> find_problems({"items": [], "total": 0, "count": 0}, operation.answer_schema(200))
    ("body: 'offset' is a required property",)
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import UUID

from jsonschema import Draft202012Validator, FormatChecker

from prefect_assay.service.description import load_description

API_PREFIX: Final = "/api/v1"
_METHODS: Final = ("get", "put", "post", "patch", "delete")
_JSON: Final = "application/json"
_SCHEMAS: Final = "components"
# A value that breaks one of these was meant to have another form.
_TELLING: Final = frozenset({"type", "const", "not"})
# Their messages name fields only. Other messages would show the value, which may be a secret.
_HARMLESS: Final = frozenset({"required", "additionalProperties"})


@dataclass(frozen=True, slots=True)
class Operation:
    """One call of the service; `path` is whole and has its placeholders, `raw` is its part of the document."""

    operation_id: str
    method: str
    path: str
    parameters: tuple[Mapping[str, Any], ...]  # with references followed
    raw: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Method and path without names of placeholders, such as `GET /experiments/{}`."""
        return f"{self.method} {re.sub(r'{[^}]*}', '{}', self.path.removeprefix(API_PREFIX))}"

    @property
    def acts(self) -> bool:
        """Whether the call changes anything at the service."""
        return bool(self.raw["x-acts"])

    @property
    def spends(self) -> bool:
        """Whether the call can commit you to pay, or pays."""
        return bool(self.raw.get("x-spends"))

    @property
    def is_for_partners(self) -> bool:
        """Whether only tokens of partners may make the call, and see it described (contract 1)."""
        return bool(self.raw.get("x-partner"))

    @property
    def needs_token(self) -> bool:
        """Whether the call is refused without a token."""
        return all(self.raw.get("security", [{"bearer": []}])) and self.raw.get("security") != []

    @property
    def body_schema(self) -> Mapping[str, Any] | None:
        """The schema of the JSON body; None for a call without one."""
        body = self.raw.get("requestBody")
        return None if body is None else _schema_of(resolve_reference(body))

    @property
    def statuses(self) -> frozenset[int]:
        """Every status that the call can answer, refusals included."""
        return frozenset(int(status) for status in self.raw["responses"])

    def answer(self, status: int) -> Mapping[str, Any]:
        """The description of one answer.

        Raises:
            LookupError: the call is not said to answer this status.
        """
        found = self.raw["responses"].get(str(status))
        if found is None:
            raise LookupError(f"{self.operation_id} is not described to answer {status}")
        return resolve_reference(found)

    def answer_schema(self, status: int) -> Mapping[str, Any] | None:
        """The schema of the JSON body of one answer; None for an answer without a JSON body.

        Raises:
            LookupError: the call is not said to answer this status.
        """
        return _schema_of(self.answer(status))


@cache
def list_operations() -> tuple[Operation, ...]:
    """All calls, in the order of the document."""
    return tuple(_operations(load_description()["paths"]))


@cache
def find_operation(method: str, path: str) -> Operation | None:
    """The call that a request makes, by its method and its path with or without placeholders; None if there is none."""
    fitting = [
        operation
        for operation in list_operations()
        if operation.method == method.upper()
        and (operation.path == path or _pattern(operation.path).fullmatch(path))
    ]
    # `/experiments/cost-estimate` is not the id of an experiment.
    return min(fitting, key=lambda operation: operation.path.count("{"), default=None)


def resolve_reference(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part of the document that `$ref` names, with what stands beside `$ref`; a part without one as it is.

    Raises:
        LookupError: the document has no such part.
    """
    while "$ref" in part:
        beside = {name: value for name, value in part.items() if name != "$ref"}
        part = {**_target(part["$ref"]), **beside}
    return part


def find_problems(value: Any, schema: Mapping[str, Any]) -> tuple[str, ...]:
    """Where a JSON value is off a schema of the document, without the value itself; empty if it is not.

    Args:
        value: what `json.loads` returns.
        schema: a JSON schema; its references are to the document.
    """
    whole = {**schema, _SCHEMAS: load_description()[_SCHEMAS]}
    checker = Draft202012Validator(whole, format_checker=_format_checker())
    return tuple(sorted(_lines(checker.iter_errors(value))))


def _operations(paths: Mapping[str, Any]) -> Iterator[Operation]:
    for path, item in paths.items():
        for method in _METHODS:
            if method in item:
                raw = item[method]
                listed = (*item.get("parameters", ()), *raw.get("parameters", ()))
                parameters = tuple(resolve_reference(parameter) for parameter in listed)
                yield Operation(raw["operationId"], method.upper(), path, parameters, raw)


@cache
def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(path)))


def _target(reference: str) -> Mapping[str, Any]:
    found: Any = load_description()
    for step in reference.removeprefix("#/").split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(found, Mapping) or name not in found:
            raise LookupError(f"the description has no {reference}")
        found = found[name]
    return dict(found)


def _schema_of(part: Mapping[str, Any]) -> Mapping[str, Any] | None:
    schema: Mapping[str, Any] | None = part.get("content", {}).get(_JSON, {}).get("schema")
    return schema


def _lines(errors: Iterable[Any]) -> Iterator[str]:
    for error in errors:
        place = ".".join(str(step) for step in error.absolute_path) or "body"
        if error.context:
            yield from _lines(_nearest_form(error.context))
        elif error.validator == "not" and error.validator_value == {}:
            yield f"{place}: is not allowed here"
        elif error.validator in _HARMLESS:
            yield f"{place}: {error.message}"
        else:
            yield f"{place}: does not satisfy {error.validator} {str(error.validator_value)[:120]}"


def _nearest_form(errors: Iterable[Any]) -> list[Any]:
    """Of the errors that a value makes in each of several forms, those of the form that it was most likely meant to be."""
    by_form: dict[Any, list[Any]] = {}
    for error in errors:
        by_form.setdefault(error.schema_path[0], []).append(error)
    return min(
        by_form.values(), key=lambda found: (any(error.validator in _TELLING for error in found), len(found))
    )


@cache
def _format_checker() -> Any:
    """The formats of the document; those of jsonschema itself depend on what else is installed."""
    checker = FormatChecker(formats=())
    for name, read in (
        ("uuid", UUID),
        ("date", date.fromisoformat),
        ("date-time", _read_time),
        ("uri", _read_uri),
    ):
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
