"""Compares the interface that the client was written for with a description of today's service. Pure: it sends nothing.

`interface.json` is the interface that the client was written for, `usage` the parts of it that the client uses.
"""

from prefect_assay.client.drift.compare import Change, compare
from prefect_assay.client.drift.document import Facts, facts_of, known_interface
from prefect_assay.client.drift.usage import usage_by_operation

__all__ = ["Change", "Facts", "compare", "facts_of", "known_interface", "usage_by_operation"]
