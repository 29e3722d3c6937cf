"""The few questions this package asks the Prefect API about its runs. It knows tags and states, nothing else.

Tags are the only index: `assay-experiment:<id>` on a run that waits for an experiment, `assay-archive:<id>` and
`assay-order:<order key>` beside it,
`assay-children:<group>` on the run that starts a group, `assay-group:<group>` on
a child run, `assay-waits:<group>` on the run that waits for the whole group, `assay-campaign:<id>` on a campaign,
`assay-canceled:<execution>-<what was told>` on a canceled run, `assay-asks` on one that asks a person,
`assay-again:<times>` on one that could not look at what it waits for, and `assay-replaced:<run id>` on one in whose
place another run goes on.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast
from uuid import UUID

from prefect.blocks.core import Block
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import (
    FlowFilter,
    FlowRunFilter,
    FlowRunFilterId,
    FlowRunFilterState,
    FlowRunFilterStateType,
    FlowRunFilterTags,
)
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.client.schemas.responses import SetStateStatus
from prefect.client.schemas.sorting import FlowRunSort
from prefect.deployments import run_deployment
from prefect.exceptions import ObjectNotFound
from pydantic import BaseModel

from prefect_assay.errors import ConfigurationError

EXPERIMENT_TAG: Final = "assay-experiment:"
ARCHIVE_TAG: Final = "assay-archive:"
ORDER_TAG: Final = "assay-order:"
CHILDREN_TAG: Final = "assay-children:"
GROUP_TAG: Final = "assay-group:"
WAITS_TAG: Final = "assay-waits:"
CAMPAIGN_TAG: Final = "assay-campaign:"
CANCELED_TAG: Final = "assay-canceled:"
AGAIN_TAG: Final = "assay-again:"
ASKS_TAG: Final = "assay-asks"
REPLACED_TAG: Final = "assay-replaced:"

# What a run is found by; a run that was replaced has left them to its successor.
INDEX_TAGS: Final = (
    EXPERIMENT_TAG,
    ARCHIVE_TAG,
    CHILDREN_TAG,
    GROUP_TAG,
    WAITS_TAG,
    CAMPAIGN_TAG,
    CANCELED_TAG,
    AGAIN_TAG,
    ASKS_TAG,
)

# How long after its crash a run is still taken up again; by then it is taken for ended.
LOST_AFTER: Final = timedelta(days=7)

_PAGE: Final = 200  # the server's limit
_EXPIRED: Final = "and never resumed"  # what Prefect says of a suspension whose time is over
_EXPIRED_FOR: Final = timedelta(hours=1)  # by then the sweep has taken it up, or leaves it alone


def campaign_group(campaign_id: str, scope: str = "") -> str:
    """The group of a campaign's experiments; without a scope also what people know it by."""
    return f"campaign-{campaign_id}{scope and '@'}{scope}"


def start_run(
    deployment: str,
    parameters: Mapping[str, Any],
    *,
    name: str | None = None,
    tags: Sequence[str] = (),
    idempotency_key: str | None = None,
) -> FlowRun:
    """Start a deployment as a top-level run, or find the run of the idempotency key; returns at once.

    Top-level, because suspension is refused in subflows. Blocks among the parameters travel as references.

    Raises:
        ConfigurationError: the deployment does not exist, or a block is not saved.
    """
    try:
        run = run_deployment(
            deployment,
            parameters={name: as_parameter(value) for name, value in parameters.items()},
            flow_run_name=name,
            tags=list(tags),
            idempotency_key=idempotency_key,
            as_subflow=False,
            timeout=0,
        )
    except ObjectNotFound as error:
        raise ConfigurationError(
            f"there is no deployment {deployment}; create it with: prefect-assay deploy. A campaign also runs in "
            "one process, with: prefect-assay run --here"
        ) from error
    return cast("FlowRun", run)  # a coroutine only where an event loop runs


def in_state(*types: StateType) -> FlowRunFilterState:
    """The part of a filter that chooses runs by the types of their states."""
    return FlowRunFilterState(type=FlowRunFilterStateType(any_=list(types)))


def tagged_filter(tag: str, *, suspended_only: bool) -> FlowRunFilter:
    """Runs that carry a tag, all of them or only those that are suspended."""
    state = in_state(StateType.PAUSED) if suspended_only else None
    return FlowRunFilter(tags=FlowRunFilterTags(all_=[tag]), state=state)


def ids_filter(run_ids: Sequence[UUID]) -> FlowRunFilter:
    """Exactly these runs."""
    return FlowRunFilter(id=FlowRunFilterId(any_=list(run_ids)))


def runs_with(
    client: SyncPrefectClient, run_filter: FlowRunFilter, flow_filter: FlowFilter | None = None
) -> list[FlowRun]:
    """All matching runs. Pages are read to the end before anything is done with them.

    Resuming changes what a filter on states matches, so collecting and acting must not be mixed.
    """
    return [run for page in pages_with(client, run_filter, flow_filter) for run in page]


def pages_with(
    client: SyncPrefectClient, run_filter: FlowRunFilter, flow_filter: FlowFilter | None = None
) -> Iterator[list[FlowRun]]:
    """All matching runs, page by page, each once, while runs come and go. Keep only what is needed of them.

    Runs that leave pull those behind them forward, and a plain offset would jump over as many. Therefore each page
    begins with the last run seen; one that shows no run seen before is put aside, and reading steps back.
    """
    seen: set[UUID] = set()
    offset = 0
    while True:
        page = client.read_flow_runs(
            flow_filter=flow_filter,
            flow_run_filter=run_filter,
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


def suspended_filter() -> FlowRunFilter:
    """Every suspended run."""
    return FlowRunFilter(state=in_state(StateType.PAUSED))


def waits_for_input(run: FlowRun) -> bool:
    """True for a run that asks a person: only the person's answer may wake it."""
    return bool(run.state and run.state.state_details.run_input_keyset)


def has_ended(run: FlowRun) -> bool:
    """True for a run that will not go on by itself. The sweep takes up what crashed, expired or lost its deployment."""
    if run.state is None or not run.state.is_final():
        return False
    if tag_values(run, REPLACED_TAG):
        return False  # another run goes on in its place
    age = datetime.now(UTC) - run.state.timestamp
    if run.state.is_crashed() or lost_its_deployment(run):
        return age > LOST_AFTER
    return not has_expired(run) or age > _EXPIRED_FOR


def has_expired(run: FlowRun) -> bool:
    """Return True if the run failed because nobody resumed it in time."""
    return run.state is not None and run.state.is_failed() and _EXPIRED in (run.state.message or "")


def lost_its_deployment(run: FlowRun) -> bool:
    """Return True if a worker has canceled the run, because its deployment was deleted."""
    said = f"Deployment {run.deployment_id} no longer exists"
    return run.state is not None and run.state.is_cancelled() and said in (run.state.message or "")


def is_own_wait(state: State[Any]) -> bool:
    """Return True for a suspension by the run itself: its key names what it waits for, or a form goes with it."""
    return bool(state.state_details.run_input_keyset) or ":" in (state.state_details.pause_key or "")


def successor_of(client: SyncPrefectClient, run: FlowRun) -> FlowRun:
    """The run that goes on in the place of a replaced one; any other run itself."""
    while ids := tag_values(run, REPLACED_TAG):
        run = client.read_flow_run(UUID(ids[0]))
    return run


def tag_values(run: FlowRun, prefix: str) -> list[str]:
    """The values of a run's tags that start with a prefix."""
    return [tag.removeprefix(prefix) for tag in run.tags if tag.startswith(prefix)]


def resume(client: SyncPrefectClient, run_id: UUID) -> bool:
    """Resume a suspended run; True when this call did it.

    The API answers 200 also for a run that is not paused, so the status is what counts.
    """
    return client.resume_flow_run(run_id).status == SetStateStatus.ACCEPT


def drop_tags(run_id: UUID, prefixes: tuple[str, ...]) -> None:
    """Take the tags of some kinds from a run."""
    _change_tags(run_id, prefixes, [])


def set_tag(run_id: UUID, prefix: str, value: str) -> None:
    """Give a run one tag of a kind, in place of the one it may have."""
    _change_tags(run_id, (prefix,), [prefix + value])


def add_tags(run_id: UUID, tags: list[str]) -> None:
    """Add tags to a run; those it already has cost no write."""
    _change_tags(run_id, (), tags)


def _change_tags(run_id: UUID, dropped: tuple[str, ...], added: list[str]) -> None:
    with get_client(sync_client=True) as client:
        tags = client.read_flow_run(run_id).tags
        kept = [tag for tag in tags if not tag.startswith(dropped)]
        changed = [*kept, *(tag for tag in added if tag not in kept)]
        if sorted(changed) != sorted(tags):
            client.update_flow_run(run_id, tags=changed)


def as_parameter(value: Any) -> Any:
    """Blocks travel as references, models as JSON; no secret ever stands in a run's parameters."""
    if isinstance(value, Block):
        document_id = value._block_document_id  # noqa: SLF001 - Prefect has no public name for it
        if document_id is None:
            raise ConfigurationError(
                f"the {type(value).__name__} block of this run is not saved; save it under a name and choose it there"
            )
        return {"$ref": {"block_document_id": str(document_id)}}
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    return value
