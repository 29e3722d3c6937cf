"""The operations of the service by resource: pure functions that build a request and read its answer.

Nothing here sends, and nothing here knows httpx.
"""

from prefect_assay.service.client.operations import (
    billing,
    experiments,
    results,
    sequences,
    service,
    states,
    targets,
    tokens,
    updates,
)

__all__ = [
    "billing",
    "experiments",
    "results",
    "sequences",
    "service",
    "states",
    "targets",
    "tokens",
    "updates",
]
