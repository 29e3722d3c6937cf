"""`openapi.json`: the description of the service as this lab sends it, in the words of its deployment.

`openapi.yaml` is the description of the service itself; a test of the product compares the two files.
"""

import copy
import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final

import yaml  # type: ignore[import-untyped]

from assay_lab.api.route import Route
from assay_lab.kernel.settings import API_PREFIX
from assay_lab.words import NEUTRAL_PROVIDER, NEUTRAL_SERVICE, WireWords

DOCUMENT_VERSION: Final = "0.0.2"  # contract 9
_SCHEMA: Final = "#/components/schemas/"


def render_document(words: WireWords, *, partner: bool = False) -> bytes:
    """The document as it is sent, in the deployment's words; `partner` adds the partner-only routes (contract 1)."""
    return _render_document(words.provider, words.service, partner=partner)


@cache
def _render_document(provider: str, service: str, *, partner: bool) -> bytes:
    """The document is written in neutral words and spelt as text, so that no name is left out."""
    text = json.dumps(_load_whole() if partner else _load_public())
    text = re.sub(rf"\b{NEUTRAL_PROVIDER}_", f"{provider}_", text)
    return text.replace(f"X-{NEUTRAL_SERVICE}-", f"X-{service}-").encode()


def load_document(words: WireWords | None = None, *, partner: bool = False) -> dict[str, Any]:
    """The document as data; the caller may change it."""
    made: dict[str, Any] = json.loads(render_document(words or WireWords(), partner=partner))
    return made


def find_operation(route: Route) -> Mapping[str, Any]:
    """The operation of a route, as the document has it."""
    operation: Mapping[str, Any] = _load_whole()["paths"][API_PREFIX + route.path][route.method.lower()]
    return operation


def operation_id(route: Route) -> str:
    """The name of a route's operation, such as `experiments.create`."""
    return str(find_operation(route)["operationId"])


def takes_body(route: Route) -> bool:
    """Whether a route needs a JSON body."""
    return "requestBody" in find_operation(route)


@cache
def _load_whole() -> Mapping[str, Any]:
    text = files("assay_lab.api").joinpath("openapi.yaml").read_text(encoding="utf-8")
    # The loader in C is ten times as fast, and not in every build of PyYAML.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    document: dict[str, Any] = yaml.load(text, Loader=loader)  # noqa: S506 - a safe loader in both cases
    return document


def _load_public() -> Mapping[str, Any]:
    """The document without what is for partners: calls, their tags and the schemas of these calls alone."""
    document = copy.deepcopy(dict(_load_whole()))
    for path in list(document["paths"]):
        calls = document["paths"][path]
        document["paths"][path] = {
            name: call
            for name, call in calls.items()
            if not (isinstance(call, dict) and call.get("x-partner"))
        }
        if not document["paths"][path]:
            del document["paths"][path]
    tags = {
        tag for calls in document["paths"].values() for call in calls.values() for tag in _list_tags(call)
    }
    document["tags"] = [tag for tag in document["tags"] if tag["name"] in tags]
    _drop_unused(document)
    return document


def _list_tags(call: Any) -> list[str]:
    return list(call["tags"]) if isinstance(call, dict) else []


def _drop_unused(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    while unused := schemas.keys() - set(re.findall(rf'"{_SCHEMA}(\w+)"', json.dumps(document))):
        for name in unused:
            del schemas[name]
