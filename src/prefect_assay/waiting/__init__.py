"""Waiting for days without a process, and being woken (docs/waiting.md).

`decide` is pure. `wait_until` is the one primitive: a deployed run suspends, anything else polls. Wake-ups are
only hints, so a lost, doubled, early or late one is harmless: a woken run looks at the service again.
"""

from prefect_assay.waiting.decide import Decision, Failed, Overdue, Partial, Ready, Wait, decide
from prefect_assay.waiting.suspend import PollPolicy, can_suspend, outlast, wait_until
from prefect_assay.waiting.trouble import is_passing, was_suspended
from prefect_assay.waiting.worth import WaitsFor

__all__ = [
    "Decision",
    "Failed",
    "Overdue",
    "Partial",
    "PollPolicy",
    "Ready",
    "Wait",
    "WaitsFor",
    "can_suspend",
    "decide",
    "is_passing",
    "outlast",
    "wait_until",
    "was_suspended",
]
