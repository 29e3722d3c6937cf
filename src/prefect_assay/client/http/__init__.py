"""Transport: requests, answers, retries, failures, pages and downloads.

It knows neither the operations of the service nor their models. Only `wire` knows httpx.
"""

from prefect_assay.client.http.exchange import RetryPolicy
from prefect_assay.client.http.request import UNSET, Answer, Operation, Request

__all__ = ["UNSET", "Answer", "Operation", "Request", "RetryPolicy"]
