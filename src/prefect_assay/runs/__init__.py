"""Everything this package asks of Prefect about runs: tags, queries, suspending, waking, crashes, heartbeats.

`wait_until` is the one primitive that waits: a deployed run suspends, any other run polls. Wake-ups are only hints, so
a lost, doubled, early or late one is harmless: a woken run reads the service again. Nothing here knows the service,
orders or payments.
"""

from prefect_assay.runs.suspend import PollPolicy, can_suspend, outlast, wait_until
from prefect_assay.runs.transient_failures import is_temporary, was_suspended

__all__ = ["PollPolicy", "can_suspend", "is_temporary", "outlast", "wait_until", "was_suspended"]
