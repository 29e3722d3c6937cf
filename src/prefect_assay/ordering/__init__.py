"""Order once, although the service has no idempotency key (docs/ordering.md). Knows neither Prefect nor httpx."""

from prefect_assay.ordering.create import acceptance_of, find_or_create
from prefect_assay.ordering.find import (
    adopt,
    choose,
    confirm_order,
    find_order,
    read_order,
)
from prefect_assay.ordering.identity import Evidence, evidence, experiment_name, order_key, search_token
from prefect_assay.ordering.targets import resolve_target

__all__ = [
    "Evidence",
    "acceptance_of",
    "adopt",
    "choose",
    "confirm_order",
    "evidence",
    "experiment_name",
    "find_or_create",
    "find_order",
    "order_key",
    "read_order",
    "resolve_target",
    "search_token",
]
