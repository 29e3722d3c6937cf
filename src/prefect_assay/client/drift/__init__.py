"""Compares the interface that the client was written for with a description of today's service. Pure: it sends nothing.

`interface.json` is the interface that the client was written for, `usage` what the client sends and reads of it.
"""

from prefect_assay.client.drift.compare import Change, compare
from prefect_assay.client.drift.document import Facts, facts_of
from prefect_assay.client.drift.usage import usage_by_operation

__all__ = ["Change", "Facts", "compare", "facts_of", "usage_by_operation"]
