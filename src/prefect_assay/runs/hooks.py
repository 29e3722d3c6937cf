"""State hooks: the last finished child wakes the run that waits for its group.

Hooks run after the final state has reached the server, so the woken run sees this one as ended. A hook that is
lost with its process is no harm: the sweep looks for finished groups as well.
"""

import logging
from typing import Any

from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import FlowRun, State
from prefect.flows import Flow

from prefect_assay.runs.groups import wake_finished
from prefect_assay.runs.queries import GROUP_TAG, tag_values

_log = logging.getLogger("prefect_assay.flows")


def wake_waiting_parent(flow: Flow[..., Any], flow_run: FlowRun, state: State[Any]) -> None:
    """Wake the runs that wait for this run's groups, when all children of a group have ended."""
    del flow, state
    try:
        groups = tag_values(flow_run, GROUP_TAG)
        if groups:
            with get_client(sync_client=True) as client:
                wake_finished(client, groups)
    except Exception:  # noqa: BLE001 - a hook must not fail the run it follows
        _log.warning("Could not wake the waiting run; the sweep will", exc_info=True)
