"""The decisions of a wait (docs/waiting.md). Pure: nothing here knows Prefect, the network or a clock."""

from prefect_assay.waiting.decide import (
    PARTIAL_WAIT,
    Decision,
    NotYet,
    WaitsFor,
    deadline_of,
    decide,
    is_worth_waking,
    waits_for,
)

__all__ = [
    "PARTIAL_WAIT",
    "Decision",
    "NotYet",
    "WaitsFor",
    "deadline_of",
    "decide",
    "is_worth_waking",
    "waits_for",
]
