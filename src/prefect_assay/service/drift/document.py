"""An OpenAPI document as plain facts: one line per parameter, body field and answer field of each operation.

References are followed, unions are joined, a deployment's words become the neutral ones. Titles, descriptions, examples
and names of schemas are not facts, because they are not on the wire.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from prefect_assay.errors import InputError
from prefect_assay.service.description import list_calls, load_description
from prefect_assay.service.models.service import NEUTRAL_PROVIDER, WireWords

Facts = dict[str, dict[str, Any]]

_DEPTH_MAX: Final = 12
_LIMITS: Final = (
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
)
_SUCCESS: Final = ("2", "3")  # a redirect is how the file of an invoice is found
_JSON: Final = "application/json"


def facts_of(document: Mapping[str, Any], words: WireWords | None = None) -> dict[str, Facts]:
    """The facts of each operation, such as `GET /experiments/{}`, by place; InputError if it is not an OpenAPI document.

    Places are `query limit`, `header <name>`, `body` and `body <field>`, `answer <status>` and
    `answer <status> <field>`, and `refusals`.
    """
    paths = document.get("paths")
    if not isinstance(paths, dict) or not paths:
        raise InputError("this is not an OpenAPI document: it describes no paths")
    reader = _Reader(document, words or WireWords())
    return {
        name: dict(sorted(reader.read_operation(operation, shared)))
        for name, operation, shared in sorted(list_calls(document), key=lambda call: call[0])
    }


@cache
def known_interface() -> dict[str, Facts]:
    """The facts that the client was written for, from the description of the service; do not change them."""
    return facts_of(load_description())


def above(place: str) -> str | None:
    """The place that contains a place; None for a parameter and for the whole body or answer."""
    if place.endswith("[]"):
        return place[:-2]
    head, dot, _ = place.rpartition(".")
    if dot:
        return head
    head, _, _ = place.rpartition(" ")
    return None if head in {"", "query", "header", "answer"} else head


class _Reader:
    def __init__(self, document: Mapping[str, Any], words: WireWords) -> None:
        self._document = document
        self._provider = f"{words.provider}_"
        self._header = words.header("").lower()

    def read_operation(
        self, operation: Mapping[str, Any], shared: list[Any]
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """Place and facts of each parameter, body field and answer field of an operation."""
        for raw in [*shared, *(operation.get("parameters") or [])]:
            yield from self._parameter(self._resolved(raw))
        body = self._resolved(operation.get("requestBody") or {})
        schema = _json_schema(body)
        if schema is not None:
            yield from self._fields("body", schema, required=body.get("required") is True)
        answers = {
            str(status): self._resolved(raw) for status, raw in (operation.get("responses") or {}).items()
        }
        for status, answer in answers.items():
            if status.startswith(_SUCCESS):
                yield from self._answer(f"answer {status}", answer)
        yield (
            "refusals",
            {"statuses": sorted(status for status in answers if not status.startswith(_SUCCESS))},
        )

    def _parameter(self, raw: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        kind, name = str(raw.get("in")), str(raw.get("name"))
        if kind == "header" and name.lower().startswith(self._header):
            name = f"x-service-{name[len(self._header) :]}"
        if kind == "path":
            return
        name = name.lower() if kind == "header" else self._neutral(name)
        fact = self._fact(raw.get("schema") or {}, required=raw.get("required") is True)
        yield f"{kind} {name}", fact

    def _answer(self, place: str, answer: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        schema = _json_schema(answer)
        if schema is None:
            yield place, {"media": sorted(answer.get("content") or {})}
        else:
            yield from self._fields(place, schema, required=True)

    def _fields(
        self, place: str, schema: Any, *, required: bool, depth: int = 0, seen: tuple[str, ...] = ()
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """The fact of a place, and those of all places below it."""
        yield place, self._fact(schema, required=required)
        variants = list(self._variants(schema, seen))
        if depth > _DEPTH_MAX:
            return
        inner: dict[str, list[tuple[Any, bool, tuple[str, ...]]]] = {}
        objects = [(variant, refs) for variant, refs in variants if "object" in _types(variant)]
        for variant, refs in objects:
            needed = set(_always_there(variant))
            for name, below in (variant.get("properties") or {}).items():
                entry = (below, name in needed, refs)
                inner.setdefault(self._neutral(name), []).append(entry)
            if isinstance(variant.get("additionalProperties"), dict) and variant["additionalProperties"]:
                inner.setdefault("*", []).append((variant["additionalProperties"], False, refs))
        for variant, refs in variants:
            if isinstance(variant.get("items"), dict):
                inner.setdefault("[]", []).append((variant["items"], False, refs))
        for name, entries in inner.items():
            always = all(is_needed for _, is_needed, _ in entries) and len(entries) == len(objects)
            joined = entries[0][0] if len(entries) == 1 else {"anyOf": [below for below, _, _ in entries]}
            refs = entries[0][2]
            yield from self._fields(_below(place, name), joined, required=always, depth=depth + 1, seen=refs)

    def _fact(self, schema: Any, *, required: bool) -> dict[str, Any]:
        types: set[str] = set()
        values: set[str] = set()
        closed = True
        limits: dict[str, Any] = {}
        for variant, _ in self._variants(schema, ()):
            variant_types = _types(variant)
            types |= variant_types
            if variant_types == {"null"}:
                continue
            choices = variant.get("enum", [variant["const"]] if "const" in variant else None)
            closed = closed and choices is not None
            values |= {str(value) for value in choices or () if value is not None}
            limits |= {name: variant[name] for name in _LIMITS if name in variant}
        fact: dict[str, Any] = {"type": sorted(types), "required": required}
        if closed and values:
            fact["enum"] = sorted(values)
        return fact | ({"limits": dict(sorted(limits.items()))} if limits else {})

    def _variants(
        self, schema: Any, seen: tuple[str, ...]
    ) -> Iterator[tuple[dict[str, Any], tuple[str, ...]]]:
        """The plain schemas that a schema may resolve to; a reference to itself ends there."""
        if not isinstance(schema, dict):
            yield {}, seen
            return
        reference = schema.get("$ref")
        if isinstance(reference, str):
            if reference not in seen:
                yield from self._variants(self._target(reference), (*seen, reference))
            return
        for word in ("anyOf", "oneOf"):
            # Next to properties it says which of them are needed, and has no fields of its own.
            if schema.get(word) and "properties" not in schema:
                for variant in schema[word]:
                    yield from self._variants(variant, seen)
                return
        if schema.get("allOf"):
            yield self._merged(schema, seen), seen
            return
        yield schema, seen

    def _merged(self, schema: dict[str, Any], seen: tuple[str, ...]) -> dict[str, Any]:
        whole: dict[str, Any] = {"properties": dict(schema.get("properties") or {}), "required": []}
        for part in schema["allOf"]:
            for variant, _ in self._variants(part, seen):
                rest = {k: v for k, v in variant.items() if k not in {"properties", "required"}}
                whole |= rest
                whole["properties"] |= variant.get("properties") or {}
                whole["required"] = [*whole["required"], *_always_there(variant)]
        whole["required"] += _always_there(schema)
        return whole if whole["properties"] else {k: v for k, v in whole.items() if k != "properties"}

    def _resolved(self, value: Any) -> dict[str, Any]:
        if isinstance(value, dict) and isinstance(value.get("$ref"), str):
            value = self._target(value["$ref"])
        return value if isinstance(value, dict) else {}

    def _target(self, reference: str) -> Any:
        node: Any = self._document
        for part in reference.removeprefix("#/").split("/"):
            step = part.replace("~1", "/").replace("~0", "~")
            if not reference.startswith("#/") or not isinstance(node, dict) or step not in node:
                raise InputError(f"the document refers to {reference!r}, which is not in it")
            node = node[step]
        return node

    def _neutral(self, name: str) -> str:
        head, bracket, tail = name.rpartition("(")
        if not tail.startswith(self._provider):
            return name
        return f"{head}{bracket}{NEUTRAL_PROVIDER}_{tail[len(self._provider) :]}"


def _always_there(schema: Mapping[str, Any]) -> list[str]:
    """Fields that the schema requires, and those that published answers always have."""
    return [*(schema.get("required") or ()), *(schema.get("x-published-required") or ())]


def _json_schema(value: Mapping[str, Any]) -> Any:
    content = value.get("content")
    media = content.get(_JSON) if isinstance(content, dict) else None
    return media.get("schema") if isinstance(media, dict) else None


def _types(schema: Mapping[str, Any]) -> set[str]:
    """JSON types; `any` where the schema has none."""
    declared = schema.get("type")
    if isinstance(declared, str):
        types = {declared}
    elif isinstance(declared, list):
        types = {str(item) for item in declared}
    elif "const" in schema or "enum" in schema:
        types = {_type_of(value) for value in schema.get("enum", [schema.get("const")])}
    elif "properties" in schema:
        types = {"object"}
    elif "items" in schema:
        types = {"array"}
    else:
        types = {"any"}
    return types | ({"null"} if schema.get("nullable") is True else set())


def _type_of(value: object) -> str:
    names = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}
    return names.get(type(value), "any")


def _below(place: str, name: str) -> str:
    if name == "[]":
        return f"{place}[]"
    return f"{place} {name}" if " " not in place.removeprefix("answer ") else f"{place}.{name}"
