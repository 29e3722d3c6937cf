"""After a run is canceled: withdraws what can be withdrawn, and reports what the laboratory will still do and bill.

The hook of a killed run calls this; a suspended run has no process, so the sweep does it. The run's tag records what
was reported.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.actions import ArtifactCreate
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.exceptions import ObjectNotFound
from prefect.flows import Flow

from prefect_assay.blocks import AssayCredentials
from prefect_assay.blocks.of_runs import archive_of, credentials_of, policy_of
from prefect_assay.blocks.order_books import open_books
from prefect_assay.books import OrderBook
from prefect_assay.errors import shorten, shortened
from prefect_assay.models.job import Order
from prefect_assay.models.spec import ExperimentSpec
from prefect_assay.ordering import find_order, order_key
from prefect_assay.reporting import artifacts
from prefect_assay.runs.queries import ASSAY_FLOWS, is_assay_run, is_experiment, read_runs, run_filter
from prefect_assay.runs.states import (
    cancel,
    go_on_without_its_runner,
    has_ended,
    is_open,
    lost_its_deployment,
    successor_of,
    was_stopped_with_its_runner,
)
from prefect_assay.runs.tags import (
    CANCELED_TAG,
    CHILDREN_TAG,
    EXPERIMENT_TAG,
    GROUP_TAG,
    REPLACED_TAG,
    WAITS_TAG,
    set_tag,
    tag_values,
)
from prefect_assay.sweeping.settle_cancellation import (
    CanceledOrderState,
    CancellationReport,
    report_text,
    settle_cancellation,
)
from prefect_assay.sweeping.stranded_runs import DeploymentIndex, replace_run
from prefect_assay.tasks.collate import planned_spec

LOOK_BACK: Final = timedelta(days=60)
# A request that was in flight when its process was killed has arrived by then, or never will.
_IN_FLIGHT: Final = timedelta(minutes=10)
_FINAL: Final = "told"  # in the tag of a run that needs no further report
_CHILDREN: Final = (
    "children"  # in the tag of a parent that is reported, and whose children have not all ended
)
_NO_DEPLOYMENT: Final = (
    "run {name} was canceled by its worker, because its deployment was deleted: create it again (prefect-assay deploy), "
    "and a new run replaces this one"
)
_log = logging.getLogger("prefect_assay.flows")


def report_cancellation(flow: Flow[..., Any], flow_run: FlowRun, state: State[Any]) -> None:
    """State hook of a run that is canceled while it has a process. The sweep does later what fails here."""
    del flow
    if was_stopped_with_its_runner(state):
        return  # the sweep schedules it again
    try:
        with get_client(sync_client=True) as client:
            settle_canceled_run(client, client.read_flow_run(flow_run.id), datetime.now(UTC))
    except Exception as error:  # noqa: BLE001 - a hook must not fail the run it follows
        _log.warning(
            "Could not report what remains of the canceled run; the sweep will", exc_info=shorten(error)
        )


@dataclass(frozen=True)
class CanceledRuns:
    """How many canceled runs were read, and when the earliest of them ended: the next sweep begins there."""

    read: int
    unsettled_since: datetime | None


def report_canceled_runs(
    client: SyncPrefectClient, now: datetime, problems: list[str], *, since: datetime | None = None
) -> CanceledRuns:
    """Report every run canceled since then (at most 60 days ago) that has no final report yet; adds to `problems`."""
    ended = run_filter(
        states=[StateType.CANCELLED], ended_after=max(now - LOOK_BACK, since or now - LOOK_BACK)
    )
    canceled = filter(is_assay_run, read_runs(client, ended, ASSAY_FLOWS))
    open_runs = [
        run for run in canceled if _reported(run) != _FINAL and not tag_values(run.tags, REPLACED_TAG)
    ]
    deployments = DeploymentIndex(client)
    for run in open_runs:
        try:
            if run.state is not None and was_stopped_with_its_runner(run.state):
                go_on_without_its_runner(client, run)
            elif not lost_its_deployment(run):
                settle_canceled_run(client, run, now)
            elif home := deployments.replacement_for(run):
                replace_run(client, run, home)
            else:
                problems.append(_NO_DEPLOYMENT.format(name=run.name))
        except Exception as error:  # noqa: BLE001 - one deleted block must not stop the others
            problems.append(shortened(f"canceled run {run.name}: {error}", 600))
    return CanceledRuns(
        len(open_runs), min((run.end_time for run in open_runs if run.end_time), default=None)
    )


def _reported(run: FlowRun) -> str | None:
    """Return what was reported of this execution of the run; a retried run that is canceled again has no report yet."""
    prefix = f"{run.run_count}-"
    values = [v.removeprefix(prefix) for v in tag_values(run.tags, CANCELED_TAG) if v.startswith(prefix)]
    return values[0] if values else None


@dataclass(frozen=True)
class SettledCancellation:
    """What a canceled experiment leaves at the service; `shared_with` are the names of runs that go on with its order.

    `elsewhere` if one of them is a run that this Prefect server does not know.
    """

    remains: CancellationReport
    shared_with: tuple[str, ...]
    elsewhere: bool = False


def settle_canceled_run(
    client: SyncPrefectClient, run: FlowRun, now: datetime, *, alone: bool = False
) -> SettledCancellation | None:
    """Do at once what the sweep would do for a canceled run; None for a parent, whose children are canceled with it.

    With `alone`, runs that this Prefect server does not know have ended for good: a person has said so.
    A parent that was reported before is not reported again, but a child may have crashed since, and would be started again.

    Raises:
        AssayError: a block, the archive or the service cannot be read; the sweep tries again.
    """
    if is_experiment(run):
        return _report_experiment(client, run, now, alone=alone)
    _report_parent(client, run)
    return None


def _report_experiment(
    client: SyncPrefectClient, run: FlowRun, now: datetime, *, alone: bool
) -> SettledCancellation:
    credentials, policy = credentials_of(run), policy_of(run)
    spec = _spec_of(run)
    book = _book_of(run, credentials, spec)
    with credentials.get_client() as service:
        # A process may be killed after its create, or after the tag and before its log.
        order = find_order(service, book, spec, tagged=tag_values(run.tags, EXPERIMENT_TAG))
        book.end_work(str(run.id))  # of runs that are canceled at once, the last one finds no other
        others, elsewhere = _sharing(client, run, book, order, alone=alone)
        reject = policy.reject_quote_on_cancel and not others
        report = settle_cancellation(service, book, order, reject=reject)
    final = _is_final(report, reject=reject, age=now - run.state.timestamp if run.state else timedelta())
    reported = f"{report.state}-{report.payment.in_doubt}".lower()
    if _reported(run) != reported:
        text = report_text(report, others, reject=reject)
        _create_artifact(client, run, f"assay-canceled-{artifacts.label_of_run(run)}", text)
    set_tag(run.id, CANCELED_TAG, f"{run.run_count}-{_FINAL if final else reported}")
    return SettledCancellation(report, others, elsewhere)


def _sharing(
    client: SyncPrefectClient, run: FlowRun, book: OrderBook, order: Order | None, *, alone: bool
) -> tuple[tuple[str, ...], bool]:
    """The names of other runs that work on an order, by its log and by tags, and whether one is of another home."""
    tagged = _others(client, run, [EXPERIMENT_TAG + order.experiment_id]) if order else []
    here, elsewhere = {other.id: other.name for other in tagged}, []
    for worker in book.read().working:
        try:
            other = successor_of(client, client.read_flow_run(UUID(worker.run)))
        except ObjectNotFound:
            if alone:
                book.end_work(worker.run)
            else:
                elsewhere.append(
                    f"{worker.name} of another Prefect home ({worker.by}, since {worker.at:%Y-%m-%d})"
                )
            continue
        if other.id != run.id and is_open(other):
            here[other.id] = other.name
    return (*here.values(), *elsewhere), bool(elsewhere)


def _is_final(report: CancellationReport, *, reject: bool, age: timedelta) -> bool:
    """Return True if another look could find or do nothing more."""
    if report.state in {CanceledOrderState.QUOTE_PENDING, CanceledOrderState.QUOTE_OPEN}:
        return not reject
    return age > _IN_FLIGHT or not (report.state is CanceledOrderState.NOTHING or report.payment.in_doubt)


def _book_of(run: FlowRun, credentials: AssayCredentials, spec: ExperimentSpec) -> OrderBook:
    campaign_id = str(run.parameters["campaign_id"])
    key = order_key(campaign_id, int(run.parameters.get("batch_index") or 0), spec)
    return open_books(credentials, archive_of(run)).order(campaign_id, key)


def _spec_of(run: FlowRun) -> ExperimentSpec:
    if planned := run.parameters.get("planned"):
        return planned_spec(archive_of(run), str(run.parameters["campaign_id"]), str(planned))
    return ExperimentSpec.model_validate(run.parameters["spec"])


@dataclass(frozen=True)
class CanceledChildren:
    """A line for each child run, and whether one of them had to be canceled, and may end as Crashed instead."""

    lines: tuple[str, ...]
    canceled: bool


def cancel_children(client: SyncPrefectClient, run: FlowRun) -> CanceledChildren:
    """Cancel what a campaign or loop has started that is canceled or has ended, unless another run waits for it."""
    lines: list[str] = []
    canceled = False
    for group in sorted({*tag_values(run.tags, CHILDREN_TAG), *tag_values(run.tags, WAITS_TAG)}):
        others = [o.name for o in _others(client, run, [WAITS_TAG + group, CHILDREN_TAG + group])]
        for child in read_runs(client, run_filter(tags=[GROUP_TAG + group])):
            if child.state is not None and has_ended(child):
                what = f"has ended as {child.state.name}"
            elif others:
                what = f"goes on, because {', '.join(others)} waits for it, too"
            else:
                cancel(client, child)
                canceled = True
                what = "is canceled with it"
            lines.append(f"- {child.name}: {what}")
    return CanceledChildren(tuple(lines), canceled)


def _report_parent(client: SyncPrefectClient, run: FlowRun) -> None:
    children = cancel_children(client, run)
    if _reported(run) is None:
        text = "\n".join(
            [
                f"# {run.name} was canceled",
                "",
                "The artifact of each child run reports what the laboratory still does and bills."
                if children.lines
                else "It had started nothing: nothing was ordered, and nothing will be billed.",
                "",
                *sorted(children.lines),
            ]
        )
        _create_artifact(client, run, f"assay-canceled-{artifacts.label_of(run.name)}", text)
    # A process that is killed may report a crash instead, and its run would be started again: the sweep looks again.
    reported = _CHILDREN if children.canceled else _FINAL
    if _reported(run) != reported:
        set_tag(run.id, CANCELED_TAG, f"{run.run_count}-{reported}")


def _others(client: SyncPrefectClient, run: FlowRun, tags: Iterable[str]) -> list[FlowRun]:
    found = {
        other.id: other
        for tag in tags
        for other in read_runs(client, run_filter(tags=[tag]))
        if other.id != run.id and is_open(other)
    }
    return list(found.values())


def _create_artifact(client: SyncPrefectClient, run: FlowRun, key: str, text: str) -> None:
    client.create_artifact(
        ArtifactCreate(
            key=key,
            type="markdown",
            description="What remains of a canceled run",
            data=text,
            flow_run_id=run.id,
        )
    )
