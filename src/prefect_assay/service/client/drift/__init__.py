"""Compares the description that the client was written for with a description of today's service. Sends nothing."""

from prefect_assay.service.client.drift.compare import Change, compare
from prefect_assay.service.client.drift.document import Facts, facts_of, known_interface
from prefect_assay.service.client.drift.usage import usage_by_operation

__all__ = ["Change", "Facts", "compare", "facts_of", "known_interface", "usage_by_operation"]
