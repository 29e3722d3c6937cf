"""The calls of `openapi.yaml`; `lab_support.described` holds values against its schemas.

Example:
    >>> operation = find_operation("GET", "/api/v1/updates")
    >>> operation.operation_id
    'updates.list'
    >>> find_problems({"items": [], "total": 0, "count": 0}, operation.answer_schema(200))
    ["$: 'offset' is a required property"]
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from lab_support.described import find_problems, json_schema, resolve_reference
from prefect_assay.service.description import load_description

__all__ = ["Operation", "find_operation", "find_problems", "list_operations", "resolve_reference"]
API_PREFIX: Final = "/api/v1"
_METHODS: Final = ("get", "put", "post", "patch", "delete")


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
        return None if body is None else json_schema(resolve_reference(body))

    @property
    def statuses(self) -> frozenset[int]:
        """Every status that the call can answer, refusals included."""
        return frozenset(int(status) for status in self.raw["responses"])

    def answer(self, status: int) -> Mapping[str, Any]:
        """The description of one answer; KeyError for a status that the call is not said to answer."""
        return resolve_reference(self.raw["responses"][str(status)])

    def answer_schema(self, status: int) -> Mapping[str, Any] | None:
        """The schema of the JSON body of one answer; None for an answer without a JSON body."""
        return json_schema(self.answer(status))


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
