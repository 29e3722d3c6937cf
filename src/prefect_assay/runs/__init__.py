"""Everything that is asked of Prefect about runs: tags, queries, suspending, waking, crashes, heartbeats.

`wait_until` is the one primitive that waits: a deployed run suspends, anything else polls. Wake-ups are only hints, so
a lost, doubled, early or late one is harmless: a woken run looks at the service again.
"""

from prefect_assay.runs.suspend import PollPolicy, can_suspend, outlast, wait_until
from prefect_assay.runs.transient_failures import is_passing, was_suspended

__all__ = ["PollPolicy", "can_suspend", "is_passing", "outlast", "wait_until", "was_suspended"]
