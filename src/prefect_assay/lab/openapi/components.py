"""The schemas of the document: request bodies as the lab validates them, answers as the tests hold it to them."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, models_json_schema
from pydantic_core import core_schema

from prefect_assay.lab.routing import Route
from prefect_assay.lab.shapes.errors import Error

_REFERENCE: Final = "#/components/schemas/{model}"
# Section numbers help who reads the code, and nobody who reads the document.
_SECTIONS = re.compile(r"\s*\((?:[Cc]ontract|service shapes)[^)]*\)")


def reference(shape: type[BaseModel]) -> dict[str, str]:
    """Points to a schema of the document."""
    return {"$ref": _REFERENCE.format(model=_name(shape))}


def components(routes: Iterable[Route]) -> dict[str, Any]:
    """Every schema that the routes refer to, under its name."""
    shapes = {shape for route in routes for shape in shapes_of(route)} | {Error}
    ordered = sorted(shapes, key=_name)
    _, made = models_json_schema(
        [(shape, "validation") for shape in ordered],
        ref_template=_REFERENCE,
        schema_generator=_Generator,
    )
    found: dict[str, Any] = _tidy(made["$defs"])
    if twice := sorted(name for name in found if "__" in name):
        raise LookupError(f"two schemas of one name: {', '.join(twice)}")
    return found


def shapes_of(route: Route) -> set[type[BaseModel]]:
    """The schemas that a route names itself."""
    named = (route.body, *route.answers.values(), *route.refuses.values())
    return {shape for shape in named if shape is not None}


def _name(shape: type[BaseModel]) -> str:
    return re.sub(r"[^a-zA-Z0-9.\-_]", "_", shape.__name__)


class _Generator(GenerateJsonSchema):
    """Without titles that repeat names, and without `default: null`, which says nothing."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        del schema
        return False

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        made = super().default_schema(schema)
        if made.get("default", ...) is None:
            del made["default"]
        return made


def _tidy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            key: _plain(item) if key == "description" and isinstance(item, str) else _tidy(item)
            for key, item in value.items()
        }
    return [_tidy(item) for item in value] if isinstance(value, list) else value


def _plain(docstring: str) -> str:
    whole = docstring.partition("\n\nAttributes:")[0]
    return " ".join(_SECTIONS.sub("", whole).split())
