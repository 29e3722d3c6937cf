"""What a wait decides: pure, and without Prefect (docs/waiting.md)."""

from prefect_assay.waiting.decide import Decision, Failed, Overdue, Partial, Ready, Wait, decide
from prefect_assay.waiting.wake_decision import WaitsFor

__all__ = [
    "Decision",
    "Failed",
    "Overdue",
    "Partial",
    "Ready",
    "Wait",
    "WaitsFor",
    "decide",
]
