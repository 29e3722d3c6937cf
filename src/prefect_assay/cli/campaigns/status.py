"""`prefect-assay status` and the live view of `prefect-assay run --wait`: loops, campaigns and experiments as a table."""

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import FlowRun
from prefect.exceptions import ObjectNotFound
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from prefect_assay.cli.failures import FAILED
from prefect_assay.cli.loops.status import loop_rounds, rounds_table
from prefect_assay.cli.prefect_api import api_errors, load_block, run_url
from prefect_assay.client import AssayClient
from prefect_assay.errors import NotFound
from prefect_assay.models.report import LoopReport
from prefect_assay.runs.queries import newest_runs, read_runs, run_filter
from prefect_assay.runs.states import has_ended, suspension_key
from prefect_assay.runs.tags import (
    CAMPAIGN_TAG,
    EXPERIMENT_CODE_LABEL,
    EXPERIMENT_TAG,
    GROUP_TAG,
    LOOP_TAG,
    campaign_group,
    tag_values,
)
from prefect_assay.runs.transient_failures import missing_block
from prefect_assay.waiting import WaitsFor, waits_for

_CAMPAIGN_FLOW: Final = "campaign"
_EXPERIMENT_FLOW: Final = "experiment"
_LOOP_FLOW: Final = "design-build-test"

_POLL_SECONDS: Final = 2.0

_WAITS_FOR: Final = {
    WaitsFor.RESULTS: "the laboratory",
    WaitsFor.MORE_RESULTS: "the laboratory, for the remaining results",
    WaitsFor.QUOTE: "the quote",
    WaitsFor.CHILDREN: "its experiments",
    WaitsFor.APPROVAL: "a person's approval in the UI",
    WaitsFor.PAYMENT_ANSWER: "a person's answer in the UI about an uncertain payment",
    WaitsFor.DESIGNS: "the next design file",
    WaitsFor.DESIGNER: "its designer's run",
    WaitsFor.RETRY: "its next attempt; see its log",
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
    """One run of a loop, a campaign or an experiment, for people and for JSON."""

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
    loop_id: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the fields, with times as ISO 8601."""
        return {**asdict(self), "started": self.started.isoformat() if self.started else None}


def show_status(which: str | None, *, credentials: str | None, limit: int, as_json: bool) -> None:
    """Print the runs of one loop, one campaign, one flow run, or the newest loops and campaigns.

    Raises:
        NotFound: there is no such campaign, loop or run.
        ConfigurationError: the credentials block does not exist.
    """
    with api_errors():
        with get_client(sync_client=True) as client:
            lines = _named(client, which) if which else _recent(client, limit)
            loops = [line.flow_run_id for line in lines if line.loop_id] if which else []
            rounds = loop_rounds(client, loops)
            measuring = [line.campaign_id for line in rounds.rounds if not line.table] if rounds else []
            lines += [line for campaign_id in measuring for line in _named(client, campaign_id)]
        if which and not lines:
            raise NotFound(
                f"the Prefect API knows neither a campaign, a loop nor a flow run {which!r}; "
                "`prefect-assay status` lists what there is"
            )
        if credentials:
            from prefect_assay.blocks import AssayCredentials

            with load_block(AssayCredentials, credentials).get_client() as service:
                lines = _with_service(lines, service)
    if as_json:
        _print_json(lines, rounds)
        return
    console = Console(highlight=False)
    if not lines:
        console.print("No campaigns yet. Start one: prefect-assay run --help")
        return
    console.print(_table(lines))
    if rounds is not None:
        console.print(rounds_table(rounds))
    if which:
        for line in lines:
            if line.url:
                console.print(f"{line.name}: {line.url}", markup=False, soft_wrap=True)


def follow(run_id: UUID, *, as_json: bool) -> None:
    """Show the campaign's runs until it ends. Ctrl-C leaves the campaign running.

    Raises:
        SystemExit: with 1, when the campaign did not complete.
    """
    console = Console(stderr=True, highlight=False)
    with api_errors(), get_client(sync_client=True) as client, Live(console=console) as live:
        while True:
            lines = _named(client, str(run_id))
            live.update(_table(lines))
            if not lines or lines[0].ended:
                break
            time.sleep(_POLL_SECONDS)
    if as_json:
        _print_json(lines)
    elif lines:
        Console(highlight=False).print(f"{lines[0].state}: {lines[0].message}", markup=False, soft_wrap=True)
    if not lines or not lines[0].state.startswith("Completed"):
        raise SystemExit(FAILED)


def _print_json(lines: Sequence[RunLine], rounds: LoopReport | None = None) -> None:
    shown: dict[str, Any] = {"runs": [line.as_json() for line in lines]}
    if rounds is not None:
        shown["loop"] = rounds.model_dump(mode="json")
    print(json.dumps(shown, indent=2))


def _recent(client: SyncPrefectClient, limit: int) -> list[RunLine]:
    loops = newest_runs(client, _LOOP_FLOW, limit)
    campaigns = newest_runs(client, _CAMPAIGN_FLOW, limit)
    return [*map(_line, loops), *(line for run in campaigns for line in _with_experiments(client, run))]


def _named(client: SyncPrefectClient, which: str) -> list[RunLine]:
    """Return the runs of a campaign or loop id, or one flow run with its experiments; empty for an unknown one."""
    run_id = _uuid(which)
    if run_id is not None:
        try:
            run = client.read_flow_run(run_id)
        except ObjectNotFound:
            return []
        return _with_experiments(client, run) if _kind(run) == _CAMPAIGN_FLOW else [_line(run)]
    campaigns = _tagged(client, CAMPAIGN_TAG + which) or _tagged(client, LOOP_TAG + which)
    return [_line(run) for run in (*campaigns, *_tagged(client, GROUP_TAG + campaign_group(which)))]


def _with_service(lines: Sequence[RunLine], service: AssayClient) -> list[RunLine]:
    complete = []
    for line in lines:
        if line.experiment_id is None:
            complete.append(line)
            continue
        try:
            found = service.experiment(line.experiment_id)
        except NotFound:
            complete.append(replace(line, service_status="not visible to this token"))
        else:
            complete.append(replace(line, experiment_code=found.code, service_status=str(found.status)))
    return complete


def _table(lines: Iterable[RunLine]) -> Table:
    lines = list(lines)
    built = Table(box=None, pad_edge=False)
    service = any(line.service_status for line in lines)
    for heading in ("Campaign", "Run", "Experiment", "State", "Waits for", *(["Service"] if service else [])):
        built.add_column(heading, overflow="fold")
    for line in lines:
        campaign = line.kind != _EXPERIMENT_FLOW
        name = Text(line.name if campaign else f"  {line.name}")
        if line.url:
            name.stylize(f"link {line.url}")
        cells = [
            Text(_owner(line) if campaign else ""),
            name,
            Text(line.experiment_code or line.experiment_id or ""),
            Text(line.state, style=_STYLES.get(line.state, "")),
            Text(line.waits_for or (_first_line(line.message) if line.ended else "")),
        ]
        built.add_row(*cells, *([Text(line.service_status or "")] if service else []))
    return built


def _owner(line: RunLine) -> str:
    if line.loop_id:
        return f"loop {line.loop_id}"
    return line.campaign_id or "–"  # noqa: RUF001 - a dash for a missing value


def _with_experiments(client: SyncPrefectClient, run: FlowRun) -> list[RunLine]:
    campaign_id = _campaign_id(run)
    children = _tagged(client, GROUP_TAG + campaign_group(campaign_id)) if campaign_id else []
    return [_line(one) for one in (run, *children)]


def _tagged(client: SyncPrefectClient, tag: str) -> list[FlowRun]:
    found = read_runs(client, run_filter(tags=[tag]))
    return sorted(found, key=lambda run: (run.created.timestamp() if run.created else 0.0, run.name))


def _line(run: FlowRun) -> RunLine:
    code = run.labels.get(EXPERIMENT_CODE_LABEL)
    return RunLine(
        kind=_kind(run),
        campaign_id=_campaign_id(run),
        flow_run_id=str(run.id),
        name=run.name,
        state=(run.state.name if run.state else None) or "unknown",
        ended=has_ended(run),
        message=run.state.message if run.state else None,
        waits_for=_waits_for(run),
        experiment_id=next(iter(tag_values(run.tags, EXPERIMENT_TAG)), None),
        experiment_code=str(code) if code else None,
        service_status=None,
        started=run.start_time,
        url=run_url(run.id),
        loop_id=run.parameters.get("loop_id"),
    )


def _kind(run: FlowRun) -> str:
    if "loop_id" in run.parameters:
        return _LOOP_FLOW
    return _EXPERIMENT_FLOW if "spec" in run.parameters else _CAMPAIGN_FLOW


def _campaign_id(run: FlowRun) -> str | None:
    tagged = next(iter(tag_values(run.tags, CAMPAIGN_TAG)), None)
    return tagged or run.parameters.get("campaign_id")


def _waits_for(run: FlowRun) -> str | None:
    """Describe, for people, what a suspended or scheduled run waits for; None for any other run."""
    if run.state is None:
        return None
    if not run.state.is_paused():
        return _SCHEDULED.get(run.state.name or "")
    if missing := missing_block(run):
        return f"the block {missing[1]}, which was deleted"
    kind = waits_for(suspension_key(run))
    if kind is WaitsFor.CHILDREN and _kind(run) == _LOOP_FLOW:
        return "its round's campaign"
    return _WAITS_FOR[kind] if kind else "a person who resumes it"


def _first_line(message: str | None) -> str:
    line = (message or "").partition("\n")[0]
    return line if len(line) <= 100 else f"{line[:99]}…"  # noqa: PLR2004 - one line of a terminal


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
