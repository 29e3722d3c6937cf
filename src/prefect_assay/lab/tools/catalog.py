"""Every call of the API as a tool: its name, its input schema, and the request that its arguments make.

Made from the route table as openapi.json describes it, so that a new route is a tool by itself (contract 1). Knows neither the
tool protocol, which `tools_server` speaks, nor how a request is carried out.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode

from prefect_assay.lab import openapi
from prefect_assay.lab.kernel.refusals import Refusal
from prefect_assay.lab.kernel.settings import API_PREFIX
from prefect_assay.lab.routing import ROUTES, Route
from prefect_assay.models.words import WireWords

# The one argument that is no parameter of the call. No body field has this name, other than plain `headers`.
HEADERS: Final = "request_headers"

_COMPONENTS: Final = "#/components/schemas/"


@dataclass(frozen=True, slots=True)
class Request:
    """What a tool call asks of the API. Header names are lower case; the path is whole and decoded."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Tool:
    """One call of the API as a tool.

    Attributes:
        name: the `operationId` of the call in openapi.json.
        title: one line for people.
        description: more for people.
        method: HTTP method.
        path: with its parameters in braces, from the service's root.
        schema: JSON Schema of the arguments.
        reads: changes nothing.
        destructive: takes something away for good.
        partner: shown to partner tokens only.
    """

    name: str
    title: str
    description: str
    method: str
    path: str
    schema: Mapping[str, Any]
    reads: bool
    destructive: bool
    partner: bool
    _path_names: tuple[str, ...]
    _query_names: tuple[str, ...]
    _has_body: bool
    _header_names: frozenset[str]

    def request(self, arguments: Mapping[str, Any]) -> Request:
        """The request that these arguments make. What the API itself can refuse is left to it.

        Raises:
            Refusal: 400 when a part of the path is missing, or for a header that may not be passed.
        """
        left = dict(arguments)
        headers = self._headers(left.pop(HEADERS, None) or {})
        missing = [name for name in self._path_names if not isinstance(left.get(name), str) or not left[name]]
        if missing:
            raise Refusal.of_findings(400, [f"{name}: a text is required" for name in missing])
        path = self.path
        for name in self._path_names:
            # Encoded, so that no id reaches into another path.
            path = path.replace(f"{{{name}}}", quote(left.pop(name), safe=""))
        # Lists take every field in the per-field form, and not all of these are listed (contract 4.1).
        queries = list(left) if self.method == "GET" else [name for name in self._query_names if name in left]
        query = {name: _text(value) for name in queries if (value := left.pop(name)) is not None}
        body = b""
        if self._has_body or left:
            headers |= {"content-type": "application/json"}
            body = json.dumps(left).encode()
        return Request(self.method, path, urlencode(query), headers, body)

    def _headers(self, given: Any) -> dict[str, str]:
        if not isinstance(given, Mapping):
            raise Refusal(400, f"{HEADERS}: an object of header names and values is required")
        taken: dict[str, str] = {}
        for name, value in given.items():
            if str(name).lower() not in self._header_names or not isinstance(value, str):
                raise Refusal(400, f"{HEADERS}: takes texts for {', '.join(sorted(self._header_names))} only")
            if not value.isascii() or not value.isprintable():
                raise Refusal(400, f"{HEADERS}: {name} may hold printable ASCII only")
            taken[str(name).lower()] = value
        return taken


def catalog(words: WireWords) -> dict[str, Tool]:
    """All tools by name, in the order of the route table; the description of the API comes last."""
    document = openapi.document(words, partner=True)
    made = [_tool(route, document, words) for route in ROUTES]
    made.append(_openapi())
    return {tool.name: tool for tool in made}


def _tool(route: Route, document: Mapping[str, Any], words: WireWords) -> Tool:
    """The call as openapi.json describes it, its parameters and the fields of its body side by side."""
    operation = document["paths"][API_PREFIX + route.path][route.method.lower()]
    schemas = document["components"]["schemas"]
    body = _body(operation, schemas)
    given = {part["name"]: part for part in operation.get("parameters", ()) if part["in"] != "header"}
    paths = tuple(name for name, part in given.items() if part["in"] == "path")
    fields = body.get("properties", {})
    if twice := (set(given) | {HEADERS}) & set(fields):
        raise ValueError(f"{route.method} {route.path} has two parameters named {', '.join(sorted(twice))}")
    properties = {name: part["schema"] | {"description": part["description"]} for name, part in given.items()}
    properties |= fields
    headers = _headers_schema(words)
    if route.writes:
        properties[HEADERS] = headers
    schema = {"type": "object", "properties": properties, "required": [*paths, *body.get("required", ())]}
    return Tool(
        name=operation["operationId"],
        title=operation["summary"],
        description=f"{route.method} {API_PREFIX}{route.path}. {operation.get('description', '')}".strip(),
        method=route.method,
        path=API_PREFIX + route.path,
        schema=_standing_alone(schema, schemas),
        reads=not route.writes,
        destructive=route.destructive,
        partner=route.partner,
        _path_names=paths,
        _query_names=tuple(name for name in given if name not in paths),
        _has_body=route.body is not None,
        _header_names=frozenset(name.lower() for name in headers["properties"]),
    )


def _openapi() -> Tool:
    return Tool(
        name="get_openapi_json",
        title="Describe the API",
        description=f"GET {API_PREFIX}/openapi.json. The machine-readable description.",
        method="GET",
        path=f"{API_PREFIX}/openapi.json",
        schema={"type": "object", "properties": {}},
        reads=True,
        destructive=False,
        partner=False,
        _path_names=(),
        _query_names=(),
        _has_body=False,
        _header_names=frozenset(),
    )


def _body(operation: Mapping[str, Any], schemas: Mapping[str, Any]) -> Mapping[str, Any]:
    """Schema of the request body, or an empty one."""
    if "requestBody" not in operation:
        return {}
    schema: Mapping[str, Any] = operation["requestBody"]["content"]["application/json"]["schema"]
    while "$ref" in schema:
        schema = schemas[schema["$ref"].removeprefix(_COMPONENTS)]
    return schema


def _standing_alone(schema: dict[str, Any], schemas: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with everything it refers to inside it: a tool client does not read openapi.json."""
    wanted = _references(schema)
    found: dict[str, Any] = {}
    while left := wanted - set(found):
        name = left.pop()
        found[name] = schemas[name]
        wanted |= _references(schemas[name])
    if not found:
        return schema
    text = json.dumps(schema | {"$defs": {name: found[name] for name in sorted(found)}})
    whole: dict[str, Any] = json.loads(text.replace(f'"{_COMPONENTS}', '"#/$defs/'))
    return whole


def _references(schema: Any) -> set[str]:
    return set(re.findall(rf'"{_COMPONENTS}(\w+)"', json.dumps(schema)))


def _headers_schema(words: WireWords) -> dict[str, Any]:
    """The headers that a call may carry: those of machine payments (contract 5.10), and a key against repeats."""
    known = {
        "PAYMENT-SIGNATURE": "x402-exact: the credential that answers PAYMENT-REQUIRED.",
        "Payment-Authorization": "mpp-spt: the credential that answers WWW-Authenticate: Payment.",
        words.header("Payment-Method"): "The payment rail, as in `payment.method`.",
        "Idempotency-Key": "Kept in the lab's journal; the service has no such key.",
    }
    return {
        "type": "object",
        "description": "HTTP headers of the call; names in any case.",
        "properties": {name: {"type": "string", "description": text} for name, text in known.items()},
    }


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else json.dumps(value)
