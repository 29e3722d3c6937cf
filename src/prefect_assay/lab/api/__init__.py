"""The API as data: route table, shapes of answers, and `openapi.json` of both. Knows handlers, not the web."""

from prefect_assay.lab.api.document import DOCUMENT_VERSION, document, rendered
from prefect_assay.lab.api.operations import operation_id, refusals
from prefect_assay.lab.api.route import Route
from prefect_assay.lab.api.routes import ROUTES, find

__all__ = ["DOCUMENT_VERSION", "ROUTES", "Route", "document", "find", "operation_id", "refusals", "rendered"]
