"""Transport: requests, answers, retries, failures, pages and downloads. Must not know the service's operations."""

from prefect_assay.service.client.http.exchange import RetryPolicy
from prefect_assay.service.client.http.request import (
    UNSET,
    Answer,
    Operation,
    Request,
)

__all__ = ["UNSET", "Answer", "Operation", "Request", "RetryPolicy"]
