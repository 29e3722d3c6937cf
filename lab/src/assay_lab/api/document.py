"""`openapi.json`: the frame of the document, its texts and the schemas it refers to."""

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, models_json_schema
from pydantic_core import core_schema

from assay_lab.api.operations import HEADERS, REFERENCE, TAGS, operation, schema_name
from assay_lab.api.route import Route
from assay_lab.api.routes import ROUTES
from assay_lab.api.shapes import Error
from assay_lab.kernel.settings import API_PREFIX
from assay_lab.words import NEUTRAL_PROVIDER, NEUTRAL_SERVICE, WireWords

DOCUMENT_VERSION: Final = "0.0.2"  # contract 9
# Section numbers help readers of the code only.
_SECTIONS: Final = re.compile(r"\s*\((?:[Cc]ontract|service shapes)[^)]*\)")

_TITLE: Final = "Protein characterization service (local lab)"
_BEARER: Final = (
    "A capability token of the shape `<prefix>_<slug><encoded>`. It belongs to an organisation and a role, and"
    " may carry further restrictions."
)
_DESCRIPTION: Final = """\
Order measurements of proteins: create an experiment, submit it, accept and pay the quote, wait for the
laboratory, fetch the results.

**Conventions.** Bodies are JSON. Times are UTC in RFC 3339. Money is integer US cents and excludes VAT. Every
answer carries `x-request-id`; error bodies repeat it as `request_id`.

**Lists** answer `items`, `total`, `count` and `offset`; fetch pages until fewer than `limit` items return.
Unknown query parameters are ignored.

**Filters** are expressions: `eq`, `neq`, `gt`, `lt`, `gte`, `lte`, `contains(field,value)`,
`between(field,low,high)`, `in(field,value,...)`, `is_null(field)`, `is_not_null(field)`, joined by `and(...)`,
`or(...)`, `not(...)`. A field or a value may be cast with `float`, `int`, `text`, `timestamp` or `date`, and a
field entered with `at(field,key)` where it is JSON. A value with brackets, commas or spaces is put in double quotes. Each field also
takes the form `equ(field)=value`, with `geq`, `gtr`, `leq` and `lss` alike.

**Sorting** takes up to eight columns, separated by commas: `desc(field)`, `-field` or `field:desc`, and `asc(field)`,
`+field`, `field` or `field:asc`.
"""


def rendered(words: WireWords, *, partner: bool = False) -> bytes:
    """The document as it is sent, in the deployment's words; `partner` adds the partner-only routes (contract 1)."""
    return _rendered(words.provider, words.service, partner=partner)


@cache
def _rendered(provider: str, service: str, *, partner: bool) -> bytes:
    """The document is written in neutral words and spelt as text, so that no name is left out."""
    text = json.dumps(_neutral(partner=partner))
    text = re.sub(rf"\b{NEUTRAL_PROVIDER}_", f"{provider}_", text)
    return text.replace(f"X-{NEUTRAL_SERVICE}-", f"X-{service}-").encode()


def document(words: WireWords | None = None, *, partner: bool = False) -> dict[str, Any]:
    """The document as data; the caller may change it."""
    made: dict[str, Any] = json.loads(rendered(words or WireWords(), partner=partner))
    return made


def _neutral(*, partner: bool) -> dict[str, Any]:
    routes = [route for route in ROUTES if partner or not route.partner]
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(API_PREFIX + route.path, {})[route.method.lower()] = operation(route)
    described = {route.resource for route in routes}
    return {
        "openapi": "3.1.0",
        # No `servers`: the paths are relative to wherever the document was fetched.
        "info": {"title": _TITLE, "version": DOCUMENT_VERSION, "description": _DESCRIPTION},
        "tags": [tag for resource, tag in TAGS.items() if resource in described],
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "schemas": _schemas(routes),
            "headers": HEADERS,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer", "description": _BEARER}},
        },
    }


def _schemas(routes: Iterable[Route]) -> dict[str, Any]:
    """Every schema that the routes refer to, under its name."""
    shapes: set[type[BaseModel]] = {Error}
    for route in routes:
        named = (route.body, *route.answers.values(), *route.refuses.values())
        shapes.update(shape for shape in named if shape is not None)
    _, made = models_json_schema(
        [(shape, "validation") for shape in sorted(shapes, key=schema_name)],
        ref_template=REFERENCE,
        schema_generator=_Generator,
    )
    found: dict[str, Any] = _tidy(made["$defs"])
    if twice := sorted(name for name in found if "__" in name):
        raise LookupError(f"two schemas of one name: {', '.join(twice)}")
    return found


class _Generator(GenerateJsonSchema):
    """Leaves out titles that repeat names, and `default: null`."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        del schema
        return False

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        made = super().default_schema(schema)
        if made.get("default", ...) is None:
            del made["default"]
        return made


def _tidy(value: Any) -> Any:
    """Reduce docstrings to their prose, at any depth."""
    if isinstance(value, Mapping):
        return {
            key: _plain(item) if key == "description" and isinstance(item, str) else _tidy(item)
            for key, item in value.items()
        }
    return [_tidy(item) for item in value] if isinstance(value, list) else value


def _plain(docstring: str) -> str:
    whole = docstring.partition("\n\nAttributes:")[0]
    return " ".join(_SECTIONS.sub("", whole).split())
