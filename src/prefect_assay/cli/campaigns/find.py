"""The runs that a command is about: of a campaign, of a loop, or one flow run by its id."""

from typing import Final
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.objects import FlowRun
from prefect.exceptions import ObjectNotFound

from prefect_assay.errors import NotFound
from prefect_assay.runs.queries import FLOW_NAMES, is_assay_run, newest_runs, read_run, read_runs, run_filter
from prefect_assay.runs.states import successor_of
from prefect_assay.runs.tags import (
    CAMPAIGN_TAG,
    CHILDREN_TAG,
    GROUP_TAG,
    LOOP_TAG,
    REPLACED_TAG,
    WAITS_TAG,
    campaign_group,
    tag_values,
)

_NEWEST: Final = 50


def parents_of(client: SyncPrefectClient, which: str) -> list[FlowRun]:
    """The runs of the campaign and the loop of an id, else its experiments; or the run of a flow run id.

    Raises:
        NotFound: nothing has this id.
    """
    try:
        found = [successor_of(client, read_run(client, UUID(which)))]
    except ObjectNotFound:
        found = []
    except ValueError:  # no flow run id
        found = tagged(client, CAMPAIGN_TAG + which) + tagged(client, LOOP_TAG + which)
        found = found or tagged(client, GROUP_TAG + campaign_group(which))  # its campaign's run was deleted
        # A run gets its tags when it begins: one that still waits for a worker, such as a late start of a schedule, has none.
        known = {run.id for run in found}
        named = [run for run in newest_named(client, which) if run.id not in known]
        found += [
            run for run in named if not found or (run.start_time is None and "spec" not in run.parameters)
        ]
    found = [run for run in found if is_assay_run(run) and not tag_values(run.tags, REPLACED_TAG)]
    if not found:
        raise NotFound(
            f"the Prefect API knows neither a campaign, a loop nor an assay run {which!r}; `prefect-assay status` lists "
            "what there is"
        )
    return found


def with_children(client: SyncPrefectClient, which: str) -> list[FlowRun]:
    """The same runs, and all that they have started.

    Raises:
        NotFound: nothing has this id.
    """
    found = {run.id: run for run in parents_of(client, which)}
    for run in tagged(client, GROUP_TAG + campaign_group(which)):
        found.setdefault(run.id, run)
    waiting = list(found.values())
    while waiting:
        new = [child for run in waiting for child in children_of(client, run) if child.id not in found]
        found |= {child.id: child for child in new}
        waiting = new
    return list(found.values())


def children_of(client: SyncPrefectClient, run: FlowRun) -> list[FlowRun]:
    """The runs that a campaign or a loop has started."""
    groups = sorted({*tag_values(run.tags, CHILDREN_TAG), *tag_values(run.tags, WAITS_TAG)})
    return [child for group in groups for child in tagged(client, GROUP_TAG + group)]


def tagged(client: SyncPrefectClient, tag: str) -> list[FlowRun]:
    """The runs with a tag, the oldest first."""
    found = read_runs(client, run_filter(tags=[tag]))
    return sorted(found, key=lambda run: (run.created.timestamp() if run.created else 0.0, run.name))


def newest_named(client: SyncPrefectClient, which: str) -> list[FlowRun]:
    """The runs of a name or an id that have not begun, and so have no tags yet; they are among the newest."""
    return [
        run
        for flow in FLOW_NAMES
        for run in newest_runs(client, flow, _NEWEST)
        if which in {run.name, run.parameters.get("campaign_id"), run.parameters.get("loop_id")}
    ]
