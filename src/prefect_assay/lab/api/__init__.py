"""The API as data: the route table, the shapes of its answers, and `openapi.json` made from both (contract 1 and 9).

Knows the handlers, but neither a web framework nor a running lab.
"""

from prefect_assay.lab.api.document import DOCUMENT_VERSION, document, rendered
from prefect_assay.lab.api.operations import operation_id, refusals
from prefect_assay.lab.api.route import Route
from prefect_assay.lab.api.routes import ROUTES, find

__all__ = ["DOCUMENT_VERSION", "ROUTES", "Route", "document", "find", "operation_id", "refusals", "rendered"]
