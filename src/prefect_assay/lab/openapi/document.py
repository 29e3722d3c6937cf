"""The whole document: its frame, and one operation per route.

It is written in neutral words and spelt as text at the end, so that no name is forgotten.
"""

import json
import re
from functools import cache
from typing import Any, Final

from prefect_assay.lab.kernel.settings import API_PREFIX
from prefect_assay.lab.openapi import prose
from prefect_assay.lab.openapi.answers import HEADERS
from prefect_assay.lab.openapi.components import components
from prefect_assay.lab.openapi.operations import operation
from prefect_assay.lab.routing import ROUTES
from prefect_assay.models.words import NEUTRAL_PROVIDER, NEUTRAL_SERVICE, WireWords

DOCUMENT_VERSION: Final = "0.0.2"  # contract 9


def rendered(words: WireWords, *, partner: bool = False) -> bytes:
    """The document as it is sent; made once for each kind of reader.

    Args:
        words: how this deployment spells the two neutral words.
        partner: describe the partner-only routes as well (contract 1).
    """
    return _rendered(words.provider, words.service, partner=partner)


@cache
def _rendered(provider: str, service: str, *, partner: bool) -> bytes:
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
        "info": {"title": prose.TITLE, "version": DOCUMENT_VERSION, "description": prose.DESCRIPTION},
        "tags": [tag for resource, tag in prose.TAGS.items() if resource in described],
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "schemas": components(routes),
            "headers": HEADERS,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "description": prose.BEARER},
            },
        },
    }
