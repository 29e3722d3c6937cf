"""The client of the service: `AssayClient`, and what its calls take and return. Nothing here knows Prefect."""

from prefect_assay.service.client.client import AssayClient
from prefect_assay.service.client.http.exchange import RetryPolicy
from prefect_assay.service.client.http.request import UNSET
from prefect_assay.service.client.resources.documents import RawDocument
from prefect_assay.service.client.resources.quotes import RejectReason
from prefect_assay.service.models.billing import PayAnswer

__all__ = [
    "UNSET",
    "AssayClient",
    "PayAnswer",
    "RawDocument",
    "RejectReason",
    "RetryPolicy",
]
