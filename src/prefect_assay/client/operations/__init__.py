"""The operations of the service by resource: pure functions that build a request and read its answer.

Nothing here sends, and nothing here knows httpx.
"""

from prefect_assay.client.operations import (
    billing,
    documents,
    experiments,
    payment,
    results,
    sequences,
    service,
    targets,
    tokens,
    updates,
    webhooks,
)

__all__ = [
    "billing",
    "documents",
    "experiments",
    "payment",
    "results",
    "sequences",
    "service",
    "targets",
    "tokens",
    "updates",
    "webhooks",
]
