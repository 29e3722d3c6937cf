"""Flow runs as they are read of Prefect, by filters that no other module builds.

Other flows of a server may be called `experiment` or `campaign`, too; `is_assay_run` recognizes the runs of this package.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import FlowFilter, FlowFilterName, FlowRunFilter
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.client.schemas.sorting import FlowRunSort

# The flows that wait, by their Prefect names; importing them here would be circular.
FLOW_NAMES: Final = ("campaign", "design-build-test", "experiment")
ASSAY_FLOWS: Final = FlowFilter(name=FlowFilterName(any_=list(FLOW_NAMES)))
ASSAY_TAG: Final = "assay"  # on every run of this package's deployments

_REQUIRED: Final = frozenset({"credentials", "policy", "archive"})  # parameters of each of these flows
_PAGE: Final = 200  # the server's limit


def is_assay_run(run: FlowRun) -> bool:
    """Return True if a run of a flow with one of these names belongs to a prefect-assay flow."""
    return run.parameters.keys() >= _REQUIRED


def is_experiment(run: FlowRun) -> bool:
    """Return True if an assay run is one of `experiment`, and no parent of such runs."""
    return "spec" in run.parameters


def run_filter(
    *,
    states: Iterable[StateType] | None = None,
    tags: Iterable[str] | None = None,
    any_tags: Iterable[str] | None = None,
    ids: Iterable[UUID] | None = None,
    deployed: bool = False,
    started_after: datetime | None = None,
    ended_after: datetime | None = None,
    expected_before: datetime | None = None,
) -> FlowRunFilter:
    """Build a filter; every given condition must hold.

    A run has all of `tags` or at least one of `any_tags`; `deployed` runs belong to a deployment.
    """
    conditions: dict[str, dict[str, Any]] = {}
    if states is not None:
        conditions["state"] = {"type": {"any_": list(states)}}
    if tags is not None:
        conditions["tags"] = {"all_": list(tags)}
    if any_tags is not None:
        conditions["tags"] = {"any_": list(any_tags)}
    if ids is not None:
        conditions["id"] = {"any_": list(ids)}
    if deployed:
        conditions["deployment_id"] = {"is_null_": False}
    if started_after is not None:
        conditions["start_time"] = {"after_": started_after}
    if ended_after is not None:
        conditions["end_time"] = {"after_": ended_after}
    if expected_before is not None:
        conditions["expected_start_time"] = {"before_": expected_before}
    return FlowRunFilter.model_validate(conditions)


def suspended_filter(
    *, tags: Iterable[str] | None = None, any_tags: Iterable[str] | None = None
) -> FlowRunFilter:
    """Build a filter for suspended runs, all of them or those with tags."""
    return run_filter(states=[StateType.PAUSED], tags=tags, any_tags=any_tags)


def read_runs(
    client: SyncPrefectClient, wanted: FlowRunFilter, flows: FlowFilter | None = None
) -> list[FlowRun]:
    """Read all matching runs first: resuming a run changes which runs match."""
    return [run for page in read_run_pages(client, wanted, flows) for run in page]


def read_run_pages(
    client: SyncPrefectClient, wanted: FlowRunFilter, flows: FlowFilter | None = None
) -> Iterator[list[FlowRun]]:
    """Read all matching runs page by page, each run once, while runs appear and disappear.

    Runs that disappear pull those behind them forward. So each page begins with the last run of the one before; a page
    without any known run is discarded, and reading steps back.
    """
    seen: set[UUID] = set()
    offset = 0
    while True:
        page = client.read_flow_runs(
            flow_filter=flows,
            flow_run_filter=wanted,
            sort=FlowRunSort.ID_DESC,
            limit=_PAGE,
            offset=offset,
        )
        if offset and not any(run.id in seen for run in page):
            offset = max(0, offset - _PAGE + 1)
            continue
        yield [run for run in page if run.id not in seen]
        seen.update(run.id for run in page)
        if len(page) < _PAGE:
            return
        offset += len(page) - 1


def read_first_page(
    client: SyncPrefectClient, wanted: FlowRunFilter, sort: FlowRunSort | None = None
) -> list[FlowRun]:
    """Read at most one page of assay runs, for a report that is not read further."""
    found = client.read_flow_runs(flow_filter=ASSAY_FLOWS, flow_run_filter=wanted, sort=sort, limit=_PAGE)
    return [run for run in found if is_assay_run(run)]


def newest_runs(client: SyncPrefectClient, flow_name: str, limit: int) -> list[FlowRun]:
    """Read the newest assay runs of one flow, without the starts that a schedule has planned.

    Other packages' flows of the same name do not count.
    """
    now = datetime.now(UTC)
    found: dict[UUID, FlowRun] = {}
    offset = 0
    while len(found) < limit:
        page = client.read_flow_runs(
            flow_filter=FlowFilter(name=FlowFilterName(any_=[flow_name])),
            sort=FlowRunSort.EXPECTED_START_TIME_DESC,
            limit=_PAGE,
            offset=offset,
        )
        found |= {run.id: run for run in page if is_assay_run(run) and not _is_planned(run, now)}
        if len(page) < _PAGE:
            break
        offset += len(page)
    return list(found.values())[:limit]


def _is_planned(run: FlowRun, now: datetime) -> bool:
    """Return True if a schedule has made the run for later."""
    due = run.expected_start_time
    return run.auto_scheduled and run.start_time is None and due is not None and due > now


def recoverable_runs(client: SyncPrefectClient, *states: StateType) -> list[FlowRun]:
    """Read the assay runs in one of these states that a worker can start again."""
    return read_runs(client, run_filter(states=states, tags=[ASSAY_TAG], deployed=True), ASSAY_FLOWS)
