"""How campaigns and their experiments stand, read from the Prefect API, and the table that shows it."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.objects import FlowRun, State

    from prefect_assay.client import AssayClient

CAMPAIGN_FLOW: Final = "campaign"
EXPERIMENT_FLOW: Final = "experiment"

# The keys that the flows suspend under (flows/experiment.py, src/prefect_assay/approvals/spending.py, src/prefect_assay/runs/children.py).
_WAITS_FOR: Final = {
    "results": "the laboratory",
    "quote": "the quote",
    "children": "its experiments",
    "approve": "a person's approval in the UI",
}
_SCHEDULED: Final = {
    "Resuming": "a free worker",
    "Scheduled": "a free worker",
    "Late": "a worker; none takes it",
}
_STYLES: Final = {
    "Completed": "green",
    "Failed": "red",
    "Crashed": "red",
    "Cancelled": "red",
    "Suspended": "cyan",
}


@dataclass(frozen=True)
class RunLine:
    """One run of a campaign or an experiment, for people and for JSON."""

    kind: str
    campaign_id: str | None
    flow_run_id: str
    name: str
    state: str
    ended: bool
    message: str | None
    waits_for: str | None
    experiment_id: str | None
    experiment_code: str | None
    service_status: str | None
    started: datetime | None
    url: str | None

    def as_json(self) -> dict[str, Any]:
        """With times as ISO 8601."""
        return {**asdict(self), "started": self.started.isoformat() if self.started else None}


def recent(client: "SyncPrefectClient", limit: int) -> list[RunLine]:
    """The newest campaigns with their experiments."""
    from prefect.client.schemas.filters import FlowFilter, FlowFilterName
    from prefect.client.schemas.sorting import FlowRunSort

    campaigns = client.read_flow_runs(
        flow_filter=FlowFilter(name=FlowFilterName(any_=[CAMPAIGN_FLOW])),
        sort=FlowRunSort.EXPECTED_START_TIME_DESC,
        limit=limit,
    )
    found: list[RunLine] = []
    for run in campaigns:
        found += _family(client, run)
    return found


def named(client: "SyncPrefectClient", which: str) -> list[RunLine]:
    """The runs of a campaign id, or of one flow run id with its experiments; empty when there are none."""
    from prefect.exceptions import ObjectNotFound

    from prefect_assay.runs.tags import CAMPAIGN_TAG, GROUP_TAG, campaign_group

    run_id = _uuid(which)
    if run_id is not None:
        try:
            run = client.read_flow_run(run_id)
        except ObjectNotFound:
            return []
        return _family(client, run) if _kind(run) == CAMPAIGN_FLOW else _lines(client, [run])
    campaigns = _tagged(client, CAMPAIGN_TAG + which)
    return _lines(client, [*campaigns, *_tagged(client, GROUP_TAG + campaign_group(which))])


def with_service(lines: Sequence[RunLine], service: "AssayClient") -> list[RunLine]:
    """The same lines with each experiment's status as the service tells it."""
    from prefect_assay.errors import NotFound

    told = []
    for line in lines:
        if line.experiment_id is None:
            told.append(line)
            continue
        try:
            found = service.experiment(line.experiment_id)
        except NotFound:
            told.append(replace(line, service_status="not visible to this token"))
        else:
            told.append(replace(line, experiment_code=found.code, service_status=str(found.status)))
    return told


def table(lines: Iterable[RunLine]) -> Table:
    """One row for each run; experiments stand below their campaign."""
    lines = list(lines)
    shown = Table(box=None, pad_edge=False)
    service = any(line.service_status for line in lines)
    for heading in ("Campaign", "Run", "Experiment", "State", "Waits for", *(["Service"] if service else [])):
        shown.add_column(heading, overflow="fold")
    for line in lines:
        campaign = line.kind == CAMPAIGN_FLOW
        name = Text(line.name if campaign else f"  {line.name}")
        if line.url:
            name.stylize(f"link {line.url}")
        cells = [
            Text(line.campaign_id or "–") if campaign else Text(""),  # noqa: RUF001 - a dash for a missing value
            name,
            Text(line.experiment_code or ""),
            Text(line.state, style=_STYLES.get(line.state, "")),
            Text(line.waits_for or (_short(line.message) if line.ended else "")),
        ]
        shown.add_row(*cells, *([Text(line.service_status or "")] if service else []))
    return shown


def _family(client: "SyncPrefectClient", run: "FlowRun") -> list[RunLine]:
    from prefect_assay.runs.tags import GROUP_TAG, campaign_group

    campaign_id = _campaign_id(run)
    children = _tagged(client, GROUP_TAG + campaign_group(campaign_id)) if campaign_id else []
    return _lines(client, [run, *children])


def _tagged(client: "SyncPrefectClient", tag: str) -> list["FlowRun"]:
    from prefect_assay.runs.queries import read_runs, run_filter

    found = read_runs(client, run_filter(tags=[tag]))
    return sorted(found, key=lambda run: (run.created.timestamp() if run.created else 0.0, run.name))


def _lines(client: "SyncPrefectClient", runs: Sequence["FlowRun"]) -> list[RunLine]:
    codes = _codes(client, [run.id for run in runs if _kind(run) == EXPERIMENT_FLOW])
    return [_line(run, codes.get(run.id)) for run in runs]


def _line(run: "FlowRun", code: str | None) -> RunLine:
    from prefect_assay.cli.prefect_api import run_url
    from prefect_assay.runs.states import has_ended
    from prefect_assay.runs.tags import EXPERIMENT_TAG, tag_values

    return RunLine(
        kind=_kind(run),
        campaign_id=_campaign_id(run),
        flow_run_id=str(run.id),
        name=run.name,
        state=(run.state.name if run.state else None) or "unknown",
        ended=has_ended(run),
        message=run.state.message if run.state else None,
        waits_for=_waits_for(run.state),
        experiment_id=next(iter(tag_values(run.tags, EXPERIMENT_TAG)), None),
        experiment_code=code,
        service_status=None,
        started=run.start_time,
        url=run_url(run.id),
    )


def _codes(client: "SyncPrefectClient", run_ids: Sequence[UUID]) -> dict[UUID, str]:
    """Experiment codes, from the link that each run leaves as an artifact."""
    from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterFlowRunId, ArtifactFilterType

    if not run_ids:
        return {}
    found = client.read_artifacts(
        artifact_filter=ArtifactFilter(
            flow_run_id=ArtifactFilterFlowRunId(any_=list(run_ids)),
            type=ArtifactFilterType(any_=["markdown"]),
        )
    )
    codes: dict[UUID, str] = {}
    for artifact in found:
        text = str(artifact.data or "")
        if artifact.flow_run_id and (artifact.key or "").startswith("assay-experiment-"):
            codes[artifact.flow_run_id] = text.removeprefix("[Experiment ").partition("]")[0]
    return codes


def _kind(run: "FlowRun") -> str:
    return EXPERIMENT_FLOW if "spec" in run.parameters else CAMPAIGN_FLOW


def _campaign_id(run: "FlowRun") -> str | None:
    from prefect_assay.runs.tags import CAMPAIGN_TAG, tag_values

    tagged = next(iter(tag_values(run.tags, CAMPAIGN_TAG)), None)
    return tagged or run.parameters.get("campaign_id")


def _waits_for(state: "State | None") -> str | None:
    if state is None:
        return None
    if state.is_paused():
        key = state.state_details.pause_key or ""
        return _WAITS_FOR.get(key.partition("-")[0], "somebody who resumes it")
    return _SCHEDULED.get(state.name or "")


def _short(message: str | None) -> str:
    line = (message or "").partition("\n")[0]
    return line if len(line) <= 100 else f"{line[:99]}…"  # noqa: PLR2004 - one line of a terminal


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
