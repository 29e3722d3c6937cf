"""Ordering once, without an idempotency key at the service (docs/ordering.md)."""

from prefect_assay.ordering.find import find_or_create, find_order, read_order
from prefect_assay.ordering.key import experiment_name, order_key, search_token

__all__ = ["experiment_name", "find_or_create", "find_order", "order_key", "read_order", "search_token"]
