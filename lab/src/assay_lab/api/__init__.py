"""The API as data: the route table, and the description that `openapi.json` is made of. Knows handlers, not the web."""

from assay_lab.api.document import (
    DOCUMENT_VERSION,
    described,
    document,
    operation_id,
    rendered,
    takes_body,
)
from assay_lab.api.route import Route
from assay_lab.api.routes import ROUTES, find

__all__ = [
    "DOCUMENT_VERSION",
    "ROUTES",
    "Route",
    "described",
    "document",
    "find",
    "operation_id",
    "rendered",
    "takes_body",
]
