"""Waking suspended runs. A wake-up is a hint: the woken run looks at the service and suspends again if it must.

It must not know why a run should be woken; the receiver, the sweep and the last finished sibling decide that.
"""

import asyncio
from collections.abc import Iterable
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient, get_client

from prefect_assay.waiting.runs import (
    EXPERIMENT_TAG,
    GROUP_TAG,
    WAITS_TAG,
    has_ended,
    resume,
    runs_with,
    tagged_filter,
    waits_for_input,
)


def wake(client: SyncPrefectClient, tag: str) -> list[UUID]:
    """Resume every suspended run with a tag, except those that ask a person; returns the runs resumed."""
    waiting = [
        run for run in runs_with(client, tagged_filter(tag, suspended_only=True)) if not waits_for_input(run)
    ]
    return [run.id for run in waiting if resume(client, run.id)]


def wake_experiment_sync(experiment_id: str) -> int:
    """Resume the runs that wait for an experiment; returns how many this call resumed."""
    with get_client(sync_client=True) as client:
        return len(wake(client, EXPERIMENT_TAG + experiment_id))


async def wake_experiment(experiment_id: str) -> int:
    """`wake_experiment_sync` for event loops, such as the webhook receiver's.

    Raises:
        Exception: whatever the Prefect client raises when its API is away.
    """
    return await asyncio.to_thread(wake_experiment_sync, experiment_id)


def wake_finished_groups(groups: Iterable[str]) -> list[UUID]:
    """Resume the runs that wait for a group of child runs, when every child has ended."""
    woken: list[UUID] = []
    with get_client(sync_client=True) as client:
        for group in groups:
            children = runs_with(client, tagged_filter(GROUP_TAG + group, suspended_only=False))
            # A group without children has lost them: its parent looks, and starts or finds them again.
            if all(has_ended(child) for child in children):
                woken.extend(wake(client, WAITS_TAG + group))
    return woken
