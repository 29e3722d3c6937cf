"""The machine-readable description, openapi.json (contract 1 and 9). Needs no token.

The request schemas are the ones that validate. FastAPI's own 422 body is left out: the lab never sends it.
"""

from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, Field
from pydantic.json_schema import models_json_schema

from prefect_assay.lab.routes import ROUTES, Route

DOCUMENT_VERSION: Final = "0.0.2"
_REFS: Final = "#/components/schemas/{model}"
_INTEGERS: Final = frozenset({"limit", "offset"})
_FLAGS: Final = frozenset({"selfservice_only", "detailed", "show_conjugated"})


class Error(BaseModel):
    """Error body (contract 2.12)."""

    error: str
    request_id: str = Field(description="Shape req_<id>.")
    code: str | None = None


_ERRORS: Final = {
    400: "Invalid request",
    401: "Missing or invalid token",
    403: "Insufficient permission",
    404: "Not found, or not yet",
    409: "Not possible in this state",
    415: "No JSON body",
    422: "Semantically invalid",
    500: "Internal server error",
}


def description(route: Route) -> dict[str, Any]:
    """What FastAPI needs to describe a route."""
    errors = [401, 403, 404, 500]
    if route.parameters or route.body:
        errors.append(400)
    if route.access == "write":
        errors.append(409)
    if route.body:
        errors += [415, 422]
    extra: dict[str, Any] = {"security": [{"bearer": []}]}
    if route.parameters:
        extra["parameters"] = [_parameter(name) for name in route.parameters]
    if route.body:
        schema = {"$ref": _REFS.format(model=route.body.__name__)}
        extra["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return {
        "summary": route.summary,
        "status_code": route.statuses[0],
        "responses": {
            **{status: {"description": "Success"} for status in route.statuses},
            **{status: {"model": Error, "description": _ERRORS[status]} for status in sorted(errors)},
        },
        "openapi_extra": extra,
        "operation_id": f"{route.method.lower()}{route.path.replace('/', '_').replace('{', '').replace('}', '')}",
    }


def _parameter(name: str) -> dict[str, Any]:
    kind = "integer" if name in _INTEGERS else "boolean" if name in _FLAGS else "string"
    return {"name": name, "in": "query", "required": False, "schema": {"type": kind}}


def document(app: FastAPI) -> dict[str, Any]:
    """The whole description; made once."""
    if app.openapi_schema is None:
        made = get_openapi(title=app.title, version=DOCUMENT_VERSION, routes=app.routes)
        bodies = sorted({route.body for route in ROUTES if route.body}, key=lambda body: body.__name__)
        _, schemas = models_json_schema([(body, "validation") for body in bodies], ref_template=_REFS)
        components = made.setdefault("components", {})
        components.setdefault("schemas", {}).update(schemas["$defs"])
        components["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
        app.openapi_schema = made
    return app.openapi_schema
