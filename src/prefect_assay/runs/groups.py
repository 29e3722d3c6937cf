"""Groups of child runs: whether a group has ended, and waking the runs that wait for it.

Child runs are counted, not read: the parameters of a thousand children are many megabytes.
"""

import logging
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import TERMINAL_STATES, FlowRun, State, StateType
from prefect.flows import Flow

from prefect_assay.runs.queries import run_filter
from prefect_assay.runs.states import LOST_AFTER
from prefect_assay.runs.tags import GROUP_TAG, WAITS_TAG, tag_values
from prefect_assay.runs.wake import wake

_UNFINISHED: Final = [state for state in StateType if state not in TERMINAL_STATES]
_log = logging.getLogger("prefect_assay.flows")


def wake_finished_groups(client: SyncPrefectClient, groups: Iterable[str]) -> list[UUID]:
    """Resume the runs that wait for a group whose child runs have all ended."""
    # A group without children has lost them: the parent looks, and starts or finds them again.
    return [
        run_id
        for group in sorted(groups)
        if not _is_unfinished(client, group)
        for run_id in wake(client, WAITS_TAG + group)
    ]


def wake_waiting_parent(flow: Flow[..., Any], flow_run: FlowRun, state: State[Any]) -> None:
    """State hook of child runs: the last one to end wakes the run that waits for the group.

    Prefect calls hooks after the final state has reached the server, so the woken run sees this one as ended. The
    sweep looks for finished groups as well, which covers a hook that is lost with its process.
    """
    del flow, state
    try:
        groups = tag_values(flow_run.tags, GROUP_TAG)
        if groups:
            with get_client(sync_client=True) as client:
                wake_finished_groups(client, groups)
    except Exception:  # noqa: BLE001 - a hook must not fail the run it follows
        _log.warning("Could not wake the waiting run; the sweep will", exc_info=True)


def _is_unfinished(client: SyncPrefectClient, group: str) -> bool:
    """Return True if a child has not ended. A recently crashed one is rescheduled, so it counts; see `has_ended`."""
    tags = [GROUP_TAG + group]
    recently = datetime.now(UTC) - LOST_AFTER
    unfinished = run_filter(tags=tags, states=_UNFINISHED)
    crashed = run_filter(tags=tags, states=[StateType.CRASHED], ended_after=recently)
    return any(client.count_flow_runs(flow_run_filter=wanted) for wanted in (unfinished, crashed))
