"""Child runs: starting them, waiting for a group of them, and waking the run that waits.

Children are top-level runs, because Prefect refuses suspension in subflows. They are counted, not read, where possible:
the parameters of a thousand children are many megabytes.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final, TypeVar, cast
from uuid import UUID

import httpx
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import TERMINAL_STATES, FlowRun, State, StateType
from prefect.deployments import run_deployment
from prefect.exceptions import ObjectNotFound, PrefectHTTPStatusError
from prefect.flows import Flow

from prefect_assay.errors import ConfigurationError, shorten
from prefect_assay.runs.block_references import as_parameter
from prefect_assay.runs.parameters import check_parameters
from prefect_assay.runs.queries import read_runs, run_filter
from prefect_assay.runs.states import LOST_AFTER, has_ended, successor_of
from prefect_assay.runs.suspend import PollPolicy, this_run, wait_until
from prefect_assay.runs.tags import GROUP_TAG, REPLACED_TAG, WAITS_TAG, set_tag, tag_values
from prefect_assay.runs.wake import wake
from prefect_assay.waiting.decide import WaitsFor

T = TypeVar("T")

_ATTEMPTS_MAX: Final = 50
_THREADS_MAX: Final = 16
_REASON_MAX: Final = 200
_UNFINISHED: Final = [state for state in StateType if state not in TERMINAL_STATES]
_log = logging.getLogger("prefect_assay.flows")


def deployment_name(flow: str) -> str:
    """The name of a flow's deployment, one for each flow: lists show it in bold, and the flow small below it."""
    return f"assay-{flow}"


def deployment_of(flow: str) -> str:
    """The full name of a flow's deployment, as `campaign/assay-campaign`."""
    return f"{flow}/{deployment_name(flow)}"


def start_run(
    deployment: str,
    parameters: Mapping[str, Any],
    *,
    name: str | None = None,
    tags: Sequence[str] = (),
    idempotency_key: str | None = None,
) -> FlowRun:
    """Start a deployment as a top-level run, or find the run of the idempotency key; returns at once.

    Raises:
        ConfigurationError: the deployment does not exist, a block is not saved, or a parameter does not fit its schema.
        InputError: the parameters hold what Prefect's database does not keep, or are too large.
    """
    try:
        # In an async flow, too: a caller that must not block calls this in a thread.
        given = {name: as_parameter(value) for name, value in parameters.items()}
        check_parameters(given)
        run = cast("Any", run_deployment)(
            deployment,
            _sync=True,
            parameters=given,
            flow_run_name=name,
            tags=list(tags),
            idempotency_key=idempotency_key,
            as_subflow=False,
            timeout=0,
        )
    except ObjectNotFound as error:
        raise no_deployment(deployment) from error
    except PrefectHTTPStatusError as error:
        if error.response.status_code not in {HTTPStatus.CONFLICT, HTTPStatus.UNPROCESSABLE_ENTITY}:
            raise
        raise ConfigurationError(
            f"Prefect does not start {deployment}, and nothing was ordered: {_refusal(error.response)}"
        ) from None  # its message quotes the request
    return cast("FlowRun", run)


def _refusal(response: httpx.Response) -> str:
    """Why Prefect refuses a run, without the values that it quotes."""
    detail = response.json().get("detail") if response.status_code == HTTPStatus.CONFLICT else None
    if isinstance(detail, str):
        field, quoted, reason = detail.partition("Failure reason: ")
        # The reason begins with the value, and may be as long.
        return field + quoted + (reason if len(reason) <= _REASON_MAX else reason.rpartition("'")[2].strip())
    said = response.json().get("exception_detail") or [{}]
    return str(said[0].get("msg") or f"HTTP {response.status_code}")


def no_deployment(name: str) -> ConfigurationError:
    """The error of a deployment that Prefect does not have, with the next step."""
    here = (
        " It also runs in one process, with: prefect-assay run --here" if name.startswith("campaign/") else ""
    )
    return ConfigurationError(f"there is no deployment {name}; create it with: prefect-assay deploy.{here}")


def start_child(
    flow_name: str,
    key: str,
    parameters: Mapping[str, Any],
    *,
    run_name: str,
    groups: Sequence[str] = (),
    is_done: Callable[[FlowRun], bool],
    ended: Callable[[FlowRun], bool] = has_ended,
    since: datetime | None = None,
) -> FlowRun:
    """Start, or find, the run of an idempotency key, which parents may share.

    `flow_name` is a flow of this package, or `flow/name`, a deployment of any other.

    A child that failed before `since` is tried again: by default before this parent was created, or before its last end
    (Retry). A child that failed afterwards is not: its failure is this parent's result. The parent is woken when one of
    the child's `groups` has ended; `is_done` decides whether a completed child left what this parent needs.

    Raises:
        ConfigurationError: the child's deployment does not exist.
    """
    for attempt in range(1, _ATTEMPTS_MAX + 1):
        child = start_run(
            flow_name if "/" in flow_name else deployment_of(flow_name),
            parameters,
            name=run_name,
            tags=[GROUP_TAG + group for group in groups],
            idempotency_key=f"{key}-{attempt}",
        )
        if tag_values(child.tags, REPLACED_TAG):
            with get_client(sync_client=True) as client:
                child = successor_of(client, child)
        if not ended(child) or (child.state is not None and child.state.is_completed() and is_done(child)):
            return child
        after = since or attempt_began(this_run())
        if child.created is None or after is None or child.created >= after:
            return child
    raise ConfigurationError(
        f"{flow_name} {key} has failed {_ATTEMPTS_MAX} times; look at its runs in the UI"
    )


def wait_for_children(
    children: Sequence[UUID],
    *,
    group: str,
    timeout: timedelta,
    kind: WaitsFor = WaitsFor.CHILDREN,
    ended: Callable[[FlowRun], bool] = has_ended,
    poll: PollPolicy | None = None,
) -> list[FlowRun]:
    """Suspend until every child has ended; returns their final runs, without those that were deleted.

    Outside of a deployment it polls. `kind` is the first word of the suspension key.
    """
    # Replaces the previous group's tag: a group that has ended would wake this run at every sweep.
    set_tag(this_run().id, WAITS_TAG, group)

    def ready() -> list[FlowRun] | None:
        with get_client(sync_client=True) as client:
            found = {run.id: run for run in read_runs(client, run_filter(ids=children))}
        # A deleted run has ended, too; its results are in the archive or nowhere.
        runs = [found[child] for child in children if child in found]
        return runs if all(ended(run) for run in runs) else None

    return wait_until(ready, key=f"{kind}-{group}", timeout=timeout, poll=poll)


def older_run(tag: str) -> FlowRun | None:
    """The run with this tag that began before the current one and has not ended, if any."""
    with get_client(sync_client=True) as client:
        own = client.read_flow_run(this_run().id)
        found = read_runs(client, run_filter(tags=[tag], states=_UNFINISHED))
    others = [
        run
        for run in found
        if run.id != own.id and not tag_values(run.tags, REPLACED_TAG) and _began(run) < _began(own)
    ]
    return min(others, key=_began, default=None)


def _began(run: FlowRun) -> tuple[datetime, str]:
    return run.start_time or datetime.max.replace(tzinfo=UTC), str(run.id)


def call_children(calls: Sequence[Callable[[], T]]) -> list[T | BaseException]:
    """Call child flows side by side in this process; a failed call gives its exception as the result."""
    if not calls:
        return []
    with ThreadPoolExecutor(max_workers=min(len(calls), _THREADS_MAX)) as pool:
        # Each thread gets its own context: Prefect keeps the current run there.
        futures = [pool.submit(copy_context().run, call) for call in calls]
        return [future.exception() or future.result() for future in futures]


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
    """State hook of child runs: the last one to end wakes the run that waits for the group."""
    del flow, state
    try:
        groups = tag_values(flow_run.tags, GROUP_TAG)
        if groups:
            with get_client(sync_client=True) as client:
                wake_finished_groups(client, groups)
    except Exception as error:  # noqa: BLE001 - a hook must not fail the run it follows
        _log.warning("Could not wake the waiting run; the sweep will", exc_info=shorten(error))


def _is_unfinished(client: SyncPrefectClient, group: str) -> bool:
    tags = [GROUP_TAG + group]
    recently = datetime.now(UTC) - LOST_AFTER
    unfinished = run_filter(tags=tags, states=_UNFINISHED)
    crashed = run_filter(tags=tags, states=[StateType.CRASHED], ended_after=recently)
    return any(client.count_flow_runs(flow_run_filter=wanted) for wanted in (unfinished, crashed))


def attempt_began(run: FlowRun) -> datetime | None:
    """When a person started the run, or last retried it: failures before that are known."""
    return _last_end(run.id, run.run_count) or run.created


@lru_cache(maxsize=1)
def _last_end(run_id: UUID, execution: int) -> datetime | None:
    """Return when this run last ended before it was retried; None if it never ended."""
    if execution <= 1:
        return None
    with get_client(sync_client=True) as client:
        states = client.read_flow_run_states(run_id)
    # A crash is not an end: the run is rescheduled and keeps its children.
    ends = [state.timestamp for state in states if state.is_final() and not state.is_crashed()]
    return max(ends, default=None)
