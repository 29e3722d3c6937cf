"""Starting child runs and waiting for them: as deployed top-level runs, or in this process without a deployment.

A child is started under an idempotency key, so that a parent that runs again finds it instead of starting a
second one, and so that two parents with the same key share one child. Suspension is refused in subflows, so
children are top-level runs.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final, TypeVar
from uuid import UUID

from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import FlowRun
from prefect.context import FlowRunContext

from prefect_assay.errors import ConfigurationError
from prefect_assay.runs import wait_until
from prefect_assay.runs.queries import (
    GROUP_TAG,
    REPLACED_TAG,
    WAITS_TAG,
    has_ended,
    ids_filter,
    runs_with,
    set_tag,
    start_run,
    successor_of,
    tag_values,
)

T = TypeVar("T")

DEPLOYMENT_NAME: Final = "prefect-assay"
_ATTEMPTS_MAX: Final = 50
_THREADS_MAX: Final = 16


def start_child(
    flow_name: str,
    key: str,
    parameters: Mapping[str, Any],
    *,
    run_name: str,
    groups: Sequence[str],
    is_done: Callable[[FlowRun], bool],
) -> FlowRun:
    """Start, or find, the child run of a key.

    A child that was started before this parent, or before this parent last ended (Retry), and has failed, is tried
    again. One that failed for this parent is not: its failure is this parent's result.

    Args:
        flow_name: the child's flow; its deployment is called `prefect-assay`.
        key: idempotency key without the attempt.
        parameters: the child's parameters; blocks are passed by reference.
        run_name: for people.
        groups: the groups the child belongs to; its parent is woken when a group has ended.
        is_done: whether a completed child really left what this parent needs.

    Raises:
        ConfigurationError: the child's deployment does not exist.
    """
    parent = _this_run()
    for attempt in range(1, _ATTEMPTS_MAX + 1):
        child = start_run(
            f"{flow_name}/{DEPLOYMENT_NAME}",
            parameters,
            name=run_name,
            tags=[GROUP_TAG + group for group in groups],
            idempotency_key=f"{key}-{attempt}",
        )
        if tag_values(child, REPLACED_TAG):
            with get_client(sync_client=True) as client:
                child = successor_of(client, child)
        if not has_ended(child) or (
            child.state is not None and child.state.is_completed() and is_done(child)
        ):
            return child
        since = _begun(parent.id, parent.run_count) or parent.created
        if child.created is None or since is None or child.created >= since:
            return child
    raise ConfigurationError(
        f"{flow_name} {key} has failed {_ATTEMPTS_MAX} times; look at its runs in the UI"
    )


def wait_for_children(children: Sequence[UUID], *, group: str, timeout: timedelta) -> list[FlowRun]:
    """Suspend until every child has ended; returns their final runs."""
    # In place of the group before: one that has ended would wake this run at every sweep.
    set_tag(_this_run().id, WAITS_TAG, group)

    def ready() -> list[FlowRun] | None:
        with get_client(sync_client=True) as client:
            found = {run.id: run for run in runs_with(client, ids_filter(children))}
        runs = [found[child] for child in children if child in found]
        # A run that somebody deleted has ended too; its results are in the archive or nowhere.
        return runs if all(has_ended(run) for run in runs) else None

    return wait_until(ready, key=f"children-{group}", timeout=timeout)


def call_children(calls: Sequence[Callable[[], T]]) -> list[T | BaseException]:
    """Call child flows side by side in this process; a failed one gives its exception instead of a result."""
    if not calls:
        return []
    with ThreadPoolExecutor(max_workers=min(len(calls), _THREADS_MAX)) as pool:
        # Each thread gets a context of its own: Prefect keeps the current run there.
        futures = [pool.submit(copy_context().run, call) for call in calls]
        return [future.exception() or future.result() for future in futures]


@lru_cache(maxsize=1)
def _begun(run_id: UUID, execution: int) -> datetime | None:
    """When this run was last retried after an end of its own; None if it has never ended."""
    if execution <= 1:
        return None
    with get_client(sync_client=True) as client:
        states = client.read_flow_run_states(run_id)
    # A crash is no end: the run is taken up again, with the children that it has started.
    ends = [state.timestamp for state in states if state.is_final() and not state.is_crashed()]
    return max(ends, default=None)


def _this_run() -> FlowRun:
    context = FlowRunContext.get()
    if context is None or context.flow_run is None:
        raise ConfigurationError("child runs are started from within a flow run")
    return context.flow_run
