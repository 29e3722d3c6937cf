"""Reads flow runs from Prefect. No other module builds filters.

Other flows of a server may also be called `experiment` or `campaign`; `is_assay_run` recognizes the runs of this package.
A run whose parameters the server has stored and cannot send, such as lists within a thousand lists, makes every page with
it fail. Every list here is read around such runs, and `unreadable_runs` names them.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Final
from uuid import UUID
from weakref import WeakKeyDictionary

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import FlowFilter, FlowFilterName, FlowRunFilter
from prefect.client.schemas.objects import TERMINAL_STATES, FlowRun, StateType
from prefect.client.schemas.sorting import FlowRunSort
from prefect.exceptions import PrefectHTTPStatusError

from prefect_assay.errors import UnexpectedAnswer

# The flows that wait, by their Prefect names; importing them here would be circular.
FLOW_NAMES: Final = ("campaign", "design-build-test")
ASSAY_FLOWS: Final = FlowFilter(name=FlowFilterName(any_=list(FLOW_NAMES)))
ASSAY_TAG: Final = "assay"  # on every run of this package's deployments

UNFINISHED: Final = [state for state in StateType if state not in TERMINAL_STATES]

_REQUIRED: Final = frozenset({"account", "assay"})  # parameters of each of these flows
_PAGE: Final = 200  # the server's limit
_REQUESTS_MAX: Final = 120  # to read around the unreadable runs of one page: about eight
_unreadable: WeakKeyDictionary[SyncPrefectClient, dict[UUID, None]] = WeakKeyDictionary()


def is_assay_run(run: FlowRun) -> bool:
    """Return True if a run of a flow with one of these names belongs to a prefect-assay flow."""
    return run.parameters.keys() >= _REQUIRED


def run_filter(
    *,
    states: Iterable[StateType] | None = None,
    tags: Iterable[str] | None = None,
    ids: Iterable[UUID] | None = None,
    deployed: bool = False,
    ended_after: datetime | None = None,
) -> FlowRunFilter:
    """Build a filter of runs for which all conditions hold; `deployed` runs belong to a deployment."""
    conditions: dict[str, dict[str, Any]] = {}
    if states is not None:
        conditions["state"] = {"type": {"any_": list(states)}}
    if tags is not None:
        conditions["tags"] = {"all_": list(tags)}
    if ids is not None:
        conditions["id"] = {"any_": list(ids)}
    if deployed:
        conditions["deployment_id"] = {"is_null_": False}
    if ended_after is not None:
        conditions["end_time"] = {"after_": ended_after}
    return FlowRunFilter.model_validate(conditions)


def suspended_filter(*, tags: Iterable[str] | None = None) -> FlowRunFilter:
    """Build a filter for suspended runs, all of them or those with tags."""
    return run_filter(states=[StateType.PAUSED], tags=tags)


def read_runs(
    client: SyncPrefectClient, conditions: FlowRunFilter, flows: FlowFilter | None = None
) -> list[FlowRun]:
    """Read all matching runs first: resuming a run changes which runs match."""
    return [run for page in read_run_pages(client, conditions, flows) for run in page]


def read_run_pages(
    client: SyncPrefectClient, conditions: FlowRunFilter, flows: FlowFilter | None = None
) -> Iterator[list[FlowRun]]:
    """Read all matching runs page by page, each run once, while runs appear and disappear.

    Runs that disappear pull those behind them forward. So each page begins with the last run of the one before; a page
    without any known run is discarded, and reading steps back.
    """
    seen: set[UUID] = set()
    offset = 0
    while True:
        page = _read_page(client, conditions, flows, FlowRunSort.ID_DESC, offset)
        if offset and seen.isdisjoint(page.ids):
            offset = max(0, offset - _PAGE + 1)
            continue
        yield [run for run in page.runs if run.id not in seen]
        seen.update(page.ids)
        if page.is_last:
            return
        offset += len(page.ids) - 1


@dataclass(frozen=True)
class _Page:
    """The readable runs of a page, and the ids of all."""

    runs: list[FlowRun]
    ids: Sequence[UUID]

    @property
    def is_last(self) -> bool:
        return len(self.ids) < _PAGE


def _read_page(
    client: SyncPrefectClient,
    conditions: FlowRunFilter | None,
    flows: FlowFilter | None,
    sort: FlowRunSort | None,
    offset: int = 0,
) -> _Page:
    try:
        runs = client.read_flow_runs(
            flow_filter=flows, flow_run_filter=conditions, sort=sort, limit=_PAGE, offset=offset
        )
    except PrefectHTTPStatusError as error:
        if error.response.status_code != HTTPStatus.INTERNAL_SERVER_ERROR:
            raise
        try:
            ids = _read_run_ids(client, conditions, flows, sort, offset)
        except PrefectHTTPStatusError:  # the server is the cause, rather than a run
            raise error from None
        return _Page(_read_around(client, ids, error), ids)
    return _Page(runs, [run.id for run in runs])


def _read_run_ids(
    client: SyncPrefectClient,
    conditions: FlowRunFilter | None,
    flows: FlowFilter | None,
    sort: FlowRunSort | None,
    offset: int,
) -> list[UUID]:
    """Read the ids of one page of runs by the UI's own route, whose rows have no parameters and cannot fail to be read."""
    body: dict[str, Any] = {"limit": _PAGE, "offset": offset}
    body |= {"sort": sort} if sort else {}
    body |= {"flows": flows.model_dump(mode="json", exclude_unset=True)} if flows else {}
    body |= {"flow_runs": conditions.model_dump(mode="json", exclude_unset=True)} if conditions else {}
    answer = client.request("POST", "/ui/flow_runs/history", json=body)
    return [UUID(row["id"]) for row in answer.json()]


def _read_around(client: SyncPrefectClient, ids: Sequence[UUID], error: Exception) -> list[FlowRun]:
    """Read these runs by halves, down to the ones that cannot be read.

    Raises:
        PrefectHTTPStatusError: it takes too many requests, so that the server rather than a run is the cause.
    """
    runs_by_id: dict[UUID, FlowRun] = {}
    known = _unreadable.setdefault(client, {})
    parts = [[run_id for run_id in ids if run_id not in known]]
    for _ in range(_REQUESTS_MAX):
        if not parts:
            return [runs_by_id[run_id] for run_id in ids if run_id in runs_by_id]
        part = parts.pop()
        if not part:
            continue
        try:
            runs = client.read_flow_runs(flow_run_filter=run_filter(ids=part), limit=len(part))
        except PrefectHTTPStatusError as failed:
            if failed.response.status_code != HTTPStatus.INTERNAL_SERVER_ERROR:
                raise
            half = len(part) // 2
            if half:
                parts += [part[half:], part[:half]]
            else:
                known[part[0]] = None
        else:
            runs_by_id |= {run.id: run for run in runs}
    raise error


def unreadable_runs(client: SyncPrefectClient) -> tuple[UUID, ...]:
    """The runs that this client could not read, in lists that it has read so far."""
    return tuple(_unreadable.get(client, ()))


def read_run(client: SyncPrefectClient, run_id: UUID) -> FlowRun:
    """Read one run.

    Raises:
        UnexpectedAnswer: the server cannot send it.
        ObjectNotFound: there is no such run.
    """
    try:
        return client.read_flow_run(run_id)
    except PrefectHTTPStatusError as error:
        if error.response.status_code != HTTPStatus.INTERNAL_SERVER_ERROR:
            raise
        raise UnexpectedAnswer("flow run {} {}. {}".format(run_id, *why_unreadable(run_id))) from None


def why_unreadable(run_id: UUID) -> tuple[str, str]:
    """What is wrong with a run that cannot be read, after its name, and the next step."""
    next_step = (
        f"Delete it: prefect flow-run delete {run_id}. What it has ordered stays in the archive's log: start its campaign "
        "again under the same id, and nothing is ordered twice"
    )
    return "cannot be read: the Prefect server answers 500, also for each list with it", next_step


def newest_runs(client: SyncPrefectClient, flow_name: str, limit: int) -> list[FlowRun]:
    """Read the newest assay runs of one flow, without the starts that a schedule has planned.

    Other packages' flows of the same name do not count.
    """
    now = datetime.now(UTC)
    named = FlowFilter(name=FlowFilterName(any_=[flow_name]))
    runs_by_id: dict[UUID, FlowRun] = {}
    offset = 0
    while len(runs_by_id) < limit:
        page = _read_page(client, None, named, FlowRunSort.EXPECTED_START_TIME_DESC, offset)
        runs_by_id |= {run.id: run for run in page.runs if is_assay_run(run) and not _is_planned(run, now)}
        if page.is_last:
            break
        offset += len(page.ids)
    return list(runs_by_id.values())[:limit]


def _is_planned(run: FlowRun, now: datetime) -> bool:
    """Return True if a schedule has made the run for later."""
    due = run.expected_start_time
    return run.auto_scheduled and run.start_time is None and due is not None and due > now
