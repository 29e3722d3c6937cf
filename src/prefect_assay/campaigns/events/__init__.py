"""Prefect events of what happens to orders, experiments, questions, budgets and rounds (docs/operating.md).

`kinds` is the table of all events; `sending` sends them, best effort and once per fact and run. Nothing here reads the
service or decides anything.
"""

from prefect_assay.campaigns.events.kinds import KINDS, Fact
from prefect_assay.campaigns.events.sending import (
    EVENTS_LABEL,
    describe_subject,
    emit_fact,
    flush_events,
    is_news,
    record_facts,
    send_event,
)

__all__ = [
    "EVENTS_LABEL",
    "KINDS",
    "Fact",
    "describe_subject",
    "emit_fact",
    "flush_events",
    "is_news",
    "record_facts",
    "send_event",
]
