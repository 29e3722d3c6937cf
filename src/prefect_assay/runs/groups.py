"""Groups of child runs: which have ended, and waking the runs that wait for them. Its cost follows what has ended.

A run is counted, not read: the parameters of a thousand children are many megabytes.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import (
    FlowFilter,
    FlowRunFilter,
    FlowRunFilterEndTime,
    FlowRunFilterTags,
)
from prefect.client.schemas.objects import TERMINAL_STATES, FlowRun, StateType

from prefect_assay.runs.queries import GROUP_TAG, LOST_AFTER, WAITS_TAG, in_state, pages_with
from prefect_assay.runs.wake import wake

_GOING_ON: Final = [state for state in StateType if state not in TERMINAL_STATES]


def ended_since(client: SyncPrefectClient, flows: FlowFilter, since: datetime) -> Iterator[FlowRun]:
    """The runs that have ended since then."""
    ended = FlowRunFilter(state=in_state(*sorted(TERMINAL_STATES)), end_time=_after(since))
    for page in pages_with(client, ended, flows):
        yield from page


def wake_finished(client: SyncPrefectClient, groups: Iterable[str]) -> list[UUID]:
    """Resume the runs that wait for a group of child runs, when every child has ended."""
    # A group without children has lost them: its parent looks, and starts or finds them again.
    return [
        run_id
        for group in sorted(groups)
        if not _goes_on(client, group)
        for run_id in wake(client, WAITS_TAG + group)
    ]


def _goes_on(client: SyncPrefectClient, group: str) -> bool:
    """Whether a child has not ended. One that has crashed lately is started again, and has not; see `has_ended`."""
    tags = FlowRunFilterTags(all_=[GROUP_TAG + group])
    going_on = FlowRunFilter(tags=tags, state=in_state(*_GOING_ON))
    lately = _after(datetime.now(UTC) - LOST_AFTER)
    crashed = FlowRunFilter(tags=tags, state=in_state(StateType.CRASHED), end_time=lately)
    return any(client.count_flow_runs(flow_run_filter=chosen) for chosen in (going_on, crashed))


def _after(moment: datetime) -> FlowRunFilterEndTime:
    return FlowRunFilterEndTime.model_validate({"after_": moment})
