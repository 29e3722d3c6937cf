"""Every call of the API as a tool, made from `openapi.json`, so that a new route is a tool at once (contract 1)."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote, urlencode

from assay_lab import api
from assay_lab.kernel.refusals import Refusal
from assay_lab.kernel.settings import API_PREFIX
from assay_lab.rails import RAILS
from assay_lab.words import WireWords

# The one argument that is not a parameter of the call. No body field has this name, other than plain `headers`.
HEADERS: Final = "request_headers"

_COMPONENTS: Final = "#/components/schemas/"
_PARAMETERS: Final = "#/components/parameters/"
_NO_ARGUMENTS: Final[Mapping[str, Any]] = {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True)
class Request:
    """The API request of a tool call. Header names are lower case; the path is whole."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Tool:
    """One call of the API as a tool; `name` is its `operationId` with an underscore for the dot, `schema` the JSON Schema of its arguments."""

    name: str
    title: str
    description: str
    method: str
    path: str
    schema: Mapping[str, Any] = field(default_factory=lambda: _NO_ARGUMENTS)
    query: tuple[str, ...] = ()
    headers: frozenset[str] = frozenset()
    has_body: bool = False
    reads: bool = True
    destructive: bool = False
    partner: bool = False

    def request(self, arguments: Mapping[str, Any]) -> Request:
        """The request that these arguments make; 400 for a missing path part or a header that may not be passed."""
        left = dict(arguments)
        headers = self._headers(left.pop(HEADERS, None) or {})
        parts = re.findall(r"\{(\w+)\}", self.path)
        missing = [name for name in parts if not isinstance(left.get(name), str) or not left[name]]
        if missing:
            raise Refusal.of_all(400, [f"{name}: a text is required" for name in missing])
        # Encoded, so that no id reaches into another path.
        path = self.path.format_map({name: quote(left.pop(name), safe="") for name in parts})
        # Lists take every field in the per-field form, and not all of these are listed (contract 4.1).
        names = list(left) if self.method == "GET" else [name for name in self.query if name in left]
        query = {name: _format_text(value) for name in names if (value := left.pop(name)) is not None}
        body = b""
        if self.has_body or left:
            headers |= {"content-type": "application/json"}
            body = json.dumps(left).encode()
        return Request(self.method, path, urlencode(query), headers, body)

    def _headers(self, raw_headers: Any) -> dict[str, str]:
        if not isinstance(raw_headers, Mapping):
            raise Refusal(400, f"{HEADERS}: an object of header names and values is required")
        taken: dict[str, str] = {}
        for name, value in raw_headers.items():
            if str(name).lower() not in self.headers or not isinstance(value, str):
                raise Refusal(400, f"{HEADERS}: takes texts for {', '.join(sorted(self.headers))} only")
            if not value.isascii() or not value.isprintable():
                raise Refusal(400, f"{HEADERS}: {name} may hold printable ASCII only")
            taken[str(name).lower()] = value
        return taken


def list_tools(words: WireWords) -> dict[str, Tool]:
    """All tools by name, in the order of the route table; the description of the API comes last."""
    document = api.load_document(words, partner=True)
    made = [_make_tool(route, document, words) for route in api.ROUTES]
    path = f"{API_PREFIX}/openapi.json"
    described = f"GET {path}. The machine-readable description."
    made.append(Tool("description_get", "Describe the API", described, "GET", path))
    return {tool.name: tool for tool in made}


def _make_tool(route: api.Route, document: Mapping[str, Any], words: WireWords) -> Tool:
    """The call as openapi.json describes it, its parameters and the fields of its body side by side."""
    path = API_PREFIX + route.path
    item = document["paths"][path]
    operation = item[route.method.lower()]
    schemas = document["components"]["schemas"]
    body = _describe_body(operation, schemas)
    fields = body.get("properties", {})
    named = document["components"]["parameters"]
    listed = (*item.get("parameters", ()), *operation.get("parameters", ()))
    parts = [named[part["$ref"].removeprefix(_PARAMETERS)] if "$ref" in part else part for part in listed]
    parameters = {part["name"]: part for part in parts if part["in"] != "header"}
    if twice := (set(parameters) | {HEADERS}) & set(fields):
        raise ValueError(f"{route.method} {route.path} has two parameters named {', '.join(sorted(twice))}")
    properties = {
        name: part["schema"] | {"description": part["description"]} for name, part in parameters.items()
    }
    headers = _headers_schema(words)
    properties |= fields | ({HEADERS: headers} if route.writes else {})
    required = [
        *(name for name, part in parameters.items() if part.get("required")),
        *body.get("required", ()),
    ]
    schema = {"type": "object", "properties": properties, "required": required}
    needs = "" if route.open else f"Needs `{route.resource}:{route.action}`."
    return Tool(
        name=operation["operationId"].replace(".", "_"),  # not every client takes a dot
        title=operation["summary"],
        description=" ".join(filter(None, (f"{route.method} {path}.", operation.get("description"), needs))),
        method=route.method,
        path=path,
        schema=_self_contained(schema, schemas),
        query=tuple(name for name, part in parameters.items() if part["in"] == "query"),
        headers=frozenset(name.lower() for name in headers["properties"]),
        has_body=api.takes_body(route),
        reads=not route.writes,
        destructive=route.destructive,
        partner=route.partner,
    )


def _describe_body(operation: Mapping[str, Any], schemas: Mapping[str, Any]) -> Mapping[str, Any]:
    if "requestBody" not in operation:
        return {}
    schema: Mapping[str, Any] = operation["requestBody"]["content"]["application/json"]["schema"]
    while "$ref" in schema:
        schema = schemas[schema["$ref"].removeprefix(_COMPONENTS)]
    return schema


def _self_contained(schema: dict[str, Any], schemas: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with everything it refers to inside it: a tool client does not read openapi.json."""
    references = _list_references(schema)
    definitions: dict[str, Any] = {}
    while left := references - set(definitions):
        name = left.pop()
        definitions[name] = schemas[name]
        references |= _list_references(schemas[name])
    if not definitions:
        return schema
    text = json.dumps(schema | {"$defs": {name: definitions[name] for name in sorted(definitions)}})
    whole: dict[str, Any] = json.loads(text.replace(f'"{_COMPONENTS}', '"#/$defs/'))
    return whole


def _list_references(schema: Any) -> set[str]:
    return set(re.findall(rf'"{_COMPONENTS}(\w+)"', json.dumps(schema)))


def _headers_schema(words: WireWords) -> dict[str, Any]:
    """The headers that a call may carry: those of machine payments (contract 5.10), and a key against repeats."""
    known = {
        **{rail.credential_header: rail.credential_text for rail in RAILS},
        words.header("Payment-Method"): "The payment rail, as in `payment.method`.",
        "Idempotency-Key": "Kept in the lab's journal; the service has no such key.",
    }
    return {
        "type": "object",
        "description": "HTTP headers of the call; names in any case.",
        "properties": {name: {"type": "string", "description": text} for name, text in known.items()},
    }


def _format_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else json.dumps(value)
