"""The machine-readable description, openapi.json (contract 1 and 9), made from the route table.

It knows routes, shapes and words, and neither the web framework nor a running lab.
"""

from prefect_assay.lab.openapi.document import DOCUMENT_VERSION, document, rendered
from prefect_assay.lab.openapi.operations import operation_id

__all__ = ["DOCUMENT_VERSION", "document", "operation_id", "rendered"]
