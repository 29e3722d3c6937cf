"""The client against the interface: what each call sends, which errors it raises and where it keeps each field.

The calls and their arguments are those of `prefect_assay.service.client.drift`, the one description of what the client uses.
What a call sends is taken from the request that goes out: `sent(call)` catches it before the network.
"""

import json
import re
from dataclasses import dataclass
from functools import cache
from typing import Any, get_args

import httpx
from pydantic import AliasChoices, BaseModel

from prefect_assay.errors import AssayError
from prefect_assay.service.client import AssayClient
from prefect_assay.service.client import parameters as where
from prefect_assay.service.client.drift.usage import USES, Use
from prefect_assay.service.models.base import Page

_FREE = frozenset({"sequences", "performance"})  # objects whose names the caller chose
KEPT = " (kept)"
_CREATED = [
    test("created_at", "2026-01-01") for test in (where.equ, where.geq, where.gtr, where.leq, where.lss)
]
_OPENAPI = "GET /openapi.json"  # the description does not describe itself
_USES = {use.operation: use for use in USES}


def _use(call: str) -> Use | None:
    return _USES.get(re.sub(r"\{[^}]*\}", "{}", call))


def method_of(call: str) -> str | None:
    """The method of the client that makes a call."""
    use = _use(call)
    return use.method if use else "openapi" if call == _OPENAPI else None


@dataclass(frozen=True)
class Sent:
    """What the client sent for a call, and the error it makes of each status."""

    method: str
    path: str
    query: frozenset[str]
    body: frozenset[str]


@cache
def sent(call: str) -> Sent:
    """The request of a call with everything set."""
    seen: list[httpx.Request] = []
    _answered(call, 400, seen)
    request = seen[0]
    content = json.loads(request.content) if request.content else None
    return Sent(
        request.method,
        request.url.path.removeprefix("/api/v1"),
        frozenset(request.url.params.keys()),
        frozenset(paths(content)),
    )


@cache
def error_of(call: str, status: int) -> str | None:
    """Name of the error that the client makes of a status; None when it is an answer."""
    return _answered(call, status, [])


def _answered(call: str, status: int, seen: list[httpx.Request]) -> str | None:
    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(status, json={"error": "e", "request_id": "req_1"})

    use = _use(call)
    arguments = use.arguments[0] if use else {}
    if "where" in arguments:
        arguments = arguments | {"where": _CREATED}
    transport = httpx.MockTransport(answer)
    with AssayClient(
        "https://lab.example", "token", transport=transport, retries=0, sleep=lambda _: None
    ) as client:
        try:
            getattr(client, method_of(call) or "")(**arguments)
        except AssayError as error:
            return type(error).__name__
    return None


def matches(call: str, method: str, path: str) -> bool:
    """Whether a request is this call."""
    wanted, template = call.split()
    return method == wanted and re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path) is not None


def paths(value: Any, prefix: str = "", *, free: bool = False) -> set[str]:
    """Every field of a JSON value, with dots; names that the caller chose become `*`."""
    found: set[str] = set()
    if isinstance(value, list):
        for item in value:
            found |= paths(item, prefix or "[]")
    if isinstance(value, dict):
        for name, inner in value.items():
            place = f"{prefix}.{'*' if free else name}".lstrip(".")
            found |= {place} | paths(inner, place, free=name in _FREE)
    return found


def reader_of(call: str, field: str) -> str | None:
    """Where the client keeps a field of an answer: `Model.field`, the free object that holds it, or None."""
    use = _use(call)
    if use is None:
        return None
    if use.method == "pay":
        return "PayAnswer.body"
    rows_alone = field.startswith("[].")
    models = use.reads
    if use.listed and not rows_alone:
        models = tuple(Page[row] for row in models)  # type: ignore[valid-type]
    found = [place for model in models if (place := _resolved(model, field.removeprefix("[].").split(".")))]
    # A field of its own in any of the models before a field that is only kept.
    return min(found, key=lambda place: place.endswith(KEPT), default=None)


def _resolved(model: type[BaseModel], names: list[str]) -> str | None:
    first, rest = names[0], names[1:]
    for name, info in model.model_fields.items():
        alias = info.validation_alias
        spellings = {name, *(alias.choices if isinstance(alias, AliasChoices) else [alias] if alias else [])}
        if first in spellings:
            inner = _models_in(info.annotation)
            if rest and inner:
                return _resolved(inner[0], rest)
            return f"{_name(model)}.{name}"
    # Fields without a name of their own are kept as they came.
    return f"{_name(model)}{KEPT}" if model.model_config.get("extra") == "allow" else None


def _name(model: type[BaseModel]) -> str:
    return model.__name__.partition("[")[0]


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in _models_in(argument)]
