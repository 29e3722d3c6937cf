"""One call of the API as an operation of the document."""

from typing import Any

from prefect_assay.lab.openapi import prose
from prefect_assay.lab.openapi.answers import responses
from prefect_assay.lab.openapi.components import reference
from prefect_assay.lab.openapi.parameters import parameters
from prefect_assay.lab.routing import Route


def operation_id(route: Route) -> str:
    """Stable: the method and the path, in words."""
    return f"{route.method.lower()}{route.path}".translate(str.maketrans("/-", "__", "{}"))


def operation(route: Route) -> dict[str, Any]:
    """The operation object."""
    made: dict[str, Any] = {
        "operationId": operation_id(route),
        "summary": route.summary,
        "tags": [prose.TAGS[route.resource]["name"]],
    }
    if description := _description(route):
        made["description"] = description
    if found := parameters(route):
        made["parameters"] = found
    if route.body is not None:
        content = {"application/json": {"schema": reference(route.body)}}
        made["requestBody"] = {"required": True, "content": content}
    made["responses"] = responses(route)
    if route.open:
        made["security"] = []
    return made


def _description(route: Route) -> str:
    needs = "" if route.open else f"Needs `{route.resource}:{route.action}`."
    partner = "Partner tokens only." if route.partner else ""
    return " ".join(part for part in (route.description, partner, needs) if part)
