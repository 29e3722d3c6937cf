"""The API as data: the route table, and the description that `openapi.json` is made of. Knows handlers, not the web."""

from assay_lab.api.document import (
    DOCUMENT_VERSION,
    find_operation,
    load_document,
    operation_id,
    render_document,
    takes_body,
)
from assay_lab.api.route import Route
from assay_lab.api.routes import ROUTES, find_routes

__all__ = [
    "DOCUMENT_VERSION",
    "ROUTES",
    "Route",
    "find_operation",
    "find_routes",
    "load_document",
    "operation_id",
    "render_document",
    "takes_body",
]
