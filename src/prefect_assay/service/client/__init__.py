"""The client of the service: a core without I/O, and two thin faces over httpx. Nothing here knows Prefect."""

from prefect_assay.service.client.asynchronous import AsyncAssayClient
from prefect_assay.service.client.http.exchange import RetryPolicy
from prefect_assay.service.client.http.request import UNSET
from prefect_assay.service.client.operations.billing import RejectReason
from prefect_assay.service.client.operations.results import RawDocument
from prefect_assay.service.client.operations.tokens import attenuate_offline
from prefect_assay.service.client.sync import AssayClient
from prefect_assay.service.models.billing import PayAnswer

__all__ = [
    "UNSET",
    "AssayClient",
    "AsyncAssayClient",
    "PayAnswer",
    "RawDocument",
    "RejectReason",
    "RetryPolicy",
    "attenuate_offline",
]
