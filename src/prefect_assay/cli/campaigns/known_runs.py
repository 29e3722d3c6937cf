"""Reads loops, campaigns and experiments from the Prefect API: one frozen line per run. It prints nothing.

State, tags and labels of the runs are enough: that takes a few requests, whatever their number, and none to the service.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.objects import FlowRun

from prefect_assay.cli.campaigns.find import parents_of, tagged
from prefect_assay.cli.prefect_api import run_url
from prefect_assay.client import AssayClient
from prefect_assay.errors import NotFound, shortened
from prefect_assay.reporting.progress import eta_of
from prefect_assay.runs.queries import is_experiment, newest_runs
from prefect_assay.runs.states import has_ended, suspension_key
from prefect_assay.runs.tags import (
    CAMPAIGN_TAG,
    EXPERIMENT_CODE_LABEL,
    EXPERIMENT_TAG,
    GROUP_TAG,
    INVOICE_LABEL,
    PRICE_LABEL,
    REPLACED_TAG,
    campaign_group,
    tag_values,
)
from prefect_assay.runs.transient_failures import needed_block
from prefect_assay.waiting import WaitsFor, patience_of, waits_for

CAMPAIGN: Final = "campaign"
EXPERIMENT: Final = "experiment"
LOOP: Final = "design-build-test"

_WAITS_FOR: Final = {
    WaitsFor.RESULTS: "the laboratory",
    WaitsFor.MORE_RESULTS: "the laboratory, for the remaining results",
    WaitsFor.QUOTE: "the quote",
    WaitsFor.CHILDREN: "its experiments",
    WaitsFor.APPROVAL: "a person's approval",
    WaitsFor.PAYMENT_ANSWER: "a person's answer about an uncertain payment",
    WaitsFor.DESIGNS: "the next design file",
    WaitsFor.DESIGNER: "its designer's run",
    WaitsFor.RETRY: "its next attempt; see its log",
}
_SCHEDULED: Final = {
    "Resuming": "a free worker",
    "Scheduled": "a free worker",
    "Late": "a worker; none takes it",
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
    created: datetime | None
    started: datetime | None
    end: datetime | None
    expected: datetime | None
    deadline: datetime | None
    price_cents: int | None
    open_invoice: str | None
    url: str | None
    loop_id: str | None = None
    asks: bool = False  # a person
    answer_by: datetime | None = None

    @property
    def has_results(self) -> bool:
        """Whether it completed, with gaps or without."""
        return self.state.startswith("Completed")

    @property
    def age(self) -> timedelta | None:
        """How long ago it was created, or how long it took."""
        return (self.end or datetime.now(UTC)) - self.created if self.created else None

    def as_json(self) -> dict[str, Any]:
        """Return the fields, with times as ISO 8601."""
        fields = asdict(self).items()
        return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in fields}


def recent(client: SyncPrefectClient, limit: int) -> list[RunLine]:
    """The newest loops, campaigns with their experiments, and experiments that belong to no campaign."""
    loops = newest_runs(client, LOOP, limit)
    campaigns = newest_runs(client, CAMPAIGN, limit)
    alone = [run for run in newest_runs(client, EXPERIMENT, limit) if not tag_values(run.tags, GROUP_TAG)]
    return [
        *map(line_of, loops),
        *(line for run in campaigns for line in _with_experiments(client, [run])),
        *map(line_of, alone),
    ]


def named(client: SyncPrefectClient, which: str) -> list[RunLine]:
    """The runs of a campaign or loop id, or one flow run, or the one that replaced it, with a campaign's experiments.

    Raises:
        NotFound: nothing has this id.
    """
    return _with_experiments(client, parents_of(client, which))


def with_service(lines: Sequence[RunLine], service: AssayClient) -> list[RunLine]:
    """The lines, with what the service says of each experiment."""
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


def line_of(run: FlowRun) -> RunLine:
    """What a run says of itself."""
    code, price, invoice = (
        run.labels.get(name) for name in (EXPERIMENT_CODE_LABEL, PRICE_LABEL, INVOICE_LABEL)
    )
    ended = has_ended(run) or bool(tag_values(run.tags, REPLACED_TAG))  # its successor has a line of its own
    return RunLine(
        kind=_kind(run),
        campaign_id=_campaign_id(run),
        flow_run_id=str(run.id),
        name=run.name,
        state=(run.state.name if run.state else None) or "unknown",
        ended=ended,
        message=shortened(run.state.message) if run.state and run.state.message else None,
        waits_for=_waits_for(run),
        experiment_id=next(iter(tag_values(run.tags, EXPERIMENT_TAG)), None),
        experiment_code=str(code) if code else None,
        service_status=None,
        created=run.created,
        started=run.start_time,
        end=run.end_time if ended else None,
        expected=None if ended else eta_of(run),
        deadline=None if ended else _deadline(run),
        price_cents=int(price) if price and str(price).isdecimal() else None,
        open_invoice=str(invoice) if invoice else None,
        url=run_url(run.id),
        loop_id=run.parameters.get("loop_id"),
        asks=_asks(run),
        answer_by=run.state.state_details.pause_timeout if run.state and _asks(run) else None,
    )


def _asks(run: FlowRun) -> bool:
    if run.state is None or not run.state.is_paused() or needed_block(run):
        return False
    return waits_for(suspension_key(run)) in {WaitsFor.APPROVAL, WaitsFor.PAYMENT_ANSWER}


def _deadline(run: FlowRun) -> datetime | None:
    """When the run stops waiting, counted from its start: minutes before the order, from which the run counts."""
    if _kind(run) != EXPERIMENT or run.start_time is None:
        return None
    return run.start_time + patience_of(run.parameters)


def _with_experiments(client: SyncPrefectClient, runs: list[FlowRun]) -> list[RunLine]:
    found = {run.id: run for run in runs}
    for campaign_id in dict.fromkeys(_campaign_id(run) for run in runs if _kind(run) == CAMPAIGN):
        if campaign_id:
            found |= {run.id: run for run in tagged(client, GROUP_TAG + campaign_group(campaign_id))}
    return [line_of(run) for run in found.values()]


def _kind(run: FlowRun) -> str:
    if "loop_id" in run.parameters:
        return LOOP
    return EXPERIMENT if is_experiment(run) else CAMPAIGN


def _campaign_id(run: FlowRun) -> str | None:
    tagged = next(iter(tag_values(run.tags, CAMPAIGN_TAG)), None)
    return tagged or run.parameters.get("campaign_id")


def _waits_for(run: FlowRun) -> str | None:
    """Describe, for people, what a suspended or scheduled run waits for; None for any other run."""
    if run.state is None:
        return None
    if not run.state.is_paused():
        return _SCHEDULED.get(run.state.name or "")
    if needed := needed_block(run):
        return f"the block {needed.block}, {needed.fault}"
    kind = waits_for(suspension_key(run))
    if kind is WaitsFor.CHILDREN and _kind(run) == LOOP:
        return "its round's campaign"
    return _WAITS_FOR[kind] if kind else "a person who resumes it"
