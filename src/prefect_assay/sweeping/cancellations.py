"""What a canceled run says: what the laboratory will still do and bill, what was done about it, and what was not.

The hook of a run that is killed and the sweep come here. A suspended run has no process: Prefect sets it to Cancelled
and calls no hook, so the sweep does it. Each may come twice; the run's tag says what has been told.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast

from prefect.blocks.core import Block
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.actions import ArtifactCreate
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.flows import Flow

from prefect_assay.blocks import Archive, AssayCredentials, SpendingPolicy
from prefect_assay.blocks.order_books import open_books
from prefect_assay.books import OrderBook
from prefect_assay.client import AssayClient
from prefect_assay.errors import ConfigurationError
from prefect_assay.models.job import Order
from prefect_assay.models.spec import ExperimentSpec
from prefect_assay.ordering import find_order, order_key, read_order, recorded_order
from prefect_assay.reporting import artifacts
from prefect_assay.runs.ownership import ASSAY_FLOWS, is_assay_run
from prefect_assay.runs.queries import read_runs, run_filter
from prefect_assay.runs.states import lost_its_deployment
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
from prefect_assay.sweeping.cancellation_report import remains_text
from prefect_assay.sweeping.settle_cancellation import Remainder, Remains, wind_up
from prefect_assay.sweeping.stranded_runs import Homes, replace_canceled

LOOK_BACK: Final = timedelta(days=60)
# A request that was on its way when its process was killed has arrived by then, or never will.
_IN_FLIGHT: Final = timedelta(minutes=10)
_TOLD: Final = "told"
_UNHOMED: Final = (
    "run {name} was canceled by its worker, because its deployment was deleted: make it again (prefect-assay deploy), "
    "and a new run goes on in its place"
)
_log = logging.getLogger("prefect_assay.flows")


def say_what_remains(flow: Flow[..., Any], flow_run: FlowRun, state: State[Any]) -> None:
    """Hook of a run that is canceled while it has a process. What it cannot do now, the sweep does later."""
    del flow, state
    try:
        with get_client(sync_client=True) as client:
            _tell(client, client.read_flow_run(flow_run.id), datetime.now(UTC))
    except Exception:  # noqa: BLE001 - a hook must not fail the run it follows
        _log.warning("Could not say what remains of the canceled run; the sweep will", exc_info=True)


@dataclass(frozen=True)
class Told:
    """How many canceled runs were looked at, and when the earliest of them ended: from there on to look again."""

    looked: int
    unsettled_since: datetime | None


def tell_canceled(
    client: SyncPrefectClient, now: datetime, problems: list[str], *, since: datetime | None = None
) -> Told:
    """Look at every run, canceled since then (at most 60 days ago), that has not been told for good."""
    ended = run_filter(
        states=[StateType.CANCELLED], ended_after=max(now - LOOK_BACK, since or now - LOOK_BACK)
    )
    canceled = filter(is_assay_run, read_runs(client, ended, ASSAY_FLOWS))
    open_runs = [run for run in canceled if _told(run) != _TOLD and not tag_values(run.tags, REPLACED_TAG)]
    homes = Homes(client)
    for run in open_runs:
        try:
            if not lost_its_deployment(run):
                _tell(client, run, now)
            elif not replace_canceled(client, run, homes):
                problems.append(_UNHOMED.format(name=run.name))
        except Exception as error:  # noqa: BLE001 - one deleted block must not keep the others waiting
            problems.append(f"canceled run {run.name}: {error}")
    return Told(len(open_runs), min((run.end_time for run in open_runs if run.end_time), default=None))


def _told(run: FlowRun) -> str | None:
    """What this execution of the run has been told already: a run that is retried and canceled again starts anew."""
    prefix = f"{run.run_count}-"
    values = [v.removeprefix(prefix) for v in tag_values(run.tags, CANCELED_TAG) if v.startswith(prefix)]
    return values[0] if values else None


def _tell(client: SyncPrefectClient, run: FlowRun, now: datetime) -> None:
    if "spec" in run.parameters:
        _tell_experiment(client, run, now)
    else:
        _tell_parent(client, run)


def _tell_experiment(client: SyncPrefectClient, run: FlowRun, now: datetime) -> None:
    credentials = cast("AssayCredentials", AssayCredentials.load_from_ref(_reference(run, "credentials")))
    policy = cast("SpendingPolicy", SpendingPolicy.load_from_ref(_reference(run, "policy")))
    book = _book_of(run, credentials)
    with credentials.get_client() as service:
        order = _order_of(service, run, book)
        others = _others(client, run, [EXPERIMENT_TAG + order.experiment_id]) if order else []
        reject = policy.reject_quote_on_cancel and not others
        remains = wind_up(service, book, order, reject=reject)
    final = _is_final(remains, reject=reject, age=now - run.state.timestamp if run.state else timedelta())
    what = f"{remains.kind}-{remains.facts.in_doubt}".lower()
    if _told(run) != what:
        label = artifacts.label_of(
            str(run.parameters.get("campaign_id")), int(run.parameters.get("batch_index") or 0)
        )
        text = remains_text(remains, [other.name for other in others], reject=reject)
        _leave(client, run, f"assay-canceled-{label}", text)
    set_tag(run.id, CANCELED_TAG, f"{run.run_count}-{_TOLD if final else what}")


def _is_final(remains: Remains, *, reject: bool, age: timedelta) -> bool:
    """Whether another look could find or do more."""
    if remains.kind in {Remainder.QUOTE_PENDING, Remainder.QUOTE_OPEN}:
        return not reject
    return age > _IN_FLIGHT or not (remains.kind is Remainder.NOTHING or remains.facts.in_doubt)


def _book_of(run: FlowRun, credentials: AssayCredentials) -> OrderBook:
    """The log of the run's order."""
    archive = cast("Archive", Block.load_from_ref(_reference(run, "archive")))
    campaign_id, spec = str(run.parameters["campaign_id"]), _spec_of(run)
    key = order_key(campaign_id, int(run.parameters.get("batch_index") or 0), spec)
    return open_books(credentials, archive).order(campaign_id, key)


def _spec_of(run: FlowRun) -> ExperimentSpec:
    return ExperimentSpec.model_validate(run.parameters["spec"])


def _order_of(service: AssayClient, run: FlowRun, book: OrderBook) -> Order | None:
    """By its log; by the run's tag; else by its key, since a process may be killed right after the create."""
    recorded = recorded_order(service, book)
    if recorded is not None:
        return recorded
    for experiment_id in tag_values(run.tags, EXPERIMENT_TAG):
        return read_order(service, experiment_id, book.order_key)
    return find_order(service, book.order_key, _spec_of(run))


def _tell_parent(client: SyncPrefectClient, run: FlowRun) -> None:
    """Cancel the runs that this one has started, unless another one waits for them, too."""
    lines = []
    for group in _groups(run):
        others = [o.name for o in _others(client, run, [WAITS_TAG + group, CHILDREN_TAG + group])]
        children = read_runs(client, run_filter(tags=[GROUP_TAG + group]))
        lines += [f"- {child.name}: {_cancel(client, child, others)}" for child in children]
    text = "\n".join(
        [
            f"# {run.name} was canceled",
            "",
            "Each of its runs says in an artifact of its own what the laboratory still does and bills."
            if lines
            else "It had started nothing: nothing was ordered, and nothing will be billed.",
            "",
            *sorted(lines),
        ]
    )
    _leave(client, run, f"assay-canceled-{artifacts.label_of(run.name)}", text)
    set_tag(run.id, CANCELED_TAG, f"{run.run_count}-{_TOLD}")


def _groups(run: FlowRun) -> list[str]:
    return sorted({*tag_values(run.tags, CHILDREN_TAG), *tag_values(run.tags, WAITS_TAG)})


def _cancel(client: SyncPrefectClient, child: FlowRun, others: list[str]) -> str:
    if child.state is not None and child.state.is_final():
        return f"has ended as {child.state.name}"
    if others:
        return f"goes on, because {', '.join(others)} waits for it, too"
    client.set_flow_run_state(child.id, State(type=StateType.CANCELLING))
    return "is canceled with it"


def _others(client: SyncPrefectClient, run: FlowRun, tags: Iterable[str]) -> list[FlowRun]:
    """Other runs with one of these tags that have not ended."""
    found = {
        other.id: other
        for tag in tags
        for other in read_runs(client, run_filter(tags=[tag]))
        if other.id != run.id and other.state is not None and not _ending(other.state)
    }
    return list(found.values())


def _ending(state: State[Any]) -> bool:
    return state.is_final() or state.is_cancelling()


def _leave(client: SyncPrefectClient, run: FlowRun, key: str, text: str) -> None:
    client.create_artifact(
        ArtifactCreate(
            key=key,
            type="markdown",
            description="What remains of a canceled run",
            data=text,
            flow_run_id=run.id,
        )
    )


def _reference(run: FlowRun, name: str) -> dict[str, Any]:
    """The reference to a block among a run's parameters, as `load_from_ref` takes it."""
    given = run.parameters.get(name)
    reference = given.get("$ref") if isinstance(given, dict) else None
    if reference is None:
        raise ConfigurationError(
            f"the {name} of run {run.name} are no saved block, so nobody can look for it"
        )
    return reference if isinstance(reference, dict) else {"block_document_id": str(reference)}
