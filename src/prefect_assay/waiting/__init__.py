"""The decisions of a wait (docs/waiting.md). Pure: nothing here knows Prefect, the network or a clock."""

from prefect_assay.waiting.decide import (
    DEADLINE_DAYS,
    PARTIAL_WAIT,
    Decision,
    NotYet,
    WaitsFor,
    deadline_of,
    decide,
    is_worth_waking,
    patience_of,
    waits_for,
)

__all__ = [
    "DEADLINE_DAYS",
    "PARTIAL_WAIT",
    "Decision",
    "NotYet",
    "WaitsFor",
    "deadline_of",
    "decide",
    "is_worth_waking",
    "patience_of",
    "waits_for",
]
