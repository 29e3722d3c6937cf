"""The API as data: route table, shapes of answers, and `openapi.json` of both. Knows handlers, not the web."""

from assay_lab.api.document import DOCUMENT_VERSION, document, rendered
from assay_lab.api.operations import operation_id, refusals
from assay_lab.api.route import Route
from assay_lab.api.routes import ROUTES, find

__all__ = ["DOCUMENT_VERSION", "ROUTES", "Route", "document", "find", "operation_id", "refusals", "rendered"]
