"""Finding, suspending and waking runs: tags, queries, children, crashes, heartbeats.

Nothing here knows the service, orders or payments. docs/waiting.md explains `wait_until`.
"""

from prefect_assay.runs.block_references import as_parameter
from prefect_assay.runs.suspend import PollPolicy, can_suspend, outlast, wait_until
from prefect_assay.runs.transient_failures import is_temporary, was_suspended

__all__ = [
    "PollPolicy",
    "as_parameter",
    "can_suspend",
    "is_temporary",
    "outlast",
    "wait_until",
    "was_suspended",
]
